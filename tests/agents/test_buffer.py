"""The ragged turn buffer: its verbs, episodes of different lengths, and ratio units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.tokens.trie import ActionTrie

TRIE = ActionTrie.build({action: (10 + action,) for action in range(3)})
LOG_PROBS = np.array([-0.5], dtype=np.float32)


def add(
    buffer: TurnBuffer, episode: int, reward: float, value: float, group: Any = None, action: int = 0
) -> None:
    decision = Decision((len(buffer),), TRIE, TRIE.tokens[action], LOG_PROBS)
    buffer.add(episode, decision, reward, value, group)


def test_interleaved_episodes_of_different_lengths() -> None:
    """Episodes 0 (3 turns) and 1 (cut after 2), as a wave adds them. γ = λ = 0.5.

    Episode 0 as in the tests of ``gae``: V 1, 2, 4, reward 8 at the end → A 0.25, 1, 4.
    Episode 1: V 2, 2, rewards 0, cut in a state of value 12:
        δ₁ = 0 + 0.5·12 − 2 = 4     A₁ = 4
        δ₀ = 0 + 0.5·2 − 2 = −1     A₀ = −1 + 0.25·4 = 0
    """
    buffer = TurnBuffer(gamma=0.5, gae_lambda=0.5, normalize=False)
    for episode, reward, value in ((0, 0, 1), (1, 0, 2), (0, 0, 2), (1, 0, 2), (0, 8, 4)):
        add(buffer, episode, reward, value)
    buffer.bootstrap(1, 12.0)
    buffer.compute_returns_and_advantage()
    assert buffer.advantages is not None and buffer.returns is not None
    assert buffer.advantages.tolist() == [0.25, 0.0, 1.0, 4.0, 4.0]
    assert buffer.returns.tolist() == [1.25, 2.0, 3.0, 6.0, 8.0]


def test_minibatches() -> None:
    buffer = TurnBuffer(normalize=False)
    for turn in range(5):
        add(buffer, turn, float(turn), 0.5, action=turn % 3)
    buffer.compute_returns_and_advantage()
    batches = list(buffer.get(2, np.array([4, 0, 3, 1, 2])))
    assert [batch.index.tolist() for batch in batches] == [[4, 0], [3, 1], [2]]
    first = batches[0]
    assert [decision.prompt for decision in first.decisions] == [(4,), (0,)]
    assert [decision.tokens for decision in first.decisions] == [(11,), (10,)]
    assert first.advantages.tolist() == [3.5, -0.5] and first.returns.tolist() == [4.0, 0.0]
    assert first.old_values.tolist() == [0.5, 0.5]
    assert first.old_log_probs.tolist() == first.sampler_log_probs.tolist() == [-0.5, -0.5]
    for tensor in (first.old_values, first.old_log_probs, first.advantages, first.returns):
        assert tensor.dtype == torch.float32
    assert [batch.index.tolist() for batch in buffer.get(4)] == [[0, 1, 2, 3], [4]]


def test_a_choice_is_one_unit_and_a_forced_answer_a_unit_of_nothing() -> None:
    """Among 1, 12 and 2, the 12 is decided at the root and after the 1: its unit is -0.5 - 0.25.

    Of a set of one nothing is decided. Of two replies, each of 2 tokens, every token is a unit.
    """
    end = 9
    trie = ActionTrie.build({1: (1, end), 12: (1, 2, end), 2: (2, end)})
    only, free = ActionTrie.build({7: (7, end)}), FreeText(frozenset({end}), 5)
    log_probs = [[-0.5, -0.25], [], [-1.0], [-2.0, -4.0]]
    answers = [(trie, (1, 2, end)), (only, (7, end)), (trie, (2, end)), (free, (3, end))]
    buffer = TurnBuffer(normalize=False)
    for turn, ((constraint, tokens), own) in enumerate(zip(answers, log_probs, strict=True)):
        decision = Decision((turn,), constraint, tokens, np.array(own, dtype=np.float32))
        buffer.add(turn, decision, float(turn), 0.0)
    buffer.compute_returns_and_advantage()
    batch = buffer.batch(np.array([3, 0, 1, 2]))
    assert batch.units == 5 and batch.turn_of_unit.tolist() == [0, 0, 1, 2, 3]
    assert batch.sampler_log_probs.tolist() == [-2.0, -4.0, -0.75, 0.0, -1.0]
    assert batch.unit_of_token.tolist() == [0, 1, 2, 2, 4]
    assert batch.sum_over_units(torch.arange(1.0, 6.0)).tolist() == [1.0, 2.0, 7.0, 0.0, 5.0]


def test_what_is_refused() -> None:
    """The first action's only branching node has one log-probability."""
    buffer = TurnBuffer()
    two = np.array([-0.5, -0.5], dtype=np.float32)
    with pytest.raises(ValueError, match=r"1 decided tokens was given 2 log-probabilities"):
        buffer.add(0, Decision((1,), TRIE, (10,), two), 0.0, 0.0)
    with pytest.raises(ValueError, match=r"the tokens \[99\] are the answer of none of \[0, 1, 2\]"):
        buffer.add(0, Decision((1,), TRIE, (99,), LOG_PROBS), 0.0, 0.0)
    assert len(buffer) == 0
    add(buffer, 0, 0.0, 0.0)
    with pytest.raises(RuntimeError, match="call compute_returns_and_advantage"):
        next(buffer.get(1))
    buffer.compute_returns_and_advantage()
    add(buffer, 1, 0.0, 0.0)  # a later turn makes the advantages stale
    with pytest.raises(RuntimeError, match="call compute_returns_and_advantage"):
        next(buffer.get(1))


def test_reset_forgets() -> None:
    buffer = TurnBuffer()
    add(buffer, 0, 1.0, 0.0)
    buffer.bootstrap(0, 5.0)
    buffer.compute_returns_and_advantage()
    buffer.reset()
    assert len(buffer) == 0 and buffer.advantages is None and list(buffer.get(4)) == []
    add(buffer, 0, 1.0, 0.0)
    buffer.compute_returns_and_advantage()
    assert buffer.returns is not None and buffer.returns.tolist() == [1.0]  # the old bootstrap is gone
