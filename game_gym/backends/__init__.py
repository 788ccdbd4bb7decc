"""The backends that play games, one per file, with the same methods: see ``game_gym.backends.base``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from game_gym.backends.affinetes import AffinetesBackend
from game_gym.backends.base import Ending, GameTurn
from game_gym.backends.local import LocalBackend
from task_gym.arguments import check_backend
from task_gym.remote import connect, read_settings
from task_gym.remote.settings import refuse_settings

GameBackend: TypeAlias = LocalBackend | AffinetesBackend


def make_backend(name: str, seeding: str, rules: bool, server: Mapping[str, Any]) -> GameBackend:
    """Returns a new backend of this name; see ``LocalBackend`` for the other arguments.

    Args:
        name: "local" or "affinetes".
        seeding: The seeding protocol.
        rules: Whether observations begin with the rules.
        server: The arguments of "affinetes", by name; see ``task_gym.remote.settings``.

    Raises:
        TaskGymError: there is no such backend, or it cannot be used with these arguments.
    """
    check_backend(name)
    if name == "local":
        refuse_settings(server)
        return LocalBackend(seeding, rules)
    return AffinetesBackend(connect(read_settings(server, "game")), seeding, rules)


__all__ = ["AffinetesBackend", "Ending", "GameBackend", "GameTurn", "LocalBackend", "make_backend"]
