"""Environments in other processes, on this machine or a Ray cluster; whatever is lost is played again."""

from task_gym.workers.group import Call, EnvGroup, Frame, Slots
from task_gym.workers.pool import Counts, RemoteGroup, WorkerPool
from task_gym.workers.requests import WorkersError

__all__ = ["Call", "Counts", "EnvGroup", "Frame", "RemoteGroup", "Slots", "WorkerPool", "WorkersError"]
