"""The action, observation and state, by the names under which OpenEnv looks for them."""

from task_gym.openenv import TaskAction as GameSpielAction
from task_gym.openenv import TaskObservation as GameSpielObservation
from task_gym.openenv import TaskState as GameSpielState

__all__ = ["GameSpielAction", "GameSpielObservation", "GameSpielState"]
