"""Wrappers for any task environment, each with one effect."""

from task_gym.wrappers.chat import Conversation, ConversationText
from task_gym.wrappers.common import DictObservation, NamedActions, NamedText, NumericInfo, ZeroCentredReward
from task_gym.wrappers.sampled import Curriculum, FailureReplay
from task_gym.wrappers.tokens import TokenObservation

__all__ = [
    "Conversation",
    "ConversationText",
    "Curriculum",
    "DictObservation",
    "FailureReplay",
    "NamedActions",
    "NamedText",
    "NumericInfo",
    "TokenObservation",
    "ZeroCentredReward",
]
