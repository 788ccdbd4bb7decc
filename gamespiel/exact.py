"""Exact values of a policy by the side of what could be reached: `game_gym.exact` for language models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from agents.policy import LLMPolicy
from game_gym import exact
from game_gym.exact import ExactResult, Policy
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


def of_policy(policy: LLMPolicy, env: EnvConfig) -> ExactComparison:
    """A language model's exact values against the configured opponent.

    Raises:
        SizeError: a game that is too large to enumerate, or several games.
        ArgumentError: an opponent whose policy is not known exactly.
        InvalidValueError: games that env.max_turns cuts.
    """
    variant = _variant(env)

    def value(answer: Policy) -> ExactResult:
        return exact.evaluate(variant, answer, env.opponent, env.rules)

    with policy.reference():
        untrained = value(policy.distribution)
    return ExactComparison(value(policy.distribution), value(exact.greedy(policy.distribution)), untrained)


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
    """Whether the configured game and opponent can be evaluated exactly."""
    if env.opponent not in exact.OPPONENTS or env.max_turns is not None:
        return False
    try:
        exact.information_states(_variant(env), rules=False)
    except SizeError:
        return False
    return True


def _variant(env: EnvConfig) -> Any:
    if env.task_id is None and env.game is None:
        raise SizeError("exact evaluation takes one game: give env.task_id or env.game, not a set of them")
    if env.max_turns is not None:
        raise InvalidValueError(
            f"exact evaluation plays every game to its end: env.max_turns must be null, not {env.max_turns}"
        )
    return exact.find_variant(env.task_id, env.game, env.params or None)
