"""Copies between the CPU and the device of a model. A GPU is waited for only where its values are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def send(values: Tensor | npt.NDArray[Any] | Sequence[Any], device: torch.device | str) -> Tensor:
    """Returns numbers on a device, without waiting for it; a sequence becomes a tensor of int64.

    A GPU's copy from ordinary memory waits for all work that was queued before. One from pinned memory does
    not, and PyTorch keeps that memory until the copy is made. What is on the device already is not copied.
    """
    if not isinstance(values, Tensor):
        values = torch.from_numpy(np.asarray(values, None if isinstance(values, np.ndarray) else np.int64))
    if torch.device(device).type != "cuda" or values.is_cuda:
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def read(*tensors: Tensor) -> list[Tensor]:
    """Returns tensors on the CPU, without gradients; a GPU is waited for once, however many they are."""
    devices = {tensor.device for tensor in tensors if tensor.device.type == "cuda"}
    copies = [tensor.detach().to("cpu", non_blocking=bool(devices)) for tensor in tensors]
    for device in devices:
        torch.cuda.current_stream(device).synchronize()
    return copies
