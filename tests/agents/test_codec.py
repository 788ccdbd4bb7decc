"""Prompts and answers as tokens: the tokenizers that are refused, and the trie of legal actions."""

from __future__ import annotations

import pickle
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.tokens import templates
from gamespiel.agents.tokens.codec import (
    ChatCodec,
    ChatTemplateError,
    PromptLengthError,
    Recent,
    TokenBoundaryError,
)
from gamespiel.agents.tokens.constraints import ActionTrie, Branch, Node
from tests.agents.families import CHATML, chatml, gemma, llama

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + '\\n' + message['content'] + '<e>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant\\n' }}{% endif %}"
)


def tokenizer(*merges: tuple[str, str], template: str = TEMPLATE, **kwargs: Any) -> Any:
    """Returns a tokenizer with one token per character, but for the merges, which cross boundaries."""
    tokens = ["<e>", *string.printable, *(a + b for a, b in merges)]
    bpe = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, list(merges)))
    names = {"eos_token": "<e>", "chat_template": template} | kwargs
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **names)


HUNGRY = {
    "a loop": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "more than 0.2 s",
    ),
    "a product": ("{{ 'a' * 30000000000 }}", "more than 512 MiB of memory"),
    "a format": ("{{ '%2000000000d' % 1 }}", "more than 512 MiB of memory"),
    "growth": (
        "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
        "{{ n.x }}",
        "more than 512 MiB of memory",
    ),
    "a long text": ("{{ 'a' * 33554433 }}", "writes more than 33,554,432 characters"),
}


@pytest.mark.attack
@pytest.mark.sample
@pytest.mark.parametrize("name", HUNGRY)
def test_a_template_that_takes_too_much_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it waits for: here for the first message that is not the probe's."""
    hungry, message = HUNGRY[name]
    hungry = "{% if messages[0]['content'] == 'now' %}" + hungry + "{% endif %}"
    codec = ChatCodec(tokenizer(template=TEMPLATE + hungry))
    assert codec.prompt_text("later") == "user\nlater<e>\nassistant\n"
    if name == "a loop":
        monkeypatch.setattr(templates, "SECONDS", 0.2)
    with pytest.raises(ChatTemplateError, match=f"messages of these roles: user: it .*{message}"):
        codec.prompt_text("now")
    assert codec.prompt_text("later again") == "user\nlater again<e>\nassistant\n"


def test_a_date_in_a_prompt_stays_the_same() -> None:
    """A run that is resumed on another day goes on with the same prompts."""
    hf_tokenizer = llama("{1}")
    hf_tokenizer.chat_template = hf_tokenizer.chat_template.replace("%d %b %Y", "%A, %d %B %Y, %d.%m.%y")
    assert "\n\nToday: Friday, 26 July 2024, 26.07.24<|eot_id|>" in ChatCodec(hf_tokenizer).prompt_text("x")


def test_an_answer_is_its_digits_and_the_end_of_the_turn() -> None:
    hf_tokenizer = load_tokenizer(ModelSettings())
    codec = ChatCodec(hf_tokenizer)
    one, two = (hf_tokenizer.convert_tokens_to_ids(digit) for digit in "12")
    assert codec.encode_action(12) == (one, two, hf_tokenizer.eos_token_id)
    assert codec.end_of_turn == hf_tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert codec.pad == hf_tokenizer.convert_tokens_to_ids("<|endoftext|>")
    for action in (0, 7, 123, 4673):
        together = hf_tokenizer(f"{codec.prompt_text('x')}{action}<|im_end|>", add_special_tokens=False)
        assert codec.encode_prompt("x") + codec.encode_action(action) == tuple(together["input_ids"])
    copy = pickle.loads(pickle.dumps(codec))
    assert copy.encode_prompt("x") == codec.encode_prompt("x")
    assert copy.encode_action(12) == codec.encode_action(12)
    assert not pickle.loads(pickle.dumps(ChatCodec(llama(), numbers=False))).numbers


