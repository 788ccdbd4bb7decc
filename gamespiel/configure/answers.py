"""The answers, and how each is read from text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import game_gym.opponents  # noqa: F401  (registers the opponents of games)
from game_gym.games import DECLARED, TABLE
from gamespiel.agents.models.architectures import KNOWN
from gamespiel.agents.models.weights import is_gguf
from gamespiel.config import InvalidValueError, ModelConfig, presets, resolve
from task_gym.errors import nearest, shown, unknown
from task_gym.ids import TASK_LIMIT, check_task_id
from task_gym.opponents import OPEN, SELF, find_opponent, opponent_names

TINY = ModelConfig.model_name
TRACES = "traces"
CPU = "cpu"
CARDS = ("12gb", "16gb", "24gb", "80gb", CPU)
NONE = "none"
MOST_HOURS = 24 * 365


class ModelAnswer(NamedTuple):
    """A name for ``model.model_name``, and the presets that are made for it, or the one that was named."""

    name: str
    presets: tuple[str, ...] = ()


class TaskAnswer(NamedTuple):
    """Tasks: traces, or games by name and task ids as (first, last) pairs."""

    traces: bool = False
    games: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()


class Answers(NamedTuple):
    """All answers.

    Attributes:
        model: The model.
        card: The card's memory in GiB; None for the CPU.
        tasks: The tasks.
        opponents: One opponent, or the opponents of a curriculum's stages; none for traces.
        hours: The time that the run may take; None if the number of steps is the preset's.
        output: The file to write.
    """

    model: ModelAnswer
    card: float | None
    tasks: TaskAnswer
    opponents: tuple[str, ...]
    hours: float | None
    output: Path


def _refuse(name: str, text: str, why: str) -> InvalidValueError:
    return InvalidValueError(f"--{name}: {shown(text)} was given{why}")


def short_names() -> Mapping[str, str]:
    """Returns the models that a plan knows by short name: "qwen3-4b" is Qwen/Qwen3-4B."""
    ends = {name: name.rpartition("/")[2].lower() for name in KNOWN}
    return {TINY: TINY} | {re.sub(r"-(instruct|it)$", "", end): name for name, end in ends.items()}


def list_presets() -> tuple[str, ...]:
    """Returns the presets that are made for a model and leave tasks and opponents to the answers."""
    starts = tuple(f"{name}-" for name in short_names())
    return tuple(
        name for name in presets() if f"{name}-".startswith(starts) and not resolve(name).curriculum.stages
    )


def read_model(text: str) -> ModelAnswer:
    """Returns the model of a short name, a preset, a hub name, a folder or a GGUF file."""
    names, usable = short_names(), list_presets()
    hub_names = {name.lower(): (short, name) for short, name in names.items()}
    if (word := text.lower()) in names or word in hub_names:
        short, name = (word, names[word]) if word in names else hub_names[word]
        return ModelAnswer(name, tuple(preset for preset in usable if f"{preset}-".startswith(f"{short}-")))
    if text in usable:
        return ModelAnswer(resolve(text).model.model_name, (text,))
    path = Path(text).expanduser()
    is_file = path.is_dir() or (path.is_file() and is_gguf(path))
    if is_file or re.fullmatch(r"[\w.-]+/[\w.-]+", text, re.ASCII):
        return ModelAnswer(text)
    allowed = dict.fromkeys([*names, *usable])
    others = f"a name of the hub as OWNER/NAME, a folder or a .gguf file{nearest(text, allowed)}"
    raise _refuse("model", text, f", allowed: {', '.join(allowed)}, {others}")


def read_card(text: str) -> float | None:
    """Returns a card's memory in GiB; None for the CPU."""
    word = text.lower()
    if word == CPU:
        return None
    size = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:gib|gb|g)?", word, re.ASCII)
    if size is None or not 0 < float(size[1]) < math.inf:
        raise InvalidValueError(f"{unknown('--card', text, CARDS)}, or a number of GiB above 0")
    return float(size[1])


def read_tasks(text: str) -> TaskAnswer:
    """Returns traces, or games and task ids, in a list with commas: "hex, clobber" or "0-99, 200000000"."""
    parts = [part for part in re.split(r"[\s,]+", text) if part]
    if parts == [TRACES]:
        return TaskAnswer(traces=True)
    if not parts:
        raise InvalidValueError("--games: nothing was given, allowed: names of games, task ids, or traces")
    games: list[str] = []
    ranges: list[tuple[int, int]] = []
    for part in parts:
        bounds = re.fullmatch(r"([\d_]+)(?:(?:-|\.\.)([\d_]+))?", part, re.ASCII)
        if part in DECLARED:  # "2048" is a game
            games.append(part)
        elif bounds is not None:
            ranges.append(_read_range(part, bounds[1], bounds[2] or bounds[1]))
        elif part == TRACES:
            raise _refuse("games", text, f", and a run has {TRACES} or games")
        else:
            raise InvalidValueError(f"{unknown('--games', part, [*DECLARED, TRACES])}; or task ids, as 0-99")
    by_name = [game for game in games if game not in TABLE]
    if by_name and len(parts) > 1:
        raise _refuse("games", by_name[0], " with other tasks, and it has no task ids: give it alone")
    return TaskAnswer(games=tuple(dict.fromkeys(games)), ranges=tuple(ranges))


def _read_range(part: str, first: str, last: str) -> tuple[int, int]:
    try:
        low, high = (check_task_id(int(bound), TASK_LIMIT) for bound in (first, last))
    except ValueError as error:
        raise _refuse("games", part, f": {error}") from error
    if low > high:
        raise _refuse("games", part, ", allowed: FIRST-LAST with FIRST <= LAST")
    return low, high


def read_opponents(text: str) -> tuple[str, ...]:
    """Returns an opponent, or those of the stages of a curriculum: "random, mcts:100"."""
    names = tuple(part for part in re.split(r"[\s,]+", text) if part)
    if not names:
        raise InvalidValueError("--opponents: nothing was given, allowed: one, or one per stage")
    allowed = [name for name in (*opponent_names(), SELF) if name != OPEN]
    for name in names:
        if name != SELF and name.partition(":")[0] not in allowed[:-1]:
            raise InvalidValueError(unknown("--opponents", name, allowed))
        if name != SELF:
            find_opponent(name)
    if SELF in names and len(names) > 1:
        raise _refuse("opponents", text, f", and {SELF!r} plays no stage: give it alone")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise _refuse("opponents", repeated[0], " twice, allowed: once per stage")
    return names


def read_hours(text: str) -> float | None:
    """Returns hours, or None for "none": the number of steps is then the preset's."""
    if text.lower() == NONE:
        return None
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= MOST_HOURS:
        most = f"a number above 0 and up to {MOST_HOURS:,} (a year)"
        raise _refuse("hours", text, f", allowed: {most}, or {NONE!r} for the preset's steps")
    return hours


def read_output(text: str, *, force: bool = False) -> Path:
    """Returns the file to write, which must not exist unless ``force`` is given."""
    path = Path(text).expanduser()
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise _refuse("output", text, ", allowed: a name that ends in .yaml or .yml")
    if not path.parent.is_dir():
        raise _refuse("output", text, f", and {str(path.parent)!r} is no folder")
    if path.is_dir():
        raise _refuse("output", text, ", which is a folder")
    if path.exists() and not force:
        raise _refuse("output", text, ", which exists; --force replaces it")
    return path
