"""The registry of rewards: wrappers by name, so that a configuration can ask for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from task_gym.errors import ArgumentError, explain_unknown, quote

OWN = ("score", "upstream")
"""The rewards that environments of games pay by themselves."""

Wrap: TypeAlias = "Callable[[Any], Any]"
"""An environment to that environment in a wrapper that pays another reward."""

REGISTRY: dict[str, Wrap] = {}
"""The rewards that modules have brought, by name."""


def register_reward(name: str, wrap: Wrap) -> None:
    """Adds a reward, which a configuration names in ``env.reward``.

    Args:
        name: The word.
        wrap: Builds the wrapper around an environment that pays the score: a class derived from
            ``task_gym.wrappers.base.MaskedWrapper``, or a function that returns one.

    Raises:
        ArgumentError: the name is taken or not a word, or ``wrap`` cannot be called.
    """
    word = isinstance(name, str) and name.split() == [name]
    if not word or name in OWN or REGISTRY.get(name, wrap) is not wrap:
        taken = ", ".join(reward_names())
        raise ArgumentError(f"reward name {quote(name)} is taken or not a word; taken: {taken}")
    if not callable(wrap):
        raise ArgumentError(
            f"reward {name!r}: {quote(wrap)} was given, needed: a wrapper's class, or a function that "
            "returns an environment in a wrapper"
        )
    REGISTRY[name] = wrap


def reward_names() -> tuple[str, ...]:
    """Returns all names, those of ``OWN`` first."""
    return (*OWN, *sorted(REGISTRY))


def find_reward(name: str) -> Wrap | None:
    """Returns the function that puts an environment into a reward's wrapper; None for those of ``OWN``.

    Raises:
        ArgumentError: there is no such reward.
    """
    if name not in reward_names():
        hint = "" if REGISTRY else "; a reward of your own needs --import MODULE"
        raise ArgumentError(explain_unknown("env.reward", name, reward_names()) + hint)
    return REGISTRY.get(name)
