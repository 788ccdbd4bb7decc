"""Rules and states in upstream's own words, from a folder of upstream's classes (``OPENSPIEL_AGENTS_PATH``).

A file of the folder has a class per game, with ``game_name``, ``get_rules()`` and
``format_state(state, player_id)``. A class may also write the messages of a conversation:
``generate_system_prompt()`` and ``generate_user_prompt(state, player_id, legal_actions)``.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from game_gym.spec import GameSpec, State
from task_gym.errors import GameError, nearest

VARIABLE = "OPENSPIEL_AGENTS_PATH"
"""The environment variable that names the folder."""

_lock = threading.RLock()  # imports change sys.path for a moment


def with_upstream_texts(spec: GameSpec) -> GameSpec:
    """Returns a declaration with upstream's rules and state texts if the variable is set, else as it is.

    Raises:
        GameError: the folder does not exist or has no class for the game, or the class fails.
    """
    folder = os.environ.get(VARIABLE)
    return spec if not folder else _changed(spec, str(Path(folder).resolve()))


@lru_cache(maxsize=256)
def _changed(spec: GameSpec, folder: str) -> GameSpec:
    words = Words(spec.name, _find(folder, spec.name))
    return dataclasses.replace(spec, rules=lambda params: words.rules(), describe=words.describe, agent=words)


class Words:
    """Calls one of upstream's classes, and says which one failed.

    Args:
        game: The game's name.
        agent: An object of the class.
    """

    def __init__(self, game: str, agent: Any) -> None:
        self._game, self._agent = game, agent

    def rules(self) -> str:
        """Returns the rules."""
        return self._call("get_rules")

    def describe(self, state: State, seat: int) -> str:
        """Returns the state's text for a seat."""
        return self._call("format_state", state, seat)

    def system(self) -> str | None:
        """Returns the first message of a conversation; None if the class writes none."""
        return self._call("generate_system_prompt") if self._has("generate_system_prompt") else None

    def user(self, state: State, seat: int, legal: Sequence[int]) -> str | None:
        """Returns the message of a turn; None if the class writes none."""
        if not self._has("generate_user_prompt"):
            return None
        return self._call("generate_user_prompt", state, seat, list(legal))

    def _has(self, method: str) -> bool:
        return callable(getattr(self._agent, method, None))

    def _call(self, method: str, *arguments: Any) -> str:
        where = f"{VARIABLE}: {type(self._agent).__name__}.{method} of {self._game!r}"
        try:
            text = getattr(self._agent, method)(*arguments)
        except Exception as error:
            raise GameError(f"{where} raised {type(error).__name__}: {error!s:.300}") from error
        if not isinstance(text, str):
            raise GameError(f"{where} returned {text!r:.60}, allowed: a text")
        return text


def _find(folder: str, game: str) -> Any:
    """Returns an object of the folder's class for a game."""
    path = Path(folder)
    if not path.is_dir():
        raise GameError(f"{VARIABLE}: {folder!r} was given, allowed: a folder of upstream's classes")
    found, failed = _load(folder)
    if game not in found:
        reasons = f"; files that failed: {'; '.join(failed)}" if failed else ""
        raise GameError(
            f"{VARIABLE}: {folder!r} has no class for {game!r}, allowed there: "
            f"{', '.join(sorted(found)) or 'nothing'}{nearest(game, found)}{reasons}"
        )
    return found[game]


@lru_cache(maxsize=8)
def _load(folder: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the objects of a folder by game, and why each other file or class has none."""
    found: dict[str, Any] = {}
    failed: list[str] = []
    with _lock:
        for file in sorted(Path(folder).glob("*.py")):
            if file.stem.startswith("_"):
                continue
            try:
                for make in _classes(folder, file.stem):
                    agent: Any = make()
                    found[agent.game_name] = agent
            except Exception as error:  # the code of others may raise anything
                failed.append(f"{file.name}: {type(error).__name__}: {error!s:.200}")
    return found, failed


def _classes(folder: str, stem: str) -> list[type]:
    """Returns the classes that a file declares. The files may import one another and what is beside them."""
    package = f"_openspiel_agents_{sha256(folder.encode()).hexdigest()[:12]}"
    if package not in sys.modules:
        sys.modules[package] = module = ModuleType(package)
        module.__path__ = [folder]
    kept = sys.path.copy()
    sys.path.insert(0, str(Path(folder).parent))  # where upstream's base class is
    try:
        loaded = import_module(f"{package}.{stem}")
    finally:
        sys.path[:] = kept
    return [
        value
        for value in vars(loaded).values()
        if inspect.isclass(value) and value.__module__ == loaded.__name__ and hasattr(value, "get_rules")
    ]
