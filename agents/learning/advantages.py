"""Advantages and explained variance over turns, as pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gamespiel.agents.rollout import Episode

Floats = npt.NDArray[np.float64]
SPREAD_FLOOR = 0.05
"""The smallest standard deviation to divide by, in units of the reward; scores run from 0 to 1."""


class KnownValues(NamedTuple):
    """The facts about an episode's turns that need no critic.

    Attributes:
        advantages: Value of the action less the value before it, float64 (turns,), in units of the reward.
        values: Value before each action, float64 (turns,): what the critic learns.
        chances: The policy's probability of each legal action, ascending, turns × float64 (actions,).
        gains: The advantage of each legal action, likewise.
    """

    advantages: Floats
    values: Floats
    chances: Sequence[Floats]
    gains: Sequence[Floats]


class FindValues(Protocol):
    """A finder of advantages that needs no critic."""

    def __call__(self, episodes: Sequence[Episode]) -> Mapping[int, KnownValues]:
        """Returns what is known of each of a step's episodes without faults, by its index."""

    def state_dict(self) -> dict[str, Floats]:
        """Returns what it keeps from step to step, which checkpoints have."""

    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Goes on with what ``state_dict`` returned, or raises ValueError; with {} it begins anew."""


def gae(
    rewards: Floats, values: Floats, last_value: float, gamma: float, lam: float
) -> tuple[Floats, Floats]:
    """Returns an episode's generalised advantage estimates (Schulman et al. 2015, arXiv:1506.02438, (16)).

    Args:
        rewards: Reward of each turn's action, float64 (turns,).
        values: The critic's estimates before each action, float64 (turns,).
        last_value: Value after the last turn: 0 if the episode ended, the critic's estimate if it was cut.
        gamma: Discount per turn.
        lam: The estimator's mixing weight.

    Returns:
        Advantages and returns (advantages + values), float64 (turns,) each.
    """
    advantages = np.zeros(len(rewards))
    following, running = last_value, 0.0
    for t in range(len(rewards) - 1, -1, -1):
        delta = rewards[t] + gamma * following - values[t]
        running = delta + gamma * lam * running
        advantages[t], following = running, float(values[t])
    return advantages, advantages + values


def normalize_by_group(advantages: Floats, groups: Sequence[Hashable]) -> Floats:
    """Returns advantages of zero mean and unit deviation within each group, shape (turns,) in and out.

    Seats of a zero-sum game have different expected scores, and games have different scales. One
    normalisation over all of them would teach "be the luckier seat". A group of one turn, or of equal values,
    says nothing about better or worse and becomes 0.

    A deviation below ``SPREAD_FLOOR`` counts as that. Once every episode is won, only the critic's error
    remains; at unit deviation it would make the policy unlearn what won.
    """
    out = np.zeros_like(advantages)
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    for indices in members.values():
        subset = advantages[indices]
        out[indices] = (subset - subset.mean()) / max(float(subset.std()), SPREAD_FLOOR)
    return out


def explained_variance(values: Floats, returns: Floats, weights: Floats | None = None) -> float:
    """Returns 1 − Var(returns − values) / Var(returns); NaN if the returns do not vary.

    Args:
        values: The critic's estimates, float64 (rows,).
        returns: What they estimate, float64 (rows,).
        weights: Of each row, float64 (rows,); None if they are equal.
    """

    def variance(numbers: Floats) -> float:
        mean = np.average(numbers, weights=weights)
        return float(np.average((numbers - mean) ** 2, weights=weights))

    spread = variance(returns)
    return float("nan") if spread == 0 else 1.0 - variance(returns - values) / spread
