"""The ragged turn buffer: its verbs, episodes of different lengths, and masks of one bit per action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.buffer import TurnBuffer


def add(
    buffer: TurnBuffer, episode: int, reward: float, value: float, group: Any = None, action: int = 0
) -> None:
    mask = np.ones(buffer.n_actions, dtype=bool)
    buffer.add(episode, f"turn {len(buffer)}", action, mask, reward, value, -0.5, group)


def test_interleaved_episodes_of_different_lengths() -> None:
    """Episodes 0 (3 turns) and 1 (cut after 2), as a wave adds them. γ = λ = 0.5.

    Episode 0 as in the tests of ``gae``: V 1, 2, 4, reward 8 at the end → A 0.25, 1, 4.
    Episode 1: V 2, 2, rewards 0, cut in a state of value 12:
        δ₁ = 0 + 0.5·12 − 2 = 4     A₁ = 4
        δ₀ = 0 + 0.5·2 − 2 = −1     A₀ = −1 + 0.25·4 = 0
    """
    buffer = TurnBuffer(2, gamma=0.5, gae_lambda=0.5, normalize=False)
    for episode, reward, value in ((0, 0, 1), (1, 0, 2), (0, 0, 2), (1, 0, 2), (0, 8, 4)):
        add(buffer, episode, reward, value)
    buffer.bootstrap(1, 12.0)
    buffer.compute_returns_and_advantage()
    assert buffer.advantages is not None and buffer.returns is not None
    assert buffer.advantages.tolist() == [0.25, 0.0, 1.0, 4.0, 4.0]
    assert buffer.returns.tolist() == [1.25, 2.0, 3.0, 6.0, 8.0]


def test_some_turns_of_a_minibatch() -> None:
    """Taking rows 2 and 0 of the minibatch of turns 3, 1, 2 is the minibatch of turns 2, 3."""
    buffer = TurnBuffer(3, normalize=False)
    for turn in range(4):
        add(buffer, turn, float(turn), 0.5 * turn, action=turn % 3)
    buffer.compute_returns_and_advantage()
    taken = buffer.batch(np.array([3, 1, 2])).take(np.array([2, 0]))
    for own, expected in zip(taken, buffer.batch(np.array([2, 3])), strict=True):
        assert np.array_equal(own, expected) and type(own) is type(expected)


def test_without_the_bootstrap_the_cut_would_read_as_a_loss() -> None:
    """δ₀ = 0 + 0 − 2 = −2."""
    buffer = TurnBuffer(2, normalize=False)
    add(buffer, 0, 0.0, 2.0)
    buffer.compute_returns_and_advantage()
    assert buffer.advantages is not None and buffer.advantages.tolist() == [-2.0]


def test_normalised_per_group_over_the_rollout() -> None:
    """V = 0 and one turn each, so A is the reward: 0, 1 in seat 0; 0, 0, 1 in seat 1; one turn in seat 2.

    Seat 0: mean 1/2, deviation 1/2 → −1, 1. Seat 1: mean 1/3, deviation √2/3 → −1/√2 twice, √2.
    """
    buffer = TurnBuffer(2)
    for episode, (seat, reward) in enumerate([(0, 0), (1, 0), (2, 1), (0, 1), (1, 0), (1, 1)]):
        add(buffer, episode, reward, 0.0, group=("toy", seat))
    buffer.compute_returns_and_advantage()
    root = np.sqrt(2)
    assert buffer.advantages == pytest.approx([-1, -1 / root, 0, 1, -1 / root, root], abs=1e-6)
    assert buffer.returns is not None and buffer.returns.tolist() == [0, 0, 1, 1, 0, 1]  # never normalised


def test_minibatches() -> None:
    buffer = TurnBuffer(3, normalize=False)
    for turn in range(5):
        add(buffer, turn, float(turn), 0.5, action=turn % 3)
    buffer.compute_returns_and_advantage()
    batches = list(buffer.get(2, np.array([4, 0, 3, 1, 2])))
    assert [batch.index.tolist() for batch in batches] == [[4, 0], [3, 1], [2]]
    first = batches[0]
    assert first.observations == ["turn 4", "turn 0"] and first.actions.tolist() == [1, 0]
    assert first.action_masks.shape == (2, 3) and first.action_masks.dtype == bool
    assert first.advantages.tolist() == [3.5, -0.5] and first.returns.tolist() == [4.0, 0.0]
    assert first.old_values.tolist() == [0.5, 0.5] and first.old_log_prob.tolist() == [-0.5, -0.5]
    for tensor in (first.old_values, first.old_log_prob, first.advantages, first.returns):
        assert tensor.dtype == torch.float32
    assert [batch.index.tolist() for batch in buffer.get(4)] == [[0, 1, 2, 3], [4]]


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.lists(st.sets(st.integers(0, n - 1), min_size=1), min_size=1, max_size=6).map(
            lambda sets: (n, sets)
        )
    )
)
def test_masks_come_back_as_they_went_in(drawn: tuple[int, list[set[int]]]) -> None:
    n, legal = drawn
    buffer = TurnBuffer(n)
    masks = np.zeros((len(legal), n), dtype=bool)
    for row, actions in enumerate(legal):
        masks[row, list(actions)] = True
        buffer.add(row, "", min(actions), masks[row], 0.0, 0.0, 0.0)
    assert np.array_equal(buffer.action_masks(np.arange(len(legal))), masks)
    backwards = np.arange(len(legal))[::-1]
    assert np.array_equal(buffer.action_masks(backwards), masks[::-1])


def test_a_mask_takes_a_bit_an_action() -> None:
    """4674 chess moves: 585 bytes, where float32 takes 18,696."""
    buffer = TurnBuffer(4674)
    add(buffer, 0, 0.0, 0.0)
    assert sum(mask.nbytes for mask in buffer._masks) == -(-4674 // 8) == 585


def test_int8_masks_are_masks() -> None:
    buffer = TurnBuffer(3)
    buffer.add(0, "", 2, np.array([0, 0, 1], dtype=np.int8), 0.0, 0.0, 0.0)
    assert buffer.action_masks(np.array([0])).tolist() == [[False, False, True]]


def test_what_is_refused() -> None:
    buffer = TurnBuffer(3)
    with pytest.raises(ValueError, match=r"mask has shape \(2,\), expected \(3,\)"):
        buffer.add(0, "", 0, np.ones(2, dtype=bool), 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"action 1 is not legal under its mask: \[0, 2\] are"):
        buffer.add(0, "", 1, np.array([True, False, True]), 0.0, 0.0, 0.0)
    assert len(buffer) == 0
    add(buffer, 0, 0.0, 0.0)
    with pytest.raises(RuntimeError, match="call compute_returns_and_advantage"):
        next(buffer.get(1))


def test_what_comes_after_the_advantages_makes_them_stale() -> None:
    buffer = TurnBuffer(3)
    add(buffer, 0, 0.0, 0.0)
    buffer.compute_returns_and_advantage()
    add(buffer, 1, 0.0, 0.0)
    with pytest.raises(RuntimeError, match="call compute_returns_and_advantage"):
        next(buffer.get(1))


def test_reset_forgets() -> None:
    buffer = TurnBuffer(3)
    add(buffer, 0, 1.0, 0.0)
    buffer.bootstrap(0, 5.0)
    buffer.compute_returns_and_advantage()
    buffer.reset()
    assert len(buffer) == 0 and buffer.advantages is None and list(buffer.get(4)) == []
    add(buffer, 0, 1.0, 0.0)
    buffer.compute_returns_and_advantage()
    assert buffer.returns is not None and buffer.returns.tolist() == [1.0]  # the old bootstrap is gone
