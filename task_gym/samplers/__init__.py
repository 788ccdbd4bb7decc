"""Samplers, which choose the starts of episodes and learn from the outcomes."""

from task_gym.samplers.automatic import LearningProgress, PrioritizedLevelReplay, Uniform
from task_gym.samplers.base import Outcome, Sampler, Start
from task_gym.samplers.failures import Failures
from task_gym.samplers.sharing import SharedSampler, share
from task_gym.samplers.stages import Stage, Stages
from task_gym.samplers.unlisting import Unlisting

__all__ = [
    "Failures",
    "LearningProgress",
    "Outcome",
    "PrioritizedLevelReplay",
    "Sampler",
    "SharedSampler",
    "Stage",
    "Stages",
    "Start",
    "Uniform",
    "Unlisting",
    "share",
]