def test_tokens_that_depend_on_what_is_before_them_are_refused() -> None:
    """Digits of two tokens too, and a turn that cannot end. Digits in threes are for names only.

    "\\n" and "a" merge, "\\n" and "b" do not; neither is a digit.
    """
    hf_tokenizer = tokenizer()
    hf_tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("_", prepend_scheme="always")
    for wrong, message in (
        (hf_tokenizer, r"digits \['0', .* are not one token each"),
        (tokenizer(eos_token=None), "names no eos_token"),
        (llama(), r"tokenises '12' .* splits digits .*, or env\.answer: name"),
        (tokenizer(("1", "2")), "tokenises '12' after a prompt otherwise than"),
        (tokenizer(("\n", "3")), "tokenises '3' after a prompt otherwise than"),
    ):
        with pytest.raises(TokenBoundaryError, match=message):
            ChatCodec(wrong)
    codec = ChatCodec(llama(), numbers=False)
    spelt = codec.tokenizer.convert_ids_to_tokens(codec.encode_answer("Bet 123"))
    assert spelt == ["Bet", "Ġ", "123", "<|eot_id|>"]
    codec = ChatCodec(tokenizer(("\n", "a")), numbers=False)
    assert codec.encode_answer("b") == (codec.tokenizer.convert_tokens_to_ids("b"), 0)
    with pytest.raises(TokenBoundaryError, match=r"tokenises 'ab' after a prompt.*or env\.answer: id"):
        codec.encode_answer("ab")


# -- templates -----------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "tiny": (lambda: load_tokenizer(ModelSettings()), "<|im_end|>", "<|endoftext|>"),
    "chatml": (chatml, "<|im_end|>", "<|endoftext|>"),
    # eos_token is <|end_of_text|>, and there is no pad_token.
    "llama": (lambda: llama("{1}"), "<|eot_id|>", "<|eot_id|>"),
    "gemma": (gemma, "<end_of_turn>", "<pad>"),  # eos_token is <eos>
}
"""Tokenizers, the token that ends a turn, and the one that pads."""


@pytest.mark.parametrize("shape", SHAPES)
def test_the_tokens_are_those_of_transformers_and_a_turn_ends_as_the_template_ends_it(shape: str) -> None:
    """It adds no second BOS either; the template of Llama 3's shape writes the date, so its day is set."""
    make, closing, padding = SHAPES[shape]
    codec = ChatCodec(make())
    hf_tokenizer = codec.tokenizer
    assert hf_tokenizer.convert_ids_to_tokens([codec.end_of_turn, codec.pad]) == [closing, padding]
    assert codec.encode_action(12)[-1] == codec.end_of_turn
    hf_tokenizer.chat_template = hf_tokenizer.chat_template.replace(
        "strftime_now('%d %b %Y')", "'26 Jul 2024'"
    )
    for text in ("seat 0\n\nlegal 1 12", "Bet on it", "é ♣"):
        chat = [{"role": "user", "content": text}]
        whole = hf_tokenizer.apply_chat_template(
            chat, tokenize=True, add_generation_prompt=True, return_dict=False
        )
        assert codec.encode_prompt(text) == tuple(whole)
        assert whole.count(hf_tokenizer.bos_token_id) == (shape in ("llama", "gemma"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, r"has no chat template; allowed: a tokenizer with one"),
        (TEMPLATE + "{#" + "a" * (1 << 20) + "#}", r"it has 1,0[0-9,]+ characters, allowed: at most 1,048,5"),
        ("{{ raise_exception('no users') }}", r"fails for messages of these roles: user.*: no users"),
        ("{{ messages[0].content }}", "leaves out or changes an assistant's message"),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", r"and a generation prompt after it"),
        (
            "{{ messages[0].content | upper }}{% for m in messages[1:] %}{{ m.content }}{% endfor %}<e>",
            r"writes 'a question' as 'A QUESTION<e>'; allowed: one that writes it as it is",
        ),
        (
            TEMPLATE.replace("'assistant", "'assistant<think>"),
            r"opens <think> before every answer, even with enable_thinking=False",
        ),
    ],
)  # fmt: skip
def test_templates_that_are_refused(template: str | None, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=message):
        ChatCodec(tokenizer(template=template))
    other = tokenizer()
    other.chat_template = {"tool_use": TEMPLATE}
    with pytest.raises(ChatTemplateError, match="cannot be found: "):
        ChatCodec(other)


