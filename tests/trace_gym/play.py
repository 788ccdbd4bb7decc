"""Helpers to play the trace environments: the oracle, whole episodes, infos as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

import trace_gym  # noqa: F401  (registers the environments)

IDS = ("CodeTrace-v0", "CodeTraceChoice-v0", "CodeTraceLines-v0")

Make = Callable[..., Any]
"""A function (name="CodeTrace-v0", **arguments) that makes a bare environment; the fixture ``make_env``."""

ALWAYS = {
    *("task_id", "seed", "game", "seat", "opponent", "turn"),
    *("source", "family", "level", "row", "replaced", "sandbox", "python", "upstream_reward"),
}
"""The keys of an info at every turn, the keys with a mask, and the keys at the end."""

MASKED = {"action_mask", "legal_actions", "admissible_commands"}
AT_THE_END = {*("score", "by_scoring", "success", "returns", "result", "history", "truth", "upstream_reward")}


def oracle(env: Any) -> Any:
    """Returns the right action of the turn."""
    trace = env.trace
    match env.action_space:
        case gym.spaces.Discrete():
            return env._outputs.index(trace.truth)
        case _ if env.spec.id == "CodeTraceLines-v0":
            return trace.truth.removesuffix("\n").split("\n")[len(env._history)]
        case _:
            return trace.truth


def plain(info: dict[str, Any]) -> dict[str, Any]:
    """Returns an info as plain data."""
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in info.items()}


def episode(env: Any, seed: int, options: dict[str, Any] | None = None) -> list[Any]:
    """Plays an episode and returns every turn. Answers are right, but the first is wrong or option 0."""
    text, info = env.reset(seed=seed, options=options)
    opening = plain(info)
    nothing = opening.pop("upstream_reward"), opening.pop("line", None)
    assert nothing == (0.0, None)  # keys that have a value after a step; recorded traces lack them
    record: list[Any] = [[text, opening]]
    over, turn = False, 0
    while not over:
        wrong = 0 if isinstance(env.action_space, gym.spaces.Discrete) else "no idea"
        text, reward, over, truncated, info = env.step(oracle(env) if turn else wrong)
        record.append([text, reward, over, truncated, plain(info)])
        turn += 1
    return record
