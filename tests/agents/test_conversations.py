"""Conversations as tokens: what grows, what is read again, and what is left out."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import ChatCodec, ChatTemplateError, PromptLengthError, TokenBoundaryError
from gamespiel.agents.tokens.conversations import ConversationCodec, Prompt
from task_gym.replies import ReplyText, visible
from tests.agents import smollm2
from tests.agents.families import chatml, gemma, llama
from tests.agents.test_codec import tokenizer
from tests.agents.test_qwen_vocabulary import tokenizer as qwen_tokenizer

Messages = Sequence[dict[str, str]]

QWEN3 = (
    "{% set last = namespace(at=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set last.at = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
    "{{ '<|im_start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' %}{% set said = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{% if loop.index0 > last.at %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{{ said }}"
    "{% else %}{{ m.content }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
"""The texts that the published template of Qwen3 writes for these roles."""

THOUGHTLESS = "<think>\n\n</think>\n\n"


def thinker(*, think: bool) -> ConversationCodec:
    hf_tokenizer = chatml()
    hf_tokenizer.chat_template = QWEN3
    hf_tokenizer.add_tokens(["<think>", "</think>"])
    return ConversationCodec(ChatCodec(hf_tokenizer, numbers=not think, think=think))


def make_codec(make_tokenizer: Any, **settings: Any) -> Callable[[], ConversationCodec]:
    return lambda: ConversationCodec(ChatCodec(make_tokenizer(), **settings))


EVERY = [
    pytest.param(make_codec(lambda: load_tokenizer(ModelSettings())), id="tiny"),
    pytest.param(make_codec(chatml), id="chatml"),
    # Stand-in vocabularies with the families' control tokens.
    pytest.param(make_codec(lambda: llama("{1}")), id="llama3"),
    pytest.param(make_codec(llama, numbers=False), id="llama3, names"),
    pytest.param(make_codec(gemma), id="gemma3"),
    pytest.param(
        make_codec(lambda: load_tokenizer(ModelSettings(smollm2.NAME))),
        id="smollm2",
        marks=pytest.mark.weights("smollm2"),
    ),
    pytest.param(
        make_codec(lambda: qwen_tokenizer("qwen2.5")), id="qwen2.5", marks=pytest.mark.weights("vocabulary")
    ),
]

QUESTIONS = (
    "Your card: K♠\nLegal Actions:\n0 -> Fold\n12 -> Raise\n\nYour choice (ID only):",
    "That reply names no legal action. This was try 1 of 3.",
    "x o .\n. x .\n\n\n  7 -> x(2,1)\n",
    "  white space at both ends \n\n",
)


def talk(answers: Sequence[str], system: str | None = "# Rules\nBe brief.") -> Messages:
    """Returns a conversation whose last message is a question."""
    said: list[dict[str, str]] = [] if system is None else [{"role": "system", "content": system}]
    for at, answer in enumerate(answers):
        said.append({"role": "user", "content": QUESTIONS[at % len(QUESTIONS)]})
        said.append({"role": "assistant", "content": answer})
    return [*said, {"role": "user", "content": QUESTIONS[len(answers) % len(QUESTIONS)]}]


def whole(codec: ConversationCodec, messages: Messages) -> Tokens:
    """Returns the tokens of the whole conversation as the template writes it: what a server reads."""
    return codec.codec.encode_text(codec.codec.render(messages, add_generation_prompt=True))


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("system", ["# Rules\nBe brief.", None])
def test_a_conversation_only_grows_and_is_what_a_server_reads(make: Any, system: str | None) -> None:
    codec, before = make(), ()
    answers = ("0", "12", "307", "4673", "5")
    for turns in range(len(answers) + 1):
        messages = talk(answers[:turns], system)
        prompt = codec.encode(messages)
        assert prompt == Prompt(whole(codec, messages), 0)
        assert prompt.tokens[: len(before)] == before
        if turns < len(answers):
            before = prompt.tokens + codec.codec.encode_answer(answers[turns])


def test_qwen3_writes_an_empty_thought_before_a_new_answer_only_and_forgets_earlier_ones() -> None:
    """So a conversation is read again from the last answer on: the thought was before it.

    The answer after a thought keeps its own tokens.
    """
    codec = thinker(think=False)
    first, then = codec.encode(talk(())), codec.encode(talk(("12",)))
    thought = codec.codec.encode_text(THOUGHTLESS)
    assert first.tokens[-len(thought) :] == thought
    answer = codec.codec.encode_answer("12")
    assert then.tokens == whole(codec, talk(("12",)))
    common = first.tokens[: -len(thought)]
    assert then.tokens[: len(common) + 3] == common + answer
    codec = thinker(think=True)
    encode = codec.codec.encode_text
    reply = encode("<think>\nA king wins often.\n</think>\n\nI raise: 12")
    said = ReplyText(visible(codec.codec.decode_reply(reply)), (*reply, codec.codec.end_of_turn))
    assert said == "I raise: 12"
    first, then = codec.encode(talk(())), codec.encode(talk((said,)))
    assert then.tokens == whole(codec, talk((str(said),)))
    assert then.tokens[: len(first.tokens)] == first.tokens
    assert then.tokens[len(first.tokens) :][: len(encode("I raise: 12"))] == encode("I raise: 12")


@pytest.mark.parametrize("make", EVERY)
def test_a_written_reply_is_never_tokenised_again(make: Any) -> None:
    """Random tokens are hardly ever those that the tokenizer would choose for their text."""
    codec, rng = make(), random.Random(0)
    chat, other = codec.codec, 0
    letters = [t for t in range(len(chat.tokenizer)) if chat.decode_reply((t,)).isalnum()]
    for _ in range(20):
        tokens = tuple(rng.choice(letters) for _ in range(rng.randrange(1, 9)))
        text = chat.decode_reply(tokens)
        other += chat.encode_text(text) != tokens
        for ended in (tokens, (*tokens, chat.end_of_turn)):
            prompt = codec.encode(talk((ReplyText(text, ended),))).tokens
            begun = codec.encode(talk(())).tokens
            assert prompt[: len(begun) + len(tokens) + 1] == (*begun, *tokens, chat.end_of_turn)
    assert other or chat.name in ("'chatml'",) or len(chat.tokenizer) < 300


def test_a_reply_whose_text_was_cut_elsewhere_is_tokenised_anew() -> None:
    """ "ab " is what was written, in the tokens "a" and "b ", and "ab" what was kept."""
    codec = ConversationCodec(ChatCodec(tokenizer(("b", " "))))
    chat = codec.codec
    tokens = chat.encode_text("ab ")
    assert len(tokens) == 2
    begun = codec.encode(talk(())).tokens
    assert codec.encode(talk((ReplyText("ab", tokens),))).tokens[len(begun) :][:2] == chat.encode_text("ab")


def sized(limit: int) -> ConversationCodec:
    """Returns a codec of one token a character; a question of three characters is "user\\nabc<e>\\n"."""
    return ConversationCodec(ChatCodec(tokenizer()), limit)


def spelt(prompt: Prompt) -> str:
    return "".join(map(sized(100).codec.tokenizer.convert_ids_to_tokens, prompt.tokens))


def short(turns: int, system: bool = False) -> Messages:
    """A turn is 10 tokens of the question, 10 before the answer, 1 of the answer and 2 after it: 23."""
    said: list[dict[str, str]] = [{"role": "system", "content": "s"}] if system else []
    for at in range(turns):
        said += [{"role": "user", "content": f"q{at:02}"}, {"role": "assistant", "content": str(at % 10)}]
    return [*said, {"role": "user", "content": "end"}]


def test_the_oldest_turns_are_left_out_in_blocks_of_three_quarters() -> None:
    """The last turn has 20 of 100 tokens, and 3 earlier turns fit beside it: 89.

    With a fourth, 112, turns of at least 75 tokens are left out: all four. They are left out as long as what
    follows fits: seven turns are 4 + 3. With an eighth, four more are left out.

    The system message stays. It is "system\\ns<e>\\n", which counts for the first turn: 31 + 23 + 23 are a
    block, then 4 * 23.
    """
    plain = ((3, 0), (4, 4), (5, 4), (7, 4), (8, 8), (11, 8))
    behind_system = ((3, 0), (4, 3), (6, 3), (7, 7), (10, 7))
    for system, cases in ((False, plain), (True, behind_system)):
        codec = sized(100)
        for turns, left_out in cases:
            prompt = codec.encode(short(turns, system))
            assert prompt.left_out == left_out
            assert len(prompt.tokens) == 20 + 10 * system + 23 * (turns - left_out) <= 100
            first = "end" if turns == left_out else f"q{left_out:02}"
            assert spelt(prompt).startswith("system\ns<e>\n" * system + f"user\n{first}")


def test_conversations_that_are_refused() -> None:
    """A turn that cannot fit, a template without answers, and an answer that merges.

    New answers come after a line end, and earlier ones after a colon, with which a 1 merges.
    """
    with pytest.raises(
        PromptLengthError, match=r"has 30 tokens on its own, .* at most 29: env.context_tokens"
    ):
        sized(29).encode(short(3, system=True))
    assert sized(30).encode(short(3, system=True)).left_out == 3
    deaf = (
        "{% for m in messages %}{% if m.role == 'user' or m.content == 'an answer' %}{{ m.content }}<e>"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
    )
    with pytest.raises(ChatTemplateError, match="writes 0 of 1 answers"):
        ConversationCodec(ChatCodec(tokenizer(template=deaf))).encode(short(1))
    colon = (
        "{% for m in messages %}{{ m.role }}{{ ':' if m.role == 'assistant' else '\\n' }}"
        "{{ m.content }}<e>\\n{% endfor %}{% if add_generation_prompt %}assistant\\n{% endif %}"
    )
    hf_tokenizer = tokenizer((":", "1"), template=colon)
    with pytest.raises(TokenBoundaryError, match="'12' within a conversation otherwise"):
        ConversationCodec(ChatCodec(hf_tokenizer)).encode(short(1))


any_codec = cache(make_codec(chatml))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5), st.text(max_size=20))
@example(["<|im_start|>"], "a<|im_start|>b")
def test_any_text_can_be_said(answers: list[str], system: str) -> None:
    """Nothing that is said brings a control token: each turn has two messages, and three are around them.

    The tokenizer composes characters.
    """
    codec = any_codec()
    try:
        tokens = codec.encode(talk(answers, system)).tokens
    except ChatTemplateError as error:
        assert "noncharacters" in str(error)
        return
    start = codec.codec.tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert tokens.count(start) == 2 * len(answers) + 3
    said = codec.codec.decode_reply(tokens)
    assert all(normalize("NFC", answer.strip()) in said for answer in answers)
