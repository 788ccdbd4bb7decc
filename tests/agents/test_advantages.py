"""Advantages, calculated by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.learning.advantages import explained_variance, gae, normalize_by_group


@pytest.mark.parametrize(("paid", "following"), [(8.0, 0.0), (0.0, 16.0)], ids=["ended", "cut"])
def test_an_episode_by_hand(paid: float, following: float) -> None:
    """γ = 0.5, λ = 0.5; V = 1, 2, 4; the last turn is paid 8, or cut in a state of value 16.

    δ₂ = 8 + 0.5·0 − 4 = 0 + 0.5·16 − 4 = 4      A₂ = 4
    δ₁ = 0 + 0.5·4 − 2 = 0                       A₁ = 0 + 0.25·4 = 1
    δ₀ = 0 + 0.5·2 − 1 = 0                       A₀ = 0 + 0.25·1 = 0.25
    """
    advantages, returns = gae(np.array([0.0, 0.0, paid]), np.array([1.0, 2.0, 4.0]), following, 0.5, 0.5)
    assert advantages.tolist() == [0.25, 1.0, 4.0]
    assert returns.tolist() == [1.25, 3.0, 8.0]


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=8),
    st.floats(-1, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_is_the_sum_it_stands_for(
    turns: list[tuple[float, float]], last: float, gamma: float, lam: float
) -> None:
    """A_t = Σ_k (γλ)^k δ_{t+k}."""
    rewards, values = (np.array(column) for column in zip(*turns, strict=True))
    following = [*values[1:], last]
    deltas = [r + gamma * n - v for r, n, v in zip(rewards, following, values, strict=True)]
    expected = [
        sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[t:])) for t in range(len(deltas))
    ]
    assert np.allclose(gae(rewards, values, last, gamma, lam)[0], expected)


def test_groups_are_normalised_apart() -> None:
    """Seat 0: 1, 3 → mean 2, deviation 1; seat 1: 10, 10, 40 → mean 20, deviation √200 = 14.142."""
    out = normalize_by_group(np.array([1.0, 10.0, 3.0, 10.0, 40.0]), ["0", "1", "0", "1", "1"])
    root = math.sqrt(2)
    assert out == pytest.approx([-1.0, -1 / root, 1.0, -1 / root, root], abs=1e-6)


def test_groups_without_a_spread_are_zero() -> None:
    """The deviation of one value, or of equal ones, is 0, and 0/0 must not reach the loss."""
    one = normalize_by_group(np.array([5.0, 1.0, 3.0]), ["alone", "b", "b"])
    assert one == pytest.approx([0.0, -1.0, 1.0])
    assert np.abs(normalize_by_group(np.full(7, 0.1), [None] * 7)).max() < 1e-6
    assert normalize_by_group(np.zeros(0), []).shape == (0,)


def test_small_spreads_are_not_blown_up() -> None:
    """±0.001 is the critic's error on episodes of equal reward; it becomes ±0.001 / 0.05, not ±1."""
    errors = np.array([0.001, -0.001])
    assert normalize_by_group(errors, [None] * 2) == pytest.approx([0.02, -0.02])
    assert normalize_by_group(errors, [None] * 2, floor=1e-9) == pytest.approx([1.0, -1.0])


def test_explained_variance() -> None:
    """Var(returns) of 0, 2 is 1; errors 0.5, −0.5 vary by 0.25; a constant error does not vary."""
    returns = np.array([0.0, 2.0])
    assert explained_variance(np.array([0.5, 1.5]), returns) == 0.75
    assert explained_variance(returns + 3.0, returns) == 1.0
    assert explained_variance(np.zeros(2), returns) == 0.0
    assert math.isnan(explained_variance(np.array([0.0, 1.0]), np.ones(2)))
