"""The client, its action and its observation, by the names under which OpenEnv looks for them here."""

from task_gym.openenv import TaskClient as GameSpielEnv

from .models import GameSpielAction, GameSpielObservation

__all__ = ["GameSpielAction", "GameSpielEnv", "GameSpielObservation"]
