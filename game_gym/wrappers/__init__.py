"""Wrappers for games, each with one effect. Wrappers for any task are in ``task_gym.wrappers``."""

from game_gym.wrappers.evaluate_conversation import EvaluateConversation
from game_gym.wrappers.layouts import HideLegalActions, ShuffledActions, UpstreamLayout
from game_gym.wrappers.mixed_opponents import MixedOpponents
from game_gym.wrappers.raw_returns import RawReturns
from game_gym.wrappers.tensor import TensorObservation

__all__ = [
    "EvaluateConversation",
    "HideLegalActions",
    "MixedOpponents",
    "RawReturns",
    "ShuffledActions",
    "TensorObservation",
    "UpstreamLayout",
]
