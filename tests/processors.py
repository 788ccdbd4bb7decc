"""Instructions of the processor that runs the tests."""

from __future__ import annotations

import torch

HAS_BFLOAT16 = bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
"""Whether the processor has instructions for bfloat16; PyTorch emulates them otherwise, which is slow."""
