"""Exact values of policies and baselines beside the best response's: ``game_gym.exact`` for agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from game_gym import exact
from game_gym.exact import ExactResult, Policy
from gamespiel.agents.models.names import BASE, NEWEST
from gamespiel.errors import InvalidValueError
from task_gym.errors import SizeError, check_choice

if TYPE_CHECKING:
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.kinds.games import GameKeys

AGENTS: dict[str, Policy] = {
    "random": exact.uniform,
    # Among equals, greedy takes the lowest legal id.
    "first": exact.greedy(exact.uniform),
}
"""Baselines whose policy is known exactly, by name."""

QUICK = 50_000
"""The most histories of a game that runs solve unasked. Leduc poker has 9,457; liar's dice has 294,883, and
the embedded model alone takes half a minute there."""


@dataclass(frozen=True)
class ExactComparison:
    """Exact values of a policy and its variants.

    Attributes:
        policy: The policy at temperature 1.
        greedy: The policy that always takes the most probable action.
        untrained: The model without adapters; None for baselines and untrained policies.
    """

    policy: ExactResult
    greedy: ExactResult
    untrained: ExactResult | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def of_policy(
    policy: LLMPolicy, env: GameKeys, *, trained: bool = True, adapters: str = NEWEST
) -> ExactComparison:
    """Returns a language model's exact values against the configured opponent.

    Args:
        policy: The model with its adapters.
        env: The game and the opponent.
        trained: Whether the values without adapters are computed too.
        adapters: Name of the adapters.

    Raises:
        SizeError: the game is too large to enumerate, or there are several games.
        ArgumentError: the opponent's policy is not known exactly.
        InvalidValueError: env.max_turns cuts games, or actions are answered by name.
    """
    variant, own = _variant(env), _asked_once(partial(policy.distribution, adapters=adapters))

    def value(answer: Policy) -> ExactResult:
        return exact.evaluate(variant, answer, _opponent(env), env.rules)

    untrained = None
    if trained:
        untrained = value(partial(policy.distribution, adapters=BASE))
    return ExactComparison(value(own), value(exact.greedy(own)), untrained)


def solved(policy: LLMPolicy, env: GameKeys, *, adapters: str = NEWEST) -> ExactResult:
    """Returns the policy's exact values, at temperature 1.

    Raises:
        TaskGymError: as ``of_policy`` does.
    """
    named = partial(policy.distribution, adapters=adapters)
    return exact.evaluate(_variant(env), named, _opponent(env), env.rules)


def of_agent(name: str, env: GameKeys) -> ExactComparison:
    """Returns a baseline's exact values.

    Raises:
        InvalidValueError: the baseline's policy is not known exactly.
        TaskGymError: as ``of_policy`` does.
    """
    if name not in AGENTS:
        raise InvalidValueError(
            "--exact needs an agent whose policy is known exactly: "
            f"{', '.join(AGENTS)} or a checkpoint, not {name!r}"
        )
    result = exact.evaluate(_variant(env), AGENTS[name], _opponent(env), env.rules)
    greedy = exact.evaluate(_variant(env), exact.greedy(AGENTS[name]), _opponent(env), env.rules)
    return ExactComparison(result, greedy, None)


def check(env: GameKeys) -> None:
    """Raises the error of ``of_policy``, without a policy, if the configured game has no exact values.

    Raises:
        TaskGymError: as ``of_policy`` does.
    """
    check_choice("opponent", _opponent(env), tuple(exact.OPPONENTS))
    exact.check_size(_variant(env))


def why_not_quick(env: GameKeys) -> str:
    """Returns why the configured game is not solved against its opponent in seconds; "" if it is."""
    try:
        variant, opponent = _variant(env), _opponent(env)
        if opponent not in exact.OPPONENTS:
            return f"the policy of opponent {opponent!r} is not known exactly, as that of {_known()} is"
        exact.check_size(variant, QUICK)
    except (InvalidValueError, SizeError) as error:
        return str(error)
    return ""


def _known() -> str:
    return " and ".join(map(repr, exact.OPPONENTS))


def _asked_once(policy: Policy) -> Policy:
    """Returns ``policy`` with its first answer kept: every evaluation of one game asks the same."""
    kept: list[Sequence[NDArray[np.float64]]] = []

    def answer(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> Sequence[NDArray[np.float64]]:
        if not kept:
            kept.append(policy(texts, legal))
        return kept[0]

    return answer


def _opponent(env: GameKeys) -> str:
    if not isinstance(env.opponent, str):
        raise InvalidValueError(
            f"exact evaluation takes one opponent, not {' and '.join(env.opponent)}: name one with --opponent"
        )
    return env.opponent


def _variant(env: GameKeys) -> Any:
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
