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
from gamespiel.agents.models import BASE, NEWEST
from gamespiel.errors import InvalidValueError

if TYPE_CHECKING:
    from game_gym.spec import Variant
    from gamespiel.agents.policy import LLMPolicy

AGENTS: dict[str, Policy] = {
    "random": exact.uniform,
    # Among equals, greedy takes the lowest legal id.
    "first": exact.greedy(exact.uniform),
}
"""Baselines whose policy is known exactly, by name."""


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


@dataclass(frozen=True)
class ExactGame:
    """A game whose values are computed, not sampled, against one opponent.

    Attributes:
        variant: The game with its parameters.
        opponent: The opponent's name, one of ``game_gym.exact.OPPONENTS``.
        rules: Whether prompts have the rules.
        conversation: The protocol in whose layout prompts are conversations; None if they are not.
        list_actions: Whether prompts list the legal actions.
        named: Whether actions are answered by name.
    """

    variant: Variant
    opponent: str
    rules: bool
    conversation: str | None = None
    list_actions: bool = True
    named: bool = False

    def check_size(self) -> None:
        """Raises ``SizeError`` if the game is too large to enumerate."""
        exact.check_size(self.variant, None, self.conversation)

    def compare_policy(
        self, policy: LLMPolicy, *, trained: bool = True, adapters: str = NEWEST
    ) -> ExactComparison:
        """Returns a language model's exact values.

        Args:
            policy: The model with its adapters.
            trained: Whether the values without adapters are computed too.
            adapters: Name of the adapters.

        Raises:
            SizeError: the game is too large to enumerate.
        """
        distribution, untrained = _ask_once(partial(policy.distribution, adapters=adapters)), None
        if trained:
            untrained = self.evaluate(partial(policy.distribution, adapters=BASE))
        return ExactComparison(
            self.evaluate(distribution), self.evaluate(exact.greedy(distribution)), untrained
        )

    def compare_agent(self, name: str) -> ExactComparison:
        """Returns a baseline's exact values.

        Raises:
            InvalidValueError: the baseline's policy is not known exactly.
            SizeError: the game is too large to enumerate.
        """
        if name not in AGENTS:
            raise InvalidValueError(
                "--exact needs an agent whose policy is known exactly: "
                f"{', '.join(AGENTS)} or a checkpoint, not {name!r}"
            )
        greedy = exact.greedy(AGENTS[name])
        return ExactComparison(self.evaluate(AGENTS[name]), self.evaluate(greedy), None)

    def evaluate(self, policy: Policy) -> ExactResult:
        """Returns a policy's exact values.

        Raises:
            SizeError: the game is too large to enumerate.
        """
        return exact.evaluate(
            self.variant,
            policy,
            self.opponent,
            self.rules,
            self.conversation,
            list_actions=self.list_actions,
            named=self.named,
        )


def _ask_once(policy: Policy) -> Policy:
    """Returns ``policy`` with its first answer kept: every evaluation of one game asks the same."""
    answers: list[Sequence[NDArray[np.float64]]] = []

    def answer(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> Sequence[NDArray[np.float64]]:
        if not answers:
            answers.append(policy(texts, legal))
        return answers[0]

    return answer