def test_all_prompts_end_alike() -> None:
    """The seam is checked once: a prompt with another end would be scored unchecked.

    A template that ends no turn leaves it to eos.
    """
    hf_tokenizer = tokenizer(template=TEMPLATE.replace("<e>", ""))
    assert (
        ChatCodec(hf_tokenizer).end_of_turn == ChatCodec(hf_tokenizer).pad == hf_tokenizer.eos_token_id == 0
    )
    ends = TEMPLATE.replace("{{ 'assistant", "{{ messages[0].content[:1] + 'assistant")
    codec = ChatCodec(tokenizer(template=ends))
    assert codec.prompt_text("an ace").endswith("aassistant\n")
    with pytest.raises(ChatTemplateError, match=r"ends a prompt with .*kassistant\\n', and another with"):
        codec.encode_prompt("king")


# -- control tokens in texts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_brings_no_control_tokens(shape: str) -> None:
    """The text can end no turn, begin none and pad nothing, and is read as it is."""
    codec = ChatCodec(SHAPES[shape][0]())
    hf_tokenizer = codec.tokenizer
    spelt = [token for token, _ in sorted(hf_tokenizer.get_added_vocab().items()) if not token.isspace()]
    text = "x" + "".join(spelt) + "\n" + " ".join(spelt) + spelt[0][:1] + spelt[0] + " y"
    special = {index for index, token in hf_tokenizer.added_tokens_decoder.items() if token.special}
    tokens, plain = codec.encode_prompt(text), codec.encode_prompt("x y")
    assert [t for t in tokens if t in special] == [t for t in plain if t in special]
    assert hf_tokenizer.decode(tokens) == codec.prompt_text(text)
    *answer, end = codec.encode_answer(spelt[0])
    assert end == codec.end_of_turn and not set(answer) & special and hf_tokenizer.decode(answer) == spelt[0]


def test_control_tokens_that_a_template_names_trims_or_cannot_cut() -> None:
    """``<think>`` is not special in Qwen3; ``<b>`` is neither special nor named, and stays one token."""
    hf_tokenizer = chatml()
    hf_tokenizer.chat_template = CHATML + "{% if add_generation_prompt %}<think>\n\n</think>\n\n{% endif %}"
    hf_tokenizer.add_tokens(["<think>", "</think>", "<b>"])
    think, close, bold = hf_tokenizer.convert_tokens_to_ids(["<think>", "</think>", "<b>"])
    tokens = ChatCodec(hf_tokenizer).encode_prompt("a <think> b </think> <b>")
    assert (tokens.count(think), tokens.count(close), tokens.count(bold)) == (1, 1, 1)
    codec = ChatCodec(llama("{1}"))
    ends = codec.tokenizer("<|end_header_id|>\n\n<", add_special_tokens=False)["input_ids"]
    tokens = codec.encode_prompt("\n <|eot_id|> \n")
    assert any(tokens[i : i + len(ends)] == tuple(ends) for i in range(len(tokens)))
    assert tokens == codec.encode_prompt("<|eot_id|>")
    hf_tokenizer = tokenizer()
    hf_tokenizer.add_special_tokens({"additional_special_tokens": ["§"]})
    codec = ChatCodec(hf_tokenizer)
    for encode in (codec.encode_prompt, codec.encode_answer):
        with pytest.raises(TokenBoundaryError, match=r"a control token .* the control tokens are <e>, §"):
            encode("a § b")


# -- long prompts --------------------------------------------------------------------------------------------


def test_a_prompt_longer_than_the_model_reads_is_an_error() -> None:
    """<|im_start|>user\\n is 6 tokens, <|im_end|>\\n 2 and <|im_start|>assistant\\n 11: 19 with no text.

    A long text is read without recursion.
    """
    codec = ChatCodec(chatml())
    assert len(codec.encode_prompt("x" * (4096 - 19))) == 4096
    with pytest.raises(PromptLengthError, match=r"of 4078 characters has 4097 tokens .* at most 4096"):
        codec.encode_prompt("x" * (4097 - 19))
    hf_tokenizer = chatml()
    hf_tokenizer.model_max_length = 200_000
    for text in ("x" * 100_000, " 12\n" * 25_000):
        assert len(ChatCodec(hf_tokenizer).encode_prompt(text)) == 100_019


