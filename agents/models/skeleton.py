"""A model without its weights, as the first rank sends it to the others."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch
from torch import nn

from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.models.loading import load_base
from gamespiel.agents.ranks import Ranks


def load_skeleton(settings: ModelSettings, device: torch.device | str, seed: int, ranks: Ranks) -> Any:
    """Returns the frozen base model on the CPU: on the first rank with its weights, on others without.

    So the files are read once, and the memory of a machine has the model once.

    Raises:
        RanksError: this process is alone, or the first rank failed.
        ModelError, MemoryLimitError: as ``load_base`` does, on all ranks.
    """
    ranks.require_several()
    loaded: list[Any] = []

    def load() -> bytes:
        loaded.append(load_base(settings, device, seed))
        return dump_skeleton(loaded[0])

    skeleton = ranks.lead(load)
    return loaded[0] if loaded else pickle.loads(skeleton)


def dump_skeleton(model: nn.Module) -> bytes:
    """Returns a model's modules, buffers and configuration, with the shapes and types of its parameters.

    ``pickle.loads`` makes a model of them. Its parameters are frozen, 0, and take no memory, however large
    they are; modules that share one still share it.
    """
    written = io.BytesIO()
    _SkeletonPickler(written, pickle.HIGHEST_PROTOCOL).dump(model)
    return written.getvalue()


class _SkeletonPickler(pickle.Pickler):
    """Pickles parameters as their shapes and types."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, nn.Parameter):
            return _make_parameter, (tuple(obj.shape), obj.dtype)
        return NotImplemented


def _make_parameter(shape: tuple[int, ...], dtype: torch.dtype) -> nn.Parameter:
    """Returns a parameter whose numbers are all one number in memory."""
    return nn.Parameter(torch.zeros((), dtype=dtype).expand(shape), requires_grad=False)
