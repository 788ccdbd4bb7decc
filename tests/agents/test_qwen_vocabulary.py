"""Qwen's real vocabulary, which ``make vocabulary`` fetches, and all games' prompts and answers in it."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
from tokenizers import AddedToken
from transformers import Qwen2Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

import game_gym  # noqa: F401  # registers the environments
from game_gym.games import TABLE
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import ActionTrie
from scripts.fetch_qwen_vocabulary import PLACE
from task_gym.wrappers import NamedActions

pytestmark = pytest.mark.weights("vocabulary")

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
NAMED: dict[str, tuple[str, ...]] = {
    "qwen2": (),
    "qwen2.5": (
        "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
        "<|repo_name|>", "<|file_sep|>",
    ),
}  # fmt: skip
NAMED["qwen3"] = (*NAMED["qwen2.5"], "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Added tokens that are not special: a decoder does not hide them."""

TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
)
NO_THOUGHTS = "<think>\n\n</think>\n\n"
TEMPLATES = {
    "qwen2": TURNS + "{% endif %}",
    "qwen2.5": (
        "{% if messages[0].role != 'system' %}<|im_start|>system\n"
        "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n{% endif %}"
    )
    + TURNS
    + "{% endif %}",
    "qwen3": TURNS.replace(
        "{{ m.content", f"{{% if m.role == 'assistant' %}}{NO_THOUGHTS}{{% endif %}}{{{{ m.content"
    )
    + f"{{% if enable_thinking is defined and enable_thinking is false %}}{NO_THOUGHTS}{{% endif %}}"
    "{% endif %}",
}
"""The text that the models' templates write for a question, its generation prompt and an answer."""

GENERATIONS = tuple(TEMPLATES)
CHARACTERS = bytes_to_unicode()


@cache
def ranks() -> dict[bytes, int]:
    """Returns the tokens' bytes with their ranks, which are also their ids."""
    lines = (line.split() for line in PLACE.read_bytes().splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def merged(text: bytes, below: int | None = None, until: int = 1) -> list[bytes]:
    """Returns the parts of a word after the merges of ranks below ``below``, down to ``until`` parts."""
    parts = [text[i : i + 1] for i in range(len(text))]
    while len(parts) > until:
        pairs = [ranks().get(a + b, len(ranks())) for a, b in pairwise(parts)]
        lowest = min(pairs)
        if lowest >= (len(ranks()) if below is None else below):
            break
        at = pairs.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def written(token: bytes) -> str:
    """Returns bytes as the characters that byte-level BPE writes for them."""
    return "".join(map(CHARACTERS.__getitem__, token))


@cache
def merges() -> list[tuple[str, str]]:
    """Returns the merges by rank: for each token of several bytes, the two parts it is merged from."""
    pairs = (merged(token, rank, 2) for token, rank in ranks().items() if len(token) > 1)
    return [(written(left), written(right)) for left, right in pairs]


@cache
def tokenizer(generation: str) -> Any:
    """Returns the tokenizer of "qwen2", "qwen2.5" or "qwen3"."""
    added = [AddedToken(token, normalized=False, special=True) for token in SPECIAL]
    added += [AddedToken(token, normalized=False) for token in NAMED[generation]]
    return Qwen2Tokenizer(
        vocab={written(token): rank for token, rank in ranks().items()},
        merges=merges(),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        added_tokens_decoder=dict(enumerate(added, len(ranks()))),
        chat_template=TEMPLATES[generation],
        model_max_length=131_072,
    )


END, START, STOP = 151_643, 151_644, 151_645  # <|endoftext|>, <|im_start|>, <|im_end|>
ASSISTANT = (START, 77_091, 198)  # <|im_start|>assistant\n
THOUGHTLESS = (151_667, 271, 151_668, 271)  # <think>\n\n</think>\n\n


class State(NamedTuple):
    """A state of random play: its game, prompt, legal actions and their names."""

    game: str
    text: str
    legal: tuple[int, ...]
    names: tuple[str, ...]


@cache
def codec(generation: str, *, think: bool = False) -> ChatCodec:
    return ChatCodec(tokenizer(generation), think=think)


def random_states(game: str) -> Iterator[State]:
    """Yields states of random play of a game's variants, every third turn."""
    index = TABLE.index(game)
    every = (index * 100_000_000, (index + 1) * 100_000_000 - 1)
    env = NamedActions(gym.make("GameSpiel-v0", task_ids=[every], opponent="random"))
    rng = random.Random(index)
    while True:
        text, info = env.reset(seed=rng.randrange(2**31))
        while "result" not in info:
            if info["turn"] % 3 == 0:
                yield State(game, str(text), tuple(info["legal_actions"]), text.names)
            text, *_, info = env.step(rng.choice(info["legal_actions"]))


@cache
def states() -> list[State]:
    """Returns 12 states per game, 264 in all."""
    return [state for game in TABLE for state in islice(random_states(game), 12)]


def test_the_vocabulary_and_the_prompts_are_those_of_the_models() -> None:
    """256 bytes and a merge for each further token; 22 added tokens in Qwen2.5, 26 in Qwen3.

    Qwen2.5 has a system message of its own; Qwen3 is kept from thinking unless it is asked to.
    """
    assert len(ranks()) == END and len(merges()) == END - 256
    assert [len(tokenizer(generation)) - END for generation in GENERATIONS] == [14, 22, 26]
    qwen3 = tokenizer("qwen3")
    thoughts = qwen3.convert_tokens_to_ids(["<tool_call>", "<think>", "</think>"])
    assert thoughts == [151_657, 151_667, 151_668]
    assert (qwen3.eos_token_id, qwen3.pad_token_id, qwen3.bos_token_id) == (STOP, END, None)
    # ``<`` | ``im`` ``_end`` | ``>``, as the tokenizer has it that knows no control tokens.
    assert codec("qwen3").encode_answer("<|im_end|>") == (27, 91, 318, 6213, 91, 29, STOP)
    for generation in GENERATIONS:
        assert codec(generation).encode_action(12) == (16, 17, STOP) and codec(generation).pad == END
    hello = (START, 872, 198, 9707, 1879, STOP, 198)
    assert codec("qwen2").encode_prompt("Hello world") == (*hello, *ASSISTANT)
    assert codec("qwen3").encode_prompt("Hello world") == (*hello, *ASSISTANT, *THOUGHTLESS)
    assert codec("qwen3", think=True).encode_prompt("Hello world") == (*hello, *ASSISTANT)
    prompt = codec("qwen2.5").encode_prompt("Hello world")
    assert prompt[:3] == (START, 8948, 198) and prompt[-10:] == (*hello, *ASSISTANT)
    system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
    assert tokenizer("qwen2.5").decode(prompt[3:-10]) == system


@pytest.mark.parametrize("generation", ["qwen2.5", "qwen3"])
def test_apart_and_together_are_the_same_tokens_in_all_games(generation: str) -> None:
    """For every legal action, by number and by name."""
    chat_codec = codec(generation)
    for state in states():
        prompt, written = chat_codec.encode_prompt(state.text), chat_codec.prompt_text(state.text)
        texts = [*map(str, state.legal), *state.names]
        whole = [f"{written}{text}<|im_end|>" for text in texts]
        answers = {text: chat_codec.encode_answer(text) for text in texts}
        for text, together in zip(texts, chat_codec.tokenizer(whole)["input_ids"], strict=True):
            assert prompt + answers[text] == tuple(together), (state.game, text)
        for spelt in (texts[: len(state.legal)], state.names):
            assert len(ActionTrie.build({at: answers[text] for at, text in enumerate(spelt)}).paths) == len(
                spelt
            )
