"""The wrapper that replaces the text by the game's own tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from game_gym.spec import Variant
from game_gym.wrappers.base import game_env
from task_gym.errors import ArgumentError, GameError
from task_gym.wrappers.base import Info, TurnWrapper, check_text

Tensor = NDArray[np.float32]

_KINDS = ("information_state_tensor", "observation_tensor")
"""OpenSpiel's names of the two tensors, the preferred one first."""


class TensorObservation(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Replaces the text by OpenSpiel's tensor for the seat to move, float32.

    It is the information state tensor if the game has one, because that shows all that the seat has seen, as
    the text does. Otherwise it is the observation tensor: the position, in games that hide nothing. In place
    of the closing text the tensor is all zeros: there is nothing left to choose, and a game that was given up
    has no final position. The text stays in ``info["text"]``.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with a local backend.
        flat: Whether the tensor has one dimension; else the game's own shape, as (9, 5, 5) in hex.

    Raises:
        ArgumentError: the environment is no game, its observations are no texts, or its variants have tensors
            that differ in kind or shape.
        GameError: a game has no tensor.
    """

    def __init__(self, env: gym.Env[str, Any], flat: bool = True) -> None:
        super().__init__(env, flat=flat)
        check_text(self)
        self._game = game_env(self)
        self._kind, shape = one_tensor(self._game.variants)
        self._shape = (math.prod(shape),) if flat else shape
        # Some have counts and points, so that only the number format bounds them all.
        limits = np.finfo(np.float32)
        self.observation_space = gym.spaces.Box(limits.min, limits.max, shape=self._shape, dtype=np.float32)

    def show(self, observation: str, info: Info) -> tuple[Tensor, Info]:
        """Returns the tensor of the seat to move, and the info with the text."""
        info = {**info, "text": observation}
        if not info["legal_actions"]:
            return np.zeros(self._shape, dtype=np.float32), info
        values = getattr(self._game.state, self._kind)(info["seat"])
        return np.array(values, dtype=np.float32).reshape(self._shape), info


def one_tensor(variants: Sequence[Variant]) -> tuple[str, tuple[int, ...]]:
    """Returns kind and shape of the tensor that all these variants have.

    Raises:
        ArgumentError: they differ.
        GameError: a game has no tensor.
    """
    first, *others = variants
    tensor = _tensor(first)
    for variant in others:
        if _tensor(variant) != tensor:
            raise ArgumentError(
                f"TensorObservation: an environment was given whose tensors differ: {_described(first)}, "
                f"{_described(variant)}; allowed: variants that have the same"
            )
    return tensor


def _tensor(variant: Variant) -> tuple[str, tuple[int, ...]]:
    """Returns kind and shape of the tensor that shows a game."""
    for kind in _KINDS:
        if getattr(variant.game.get_type(), f"provides_{kind}"):
            return kind, tuple(getattr(variant.game, f"{kind}_shape")())
    raise GameError(
        f"game: {variant.spec.name!r} was given, for which OpenSpiel has no tensor; allowed: games with an "
        "information state tensor or an observation tensor"
    )


def _described(variant: Variant) -> str:
    kind, shape = _tensor(variant)
    return f"{variant.game} has an {kind} of shape {shape}"
