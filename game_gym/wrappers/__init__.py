"""Wrappers for games, each with one effect. Wrappers for any task are in ``task_gym.wrappers``."""

from game_gym.wrappers.evaluate_conversation import EvaluateConversation
from game_gym.wrappers.mixed_opponents import MixedOpponents
from game_gym.wrappers.raw_returns import RawReturns
from game_gym.wrappers.tensor import TensorObservation
from game_gym.wrappers.upstream_layout import UpstreamLayout

__all__ = ["EvaluateConversation", "MixedOpponents", "RawReturns", "TensorObservation", "UpstreamLayout"]
