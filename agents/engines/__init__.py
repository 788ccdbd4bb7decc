"""The engines, which run the model's forward passes. A new one is a file here and its row in ``ENGINES``."""

from collections.abc import Mapping
from typing import Any

from gamespiel.agents.engines.base import (
    ContextLengthError,
    Engine,
    UnsupportedModelError,
    find_obstacle,
    positions_of,
)
from gamespiel.agents.engines.budgets import Budgets
from gamespiel.agents.engines.padded import PaddedEngine
from gamespiel.agents.engines.shared import SharedEngine
from task_gym.errors import check_choice

__all__ = [
    "ENGINES", "Budgets", "ContextLengthError", "Engine", "PaddedEngine", "SharedEngine",
    "UnsupportedModelError", "is_small", "make_engine", "positions_of",
]  # fmt: skip

SMALL = 5_000_000
"""Parameters below which the layout of a tree takes longer than it saves."""

ENGINES: Mapping[str, Any] = {"shared": SharedEngine, "padded": PaddedEngine}


def is_small(model: Any) -> bool:
    """Returns whether a model has less than ``SMALL`` parameters."""
    return sum(parameter.numel() for parameter in model.parameters()) < SMALL


def make_engine(model: Any, reading: str, budgets: Budgets | None = None, **settings: Any) -> Engine:
    """Returns an engine for a causal language model, or for the PEFT model around one.

    Args:
        model: The model.
        reading: A name in ``ENGINES``, or "auto": ``shared`` if the model's attention allows it and it has at
            least ``SMALL`` parameters.
        budgets: The most tokens per forward.
        settings: See ``base.Engine``.

    Raises:
        ArgumentError: there is no such engine.
        UnsupportedModelError: it cannot read this model.
    """
    check_choice("reading", reading, ("auto", *ENGINES))
    if reading == "auto":
        reading = "padded" if is_small(model) or find_obstacle(model) else "shared"
    engine: Engine = ENGINES[reading](model, budgets, **settings)
    return engine
