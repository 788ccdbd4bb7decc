"""Environments on a server, reached through affinetes: one connection per process and server."""

from task_gym.remote.connection import Connection, connect
from task_gym.remote.protocol import Failure, Reply
from task_gym.remote.settings import Settings, read_settings

__all__ = ["Connection", "Failure", "Reply", "Settings", "connect", "read_settings"]
