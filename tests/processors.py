"""What the processor that runs the tests can do."""

from __future__ import annotations

import torch

HAS_BFLOAT16 = bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
"""Whether it has instructions for bfloat16, without which products take up to thirty times as long."""
