"""Forward passes: hidden states at chosen positions, with and without a cache."""

from __future__ import annotations

import pytest
import torch

from gamespiel.agents.engines import TransformersEngine
from gamespiel.agents.policy import LLMPolicy
from tests.agents.toys import make_policy

SEQUENCES = [(18, 30, 41), (50, 51, 52, 53, 54, 55, 56), (7,), (9, 8, 7, 6)]


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(n_actions=3, adapters=0.1)


def alone(policy: LLMPolicy, sequence: tuple[int, ...]) -> torch.Tensor:
    """Returns last hidden states of one sequence, shape (length, hidden), from transformers alone."""
    with torch.no_grad():
        out = policy.model(input_ids=torch.tensor([sequence]), output_hidden_states=True)
    return out.hidden_states[-1][0]


@pytest.mark.parametrize("tokens", [1, 8, 10_000])
def test_read_gives_what_was_asked_for_in_that_order(policy: LLMPolicy, tokens: int) -> None:
    engine = TransformersEngine(policy.model, tokens)
    places = [(3, 0), (1, 6), (0, 2), (1, 0), (2, 0), (1, 6)]
    with torch.no_grad():
        states = engine.read(SEQUENCES, [row for row, _ in places], [position for _, position in places])
    expected = torch.stack([alone(policy, SEQUENCES[row])[position] for row, position in places])
    assert torch.allclose(states, expected, atol=1e-5)


def test_logits_are_the_models(policy: LLMPolicy) -> None:
    with torch.no_grad():
        expected = policy.model(input_ids=torch.tensor([SEQUENCES[1]])).logits[0]
        logits = policy.engine.logits(alone(policy, SEQUENCES[1]))
    assert torch.allclose(logits, expected, atol=1e-5) and logits.dtype == torch.float32


def test_extending_a_cache_is_reading_on(policy: LLMPolicy) -> None:
    """Prompts of lengths 3, 7, 1, 4; continuations of different lengths, one prompt continued twice."""
    engine = policy.engine
    last, prefix = engine.prefill(SEQUENCES, cache=True)
    assert prefix is not None and prefix.width == 7 and prefix.lengths.tolist() == [3, 7, 1, 4]
    for row, sequence in enumerate(SEQUENCES):
        assert torch.allclose(last[row], alone(policy, sequence)[-1], atol=1e-5)
    rows, tokens = [2, 0, 1, 2], [(11, 12, 13), (14,), (15, 16), (17,)]
    for _ in range(2):  # a second time: extending leaves the cache as it was
        states = engine.extend(prefix, rows, tokens)
        for i, (row, continuation) in enumerate(zip(rows, tokens, strict=True)):
            assert torch.allclose(states[i], alone(policy, SEQUENCES[row] + continuation)[-1], atol=1e-5)


def test_no_cache_is_kept_unless_asked_for(policy: LLMPolicy) -> None:
    assert policy.engine.prefill(SEQUENCES, cache=False)[1] is None


def test_chunks_hold_similar_lengths_within_the_budget(policy: LLMPolicy) -> None:
    """Longest first: 7 alone fills 8; 4 + 4 (the 3 padded to 4) fills 8; then 1."""
    engine = TransformersEngine(policy.model, 8)
    assert list(engine.chunks(SEQUENCES)) == [[1], [3, 0], [2]]
    assert list(TransformersEngine(policy.model, 28).chunks(SEQUENCES)) == [[1, 3, 0, 2]]
    # A sequence above the budget still gets a forward.
    assert list(TransformersEngine(policy.model, 1).chunks(SEQUENCES)) == [[1], [3], [0], [2]]


def test_a_budget_of_nothing_is_refused(policy: LLMPolicy) -> None:
    with pytest.raises(ValueError, match="tokens_per_forward must be at least 1, got 0"):
        TransformersEngine(policy.model, 0)
