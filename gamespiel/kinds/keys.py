"""The keys of the ``env`` section that all kinds of task have, and what they mean to any environment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PositiveFloat
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import LISTED, STRICT, Decode, Index, Many, key


def _check_order(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError("must be [first, last] with first <= last")
    return bounds


TaskRange = Annotated[tuple[Index, Index], LISTED, AfterValidator(_check_order)]
TASK_IDS = ("task_id", "task_ids")
Ranges = list[tuple[int, int]]

Name = Annotated[str, BeforeValidator(str)]
Weight = Annotated[float, Field(gt=0)]
Opponents = str | Annotated[dict[Name, Weight], Field(min_length=1)]
"""An opponent by name, or a mixture: names with the weights by which one is drawn for each episode."""


def list_ranges(task_ids: Iterable[Any]) -> Ranges:
    """Returns ids and ranges as ranges: (first, last) pairs, ends included."""
    return [(entry, entry) if isinstance(entry, int) else (entry[0], entry[1]) for entry in task_ids]


def names_of(opponent: Opponents | None) -> tuple[str, ...]:
    """Returns the names of the opponents that may play."""
    if opponent is None:
        return ()
    return (opponent,) if isinstance(opponent, str) else tuple(opponent)


def format_opponent(opponent: Opponents) -> str:
    """Returns an opponent or a mixture as text: "random", or "random 0.5, mcts:100 0.3"."""
    if isinstance(opponent, str):
        return opponent
    return ", ".join(f"{name} {weight:g}" for name, weight in opponent.items())


PART = ConfigDict(**STRICT, defer_build=True)
"""For a kind's keys: pydantic makes no validator for them, only for the whole section."""


@dataclass(frozen=True, config=PART)
class EnvKeys:
    """The keys of the ``env`` section that all kinds of task have. A kind derives its own from it."""

    env_type: str = key("openspiel", "the kind of task")
    env_mode: Literal["local", "docker", "url"] = key("local", "where the environment runs")
    base_url: str | None = key(None, "env_mode url: the server's address")
    image: str | None = key(None, "env_mode docker: the image (null: upstream's)")
    pull: bool = key(False, "env_mode docker: pull the image first")
    mem_limit: str | None = key(None, "env_mode docker: the most memory, as 2g")
    cpu_limit: PositiveFloat | None = key(None, "env_mode docker: the most CPUs")
    docker_host: str | None = key(None, "env_mode docker: another engine, as ssh://user@host")
    server_timeout: PositiveFloat = key(60.0, "env_mode docker and url: seconds that one call may take")
    task_id: Index | None = key(None, "one task")
    task_ids: Many[Index | TaskRange] = key((), "tasks and [first, last] ranges")
    answer: Literal["id", "name"] = key("id", "how an action is written: its number or its name")
    decode: Decode = key("choice", "choose among the legal answers, or write text that nothing masks")
    think: bool = key(False, "with decode text: the model reasons before it answers")
    illegal: Literal["penalize", "forfeit", "raise"] = key("penalize", "what an illegal action does")


Keys = TypeVar("Keys", bound=EnvKeys)

SERVED = {
    "mode": "env_mode", "base_url": "base_url", "image": "image", "pull": "pull", "mem_limit": "mem_limit",
    "cpu_limit": "cpu_limit", "host": "docker_host", "timeout": "server_timeout",
}  # fmt: skip
"""Arguments of an environment on a server, each with the key that it is from."""

_OF_MODES = {"url": ("base_url",), "docker": ("image", "pull", "mem_limit", "cpu_limit", "host")}


def server_arguments(env: EnvKeys) -> dict[str, Any]:
    """Returns the arguments of an environment that say where it runs; none if it is local."""
    if env.env_mode == "local":
        return {}
    left_out = {name for mode, names in _OF_MODES.items() if mode != env.env_mode for name in names}
    values = {name: getattr(env, env_key) for name, env_key in SERVED.items() if name not in left_out}
    return {"backend": "affinetes", **values}


def server_keys_without_effect(env: EnvKeys) -> list[str]:
    """Returns the keys that are set and belong to another ``env_mode``."""
    default = EnvKeys()
    return [
        SERVED[name]
        for mode, names in _OF_MODES.items()
        if mode != env.env_mode
        for name in names
        if getattr(env, SERVED[name]) != getattr(default, SERVED[name])
    ]
