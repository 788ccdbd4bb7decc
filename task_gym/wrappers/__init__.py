"""Wrappers: one effect each."""

from task_gym.wrappers.tokens import TokenObservation

__all__ = ["TokenObservation"]
