"""The machine: its versions and speeds, and PyTorch's attention kernels. Only PyTorch is needed."""

from __future__ import annotations

import argparse
import os
from functools import partial
from importlib.metadata import distributions

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu import timing
from benchmarks.gpu.timing import CUDA, DEVICE, Row, attempt, median_ms

PACKAGES = (
    "torch", "transformers", "peft", "accelerate", "bitsandbytes", "tokenizers", "numpy", "gymnasium",
    "stable_baselines3", "open_spiel", "pydantic", "triton", "gguf", "numba",
)  # fmt: skip
LAUNCHES = 3000 if CUDA else 100


def facts(options: argparse.Namespace, end_by: float) -> Row:
    """Returns versions, and how fast the machine launches, multiplies and copies."""
    installed = {one.name.replace("-", "_"): one.version for one in distributions()}
    size, wide = (2**30, 9728) if CUDA else (2**20, 64)
    source, target = (torch.empty(size, dtype=torch.uint8, device=DEVICE) for _ in range(2))
    small, layer = torch.zeros(8, 64, device=DEVICE), torch.nn.Linear(64, 64, device=DEVICE)
    row: Row = {"versions": {name: installed.get(name) for name in PACKAGES}, "cores": os.cpu_count()}
    with torch.no_grad():
        row |= {
            "launch_us": median_ms(lambda: [small.add_(1.0) for _ in range(LAUNCHES)]) / LAUNCHES * 1e3,
            "module_us": median_ms(lambda: [layer(small) for _ in range(LAUNCHES)]) / LAUNCHES * 1e3,
            "matrix_tflops": timing.matrix_peak(torch.bfloat16, 8192 if CUDA else 256) / 1e12,
            "copy_tb_per_second": 2 * size / median_ms(lambda: target.copy_(source)) / 1e9,
        }
        for count in (350, 1000, 4000) if CUDA else (8,):  # rows of a forward, in Qwen3-4B's widest layer
            rows, weight = (torch.randn(n, 2560, device=DEVICE).bfloat16() for n in (count, wide))
            milliseconds = median_ms(partial(F.linear, rows, weight), 20)
            row[f"linear_{count}_tflops"] = 2 * count * weight.numel() / milliseconds / 1e9
    if CUDA:
        card = torch.cuda.get_device_properties(0)
        row |= {
            "gpu": card.name, "memory_gib": timing.to_gib(card.total_memory), "cuda": torch.version.cuda,
            "capability": [card.major, card.minor], "cudnn": torch.backends.cudnn.version(),
            "attention_order": str(getattr(torch._C, "_get_sdp_priority_order", lambda: None)()),
        }  # fmt: skip
    return row


# -- attention ---------------------------------------------------------------------------------------------

HEADS, QUERIES, SIZE = (8, 512, 128) if CUDA else (2, 64, 16)
"""Of Qwen3-4B: key heads, a tile's queries times the heads that share a key head, and a head's size."""

TILES = [(1, 192), (2, 448), (3, 384), (1, 1024)] if CUDA else [(1, 192)]
"""Tiles and keys of each."""

EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
KERNELS = {
    "default": [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, EFFICIENT, MATH],
    "no_cudnn": [SDPBackend.FLASH_ATTENTION, EFFICIENT, MATH],
    "efficient": [EFFICIENT],
    "math": [MATH],
}
"""Kernels that PyTorch may choose; a policy on a GPU leaves out cuDNN's."""


def sdpa(options: argparse.Namespace, end_by: float) -> Row:
    """Returns times and faults of attention on tiles as a token tree has them."""
    row = {name: attempt(partial(_measure_kernel, name)) for name in list(KERNELS)[: 4 if CUDA else 2]}
    with sdpa_kernel(KERNELS["default"]):
        default = attend(2, 448)
    with sdpa_kernel([MATH]):
        exact = attend(2, 448)
    gaps = [timing.relative_distance(a, b) for a, b in zip(default, exact, strict=True)]
    return row | {"default_against_math": gaps}


def attend(tiles: int, keys: int, shift: float = 0.0) -> list[Tensor]:
    """Returns attended values, and the gradients of queries, keys and values.

    ``shift`` lowers all scores by about so much: some heads have massive activations (pytorch#196678).
    """
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(tiles, HEADS, count, SIZE, device=DEVICE, dtype=torch.bfloat16).mul_(0.1)
        for count in (QUERIES, keys, keys)
    )
    if shift:
        q[..., 0], k[..., 0] = 1.0, -shift * SIZE**0.5
    mask = torch.ones(QUERIES, keys, dtype=torch.bool, device=DEVICE).tril_(keys - QUERIES)
    mask[:, 0] = True
    inputs = [tensor.requires_grad_() for tensor in (q, k, v)]
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(tiles, 1, QUERIES, keys))
    return [out, *torch.autograd.grad(out, inputs, torch.ones_like(out))]


def _measure_kernel(name: str) -> Row:
    row: Row = {"first_ms": {}, "again_ms": {}, "not_finite": {}}
    with sdpa_kernel(KERNELS[name]):
        attend(1, 64)  # a library's first call
        for tiles, keys in TILES:
            for call in ("first_ms", "again_ms"):
                row[call][f"{tiles}x{keys}"] = median_ms(partial(attend, tiles, keys), 1, warm_up=0)
        for keys in (384, 448, 704):
            for shift in (0.0, 120.0):
                counts = [int((~tensor.isfinite()).sum()) for tensor in attend(1, keys, shift)]
                row["not_finite"][f"{keys} keys, scores {-shift:.0f}"] = counts
        profiled = timing.profile_kernels(partial(attend, 2, 448), 6)
    return row | {"kernels": [one["name"] for one in profiled.get("longest", ())]}