def test_prompts_are_kept_up_to_a_number_of_tokens() -> None:
    recent = Recent(limit=6)
    recent.put("a", (1, 2, 3))
    recent.put("b", (4, 5))
    assert recent.get("a") == (1, 2, 3)  # b is now the older
    recent.put("c", (6, 7))
    assert recent.held == 5 and recent.get("b") is None and recent.get("a") and recent.get("c")
    recent.put("d", (0,) * 7)  # longer than all that is kept
    assert recent.held == 0 and recent.get("d") is None
    codec = ChatCodec(chatml())
    assert codec.encode_prompt("x") is codec.encode_prompt("x")


# -- the trie of legal actions -------------------------------------------------------------------------------


END = 99


def digits(action: int) -> tuple[int, ...]:
    """Returns an action's tokens, one per digit, closed by end-of-turn."""
    return (*map(int, str(action)), END)


def build(*actions: int) -> ActionTrie:
    return ActionTrie.build({action: digits(action) for action in actions})


def test_ids_that_begin_one_another() -> None:
    """
    root ─ 1 ─┬─ end               1
              └─ 2 ─┬─ end         12
                    └─ 3 ─ end     123
         └ 2 ─ end                 2

    What is shared at first is no decision: 123 and 124 differ in their third digit only.
    """
    trie = build(1, 12, 123, 2)
    assert trie.nodes == (Node((), (1, 2)), Node((1,), (2, END)), Node((1, 2), (3, END)))
    assert trie.paths == {
        1: (Branch(0, 0), Branch(1, 1)),
        12: (Branch(0, 0), Branch(1, 0), Branch(2, 1)),
        123: (Branch(0, 0), Branch(1, 0), Branch(2, 0)),
        2: (Branch(0, 1),),
    }
    assert trie.following == {Branch(0, 0): 1, Branch(1, 0): 2}
    assert trie.ends == {Branch(1, 1): 1, Branch(2, 1): 12, Branch(2, 0): 123, Branch(0, 1): 2}
    assert build(123, 124).nodes == (Node((1, 2), (3, 4)),)
    trie = build(123)
    assert trie.nodes == () and trie.paths == {123: ()} and not trie.following and not trie.ends
    refused: tuple[tuple[dict[int, tuple[int, ...]], str], ...] = (
        ({}, "at least one legal action, got none"),
        ({3: (3, END), 4: (3, END)}, r"action 3's tokens \[3, 99\] equal or begin those of \[4\]"),
        ({12: (1, 2), 1: (1,), 2: (2, END)}, r"action 1's tokens .* \[12\]"),
    )
    for sequences, message in refused:
        with pytest.raises(ValueError, match=message):
            ActionTrie.build(sequences)


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=60))
def test_walking_the_trie_enumerates_the_legal_set(legal: set[int]) -> None:
    """Each action has a path from the root, with its tokens, and every child is of such a path."""
    trie = build(*legal)
    assert set(trie.paths) == legal and len(set(trie.paths.values())) == len(legal)
    children = {
        Branch(at, child) for at, node in enumerate(trie.nodes) for child in range(len(node.children))
    }
    assert {choice for path in trie.paths.values() for choice in path} == children
    assert trie.ends == {path[-1]: action for action, path in trie.paths.items() if path}
    assert trie.following.keys() == children - trie.ends.keys()
    for action, path in trie.paths.items():
        assert [choice.node for choice in path] == [0, *(trie.following[c] for c in path[:-1])][: len(path)]
        # Parents come before children.
        assert [choice.node for choice in path] == sorted({choice.node for choice in path})
        for choice in path:
            node = trie.nodes[choice.node]
            tokens = (*node.prefix, node.children[choice.child])
            assert digits(action)[: len(tokens)] == tokens
