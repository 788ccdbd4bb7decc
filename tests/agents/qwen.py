"""Qwen's tokenizers, built from the ranks of their vocabulary, which ``make vocabulary`` fetches."""

from __future__ import annotations

import base64
from functools import cache
from itertools import pairwise
from typing import Any

from tokenizers import AddedToken

from scripts.fetch_qwen_vocabulary import PLACE

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
    return "".join(map(_characters().__getitem__, token))


@cache
def _characters() -> list[str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return [bytes_to_unicode()[byte] for byte in range(256)]


@cache
def merges() -> list[tuple[str, str]]:
    """Returns the merges by rank: for each token of several bytes, the two parts it is merged from."""
    pairs = (merged(token, rank, 2) for token, rank in ranks().items() if len(token) > 1)
    return [(written(left), written(right)) for left, right in pairs]


@cache
def tokenizer(generation: str) -> Any:
    """Returns the tokenizer of "qwen2", "qwen2.5" or "qwen3"."""
    from transformers import Qwen2Tokenizer

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
