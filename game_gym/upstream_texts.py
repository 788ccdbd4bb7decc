"""Rules and states in upstream's own words, from a folder of upstream's classes (``OPENSPIEL_AGENTS_PATH``).

A file of the folder has a class per game, with ``game_name``, ``get_rules()`` and
``format_state(state, player_id)``. A class may also write the messages of a conversation:
``generate_system_prompt()`` and ``generate_user_prompt(state, player_id, legal_actions)``.

The message after a reply without a legal action is no part of these classes. It is read, without running
anything, out of upstream's file ``llm_bot.py``: the one that ``OPENSPIEL_LLM_BOT_PATH`` names, or the one
beside the folder.
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
from task_gym.errors import GameError, StateTextError, nearest
from task_gym.templates import Template, read_template

VARIABLE = "OPENSPIEL_AGENTS_PATH"
"""The environment variable that names the folder."""

BOT_VARIABLE, BOT_FILE = "OPENSPIEL_LLM_BOT_PATH", "llm_bot.py"
"""The environment variable that names upstream's file with the refusal of a reply, and the file's name."""

_TRIED, _TRIES = "attempt + 1", "self._max_parsing_retries + 1"
"""The expressions of the refusal's places: the number of the try, and the tries of a move."""

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
    words = Words(spec.name, _find(folder, spec.name), folder)
    return dataclasses.replace(spec, rules=lambda params: words.rules(), describe=words.describe, agent=words)


class Words:
    """Calls one of upstream's classes, and says which one failed.

    A class that fails at a state spoils only one episode (``StateTextError``). Upstream's own of blackjack
    fails at a ten.

    Args:
        game: The game's name.
        agent: An object of the class.
        folder: The folder that has the class.
    """

    def __init__(self, game: str, agent: Any, folder: str) -> None:
        self._game, self._agent, self._folder = game, agent, folder

    def rules(self) -> str:
        """Returns the rules."""
        return self._call(GameError, "get_rules")

    def describe(self, state: State, seat: int) -> str:
        """Returns the state's text for a seat."""
        return self._call(StateTextError, "format_state", state, seat)

    def system(self) -> str | None:
        """Returns the first message of a conversation; None if the class writes none."""
        if not self._has("generate_system_prompt"):
            return None
        return self._call(GameError, "generate_system_prompt")

    def user(self, state: State, seat: int, legal: Sequence[int]) -> str | None:
        """Returns the message of a turn; None if the class writes none."""
        if not self._has("generate_user_prompt"):
            return None
        return self._call(StateTextError, "generate_user_prompt", state, seat, list(legal))

    def refusal(self, tried: int, tries: int) -> str | None:
        """Returns the message after a reply without a legal action; None if there is no file that has it."""
        if (template := _find_refusal(self._folder, os.environ.get(BOT_VARIABLE))) is None:
            return None
        return template.fill({_TRIED: tried, _TRIES: tries})

    def _has(self, method: str) -> bool:
        return callable(getattr(self._agent, method, None))

    def _call(self, kind: type[GameError], method: str, *arguments: Any) -> str:
        where = f"{VARIABLE}: {type(self._agent).__name__}.{method} of {self._game!r}"
        try:
            text = getattr(self._agent, method)(*arguments)
        except Exception as error:
            raise kind(f"{where} raised {type(error).__name__}: {error!s:.300}") from error
        if not isinstance(text, str):
            raise kind(f"{where} returned {text!r:.60}, allowed: a text")
        return text


def _find(folder: str, game: str) -> Any:
    """Returns an object of the folder's class for a game."""
    path = Path(folder)
    if not path.is_dir():
        raise GameError(f"{VARIABLE}: {folder!r} was given, allowed: a folder of upstream's classes")
    agents, failed = _load(folder)
    if game not in agents:
        reasons = f"; files that failed: {'; '.join(failed)}" if failed else ""
        raise GameError(
            f"{VARIABLE}: {folder!r} has no class for {game!r}, allowed there: "
            f"{', '.join(sorted(agents)) or 'nothing'}{nearest(game, agents)}{reasons}"
        )
    return agents[game]


@lru_cache(maxsize=8)
def _load(folder: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the objects of a folder by game, and why each other file or class has none."""
    agents: dict[str, Any] = {}
    failed: list[str] = []
    with _lock:
        for file in sorted(Path(folder).glob("*.py")):
            if file.stem.startswith("_"):
                continue
            try:
                for make in _classes(folder, file.stem):
                    agent: Any = make()
                    agents[agent.game_name] = agent
            except Exception as error:  # the code of others may raise anything
                failed.append(f"{file.name}: {type(error).__name__}: {error!s:.200}")
    return agents, failed


def _classes(folder: str, stem: str) -> list[type]:
    """Returns the classes that a file declares. The files may import one another and what is beside them."""
    package = f"_openspiel_agents_{sha256(folder.encode()).hexdigest()[:12]}"
    if package not in sys.modules:
        sys.modules[package] = module = ModuleType(package)
        module.__path__ = [folder]
    path = sys.path.copy()
    sys.path.insert(0, str(Path(folder).parent))  # where upstream's base class is
    try:
        loaded = import_module(f"{package}.{stem}")
    finally:
        sys.path[:] = path
    return [
        value
        for value in vars(loaded).values()
        if inspect.isclass(value) and value.__module__ == loaded.__name__ and hasattr(value, "get_rules")
    ]


@lru_cache(maxsize=8)
def _find_refusal(folder: str, named: str | None) -> Template | None:
    """Returns upstream's refusal of a reply; None if no file is named, and none is beside the folder.

    Raises:
        GameError: the file has no such text.
    """
    file = Path(named) if named else Path(folder).parent / BOT_FILE
    if not named and not file.exists():
        return None
    try:
        return read_template(file, "error_msg", (_TRIED, _TRIES))
    except (OSError, SyntaxError, ValueError) as error:
        subject = f"{BOT_VARIABLE}: {named!r} was given" if named else f"{VARIABLE}: beside the folder"
        raise GameError(
            f"{subject}, allowed: upstream's file {BOT_FILE} with its message after a wrong reply; {error}"
        ) from error
