"""Wrappers for any task environment, each with one effect."""

from task_gym.wrappers.chat import ChatObservation
from task_gym.wrappers.conversation import Conversation, ConversationText
from task_gym.wrappers.curriculum import Curriculum
from task_gym.wrappers.dictionary import DictObservation
from task_gym.wrappers.failure_replay import FailureReplay
from task_gym.wrappers.named import NamedActions, NamedText
from task_gym.wrappers.numeric_info import NumericInfo
from task_gym.wrappers.tokens import TokenObservation
from task_gym.wrappers.zero_centred import ZeroCentredReward

__all__ = [
    "ChatObservation",
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
