"""Samplers, which choose the starts of episodes and learn from the outcomes."""

from task_gym.samplers.base import Outcome, Start, TaskSampler
from task_gym.samplers.failures import Failures
from task_gym.samplers.sharing import SharedSampler, share
from task_gym.samplers.stages import Stage, Stages
from task_gym.samplers.uniform import Uniform
from task_gym.samplers.unlisting import Unlisting

__all__ = [
    "Failures",
    "Outcome",
    "SharedSampler",
    "Stage",
    "Stages",
    "Start",
    "TaskSampler",
    "Uniform",
    "Unlisting",
    "share",
]
