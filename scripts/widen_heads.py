"""Writes the embedded model with heads that vLLM serves: ``python -m scripts.widen_heads FOLDER``.

vLLM refuses its heads of 16. The written model computes the same, since the other 16 numbers of a head are 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer


def places_of(head_dim: int) -> Tensor:
    """Returns where a head's numbers are in a head of twice the size.

    Rotary embeddings turn numbers i and i + d/2 of a head of d together, i/d giving the speed. In a head of
    2d, numbers 2i and 2i + d turn as fast.
    """
    half = torch.arange(head_dim // 2)
    return torch.cat([2 * half, 2 * half + head_dim])


def widen_rows(weight: Tensor, head_dim: int) -> Tensor:
    """Returns a matrix (heads * d, n) as one (heads * 2d, n)."""
    heads = weight.shape[0] // head_dim
    wide = weight.new_zeros(heads, 2 * head_dim, weight.shape[1])
    wide[:, places_of(head_dim)] = weight.reshape(heads, head_dim, -1)
    return wide.flatten(0, 1)


def widen_heads(model: Any) -> Any:
    """Returns a copy of a Qwen3 model whose heads are twice as large, with the same logits up to rounding.

    Norms of queries and keys are means over a head, so zeros make them sqrt(2) as large each. Their product
    is divided by the square root of the head's size, which is sqrt(2) as large too. So each loses 2^(1/4).
    """
    config = deepcopy(model.config)
    head_dim = config.head_dim
    config.head_dim = 2 * head_dim
    wide = type(model)(config).to(model.dtype)
    weights = dict(model.state_dict())
    for name, weight in weights.items():
        if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight")):
            weights[name] = widen_rows(weight, head_dim)
        elif name.endswith("o_proj.weight"):
            weights[name] = widen_rows(weight.T, head_dim).T.contiguous()
        elif name.endswith(("q_norm.weight", "k_norm.weight")):
            weights[name] = widen_rows(weight[:, None] * 2**-0.25, head_dim)[:, 0]
    wide.load_state_dict(weights)
    return wide.eval()


def write_wide(folder: Path) -> None:
    """Writes the embedded model with heads of 32, and its tokenizer."""
    settings = ModelSettings("tiny", dtype="float32")
    widen_heads(load_base(settings, "cpu", 0)).save_pretrained(folder)
    load_tokenizer(settings).save_pretrained(folder)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1:
        sys.exit("usage: python -m scripts.widen_heads FOLDER")
    write_wide(Path(arguments[0]))


if __name__ == "__main__":
    main()
