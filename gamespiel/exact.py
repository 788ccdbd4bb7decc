"""Exact values of a policy by the side of what could be reached: `game_gym.exact` for language models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_gym import exact
from game_gym.exact import ExactResult, Policy
from gamespiel.agents.policy import LLMPolicy
from gamespiel.config import InvalidValueError
from gamespiel.config.sections import EnvConfig
from task_gym.errors import SizeError

AGENTS: dict[str, Policy] = {
    "random": exact.uniform,
    # The lowest legal id is the first of equals.
    "first": exact.greedy(exact.uniform),
}


@dataclass(frozen=True)
class ExactComparison:
    """A policy at temperature 1, its greedy version, and the model without adapters (None for baselines)."""

    policy: ExactResult
    greedy: ExactResult
    untrained: ExactResult | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def of_policy(policy: LLMPolicy, env: EnvConfig, *, trained: bool = True) -> ExactComparison:
    """A language model's exact values against the configured opponent.

    Args:
        policy: The model with its adapters.
        env: Says the game and the opponent.
        trained: Whether the values without adapters are computed too.

    Raises:
        SizeError: a game that is too large to enumerate, or several games.
        ArgumentError: an opponent whose policy is not known exactly.
        InvalidValueError: games that env.max_turns cuts, or actions answered by name.
    """
    variant, own = _variant(env), _asked_once(policy.distribution)

    def value(answer: Policy) -> ExactResult:
        return exact.evaluate(variant, answer, env.opponent, env.rules)

    untrained = None
    if trained:
        with policy.reference():
            untrained = value(policy.distribution)
    return ExactComparison(value(own), value(exact.greedy(own)), untrained)


def share(policy: LLMPolicy, env: EnvConfig) -> float:
    """The share of best response alone, at temperature 1.

    Raises:
        TaskGymError: as `of_policy`.
    """
    return exact.evaluate(_variant(env), policy.distribution, env.opponent, env.rules).share


def of_agent(name: str, env: EnvConfig) -> ExactComparison:
    """A baseline's exact values.

    Raises:
        InvalidValueError: a baseline that is no fixed policy.
        TaskGymError: as `of_policy`.
    """
    if name not in AGENTS:
        raise InvalidValueError(
            "--exact needs an agent whose policy is known exactly: "
            f"{', '.join(AGENTS)} or a checkpoint, not {name!r}"
        )
    result = exact.evaluate(_variant(env), AGENTS[name], env.opponent, env.rules)
    greedy = exact.evaluate(_variant(env), exact.greedy(AGENTS[name]), env.opponent, env.rules)
    return ExactComparison(result, greedy, None)


def is_enumerable(env: EnvConfig) -> bool:
    """Whether the configured game, against the configured opponent, can be evaluated exactly."""
    if env.answer != "id" or env.max_turns is not None:
        return False
    if env.opponent not in exact.OPPONENTS:
        return False
    try:
        exact.information_states(_variant(env), rules=False)
    except SizeError:
        return False
    return True


def _asked_once(policy: Policy) -> Policy:
    """`policy`, with its answers kept: of one game, every evaluation asks the same."""
    kept: list[Sequence[NDArray[np.float64]]] = []

    def answer(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> Sequence[NDArray[np.float64]]:
        if not kept:
            kept.append(policy(texts, legal))
        return kept[0]

    return answer


def _variant(env: EnvConfig) -> Any:
    if env.task_id is None and env.game is None:
        raise SizeError("exact evaluation takes one game: give env.task_id or env.game, not a set of them")
    if env.answer != "id":
        raise InvalidValueError(
            f"exact evaluation asks for numbers of actions: env.answer must be 'id', not {env.answer!r}"
        )
    if env.max_turns is not None:
        raise InvalidValueError(
            f"exact evaluation plays every game to its end: env.max_turns must be null, not {env.max_turns}"
        )
    return exact.find_variant(env.task_id, env.game, env.params or None)
