"""A sampler in another process takes the local one's place, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.models.names import BASE, NEWEST
from gamespiel.agents.ppo import LLMPPO
from tests.agents.remote import RemoteSampler
from tests.agents.toys import Echo, Stairs, make_policy, make_ppo, masks_of, rows_of
from tests.metrics import timeless


@pytest.fixture(scope="module")
def remote() -> Iterator[RemoteSampler]:
    sampler = RemoteSampler(scale=32 / 4)
    yield sampler
    sampler.close()


def choosing(**more: Any) -> LLMPPO:
    """Answers of one to three digits, among which 1 begins 12, and 12 begins 123."""
    return make_ppo(Stairs, batch_size=4, adapters=0.05, ppo_epochs=2, **more)


def writing(**more: Any) -> LLMPPO:
    return make_ppo(lambda: Echo(3), batch_size=4, adapters=0.02, max_new_tokens=4, temperature=0.8, **more)


def playing_itself(**more: Any) -> LLMPPO:
    """The learner's seat against members of a pool, each of which has to be published."""
    kuhn: Callable[[], Any] = lambda: gym.make("GameSpiel-v0", game="kuhn_poker", opponent="open")  # noqa: E731
    itself = SelfPlaySettings(learn="one", pool_every=1, pool_size=2)
    return make_ppo(kuhn, batch_size=4, adapters=0.05, self_play=itself, average_decay=0.5, **more)


def answers_of(model: LLMPPO) -> list[Any]:
    return [(decision.prompt, decision.tokens) for decision in model.rollout_buffer.decisions]


@pytest.mark.parametrize("make", [choosing, writing, playing_itself])
def test_a_run_is_the_same_run(make: Callable[..., LLMPPO], remote: RemoteSampler) -> None:
    """The same noise draws the same tokens, so numbers agree up to rounding, in every step's metrics.

    The tokens that are read are counted in this process, where the critic now reads the prompts by itself.
    """
    here, there = make(total_steps=3), make(total_steps=3)
    there.policy.sampler = remote
    for model in (here, there):
        model.learn()
    assert answers_of(there) == answers_of(here)
    for own, expected in zip(rows_of(there), rows_of(here), strict=True):
        assert own.keys() == expected.keys()
        for key in timeless(own).keys() - {"rollout/tokens_per_decision"}:
            if "gap" not in key:
                assert np.all(np.isclose(own[key], expected[key], rtol=1e-3, atol=1e-4, equal_nan=True)), key
    result = there.publish_result()  # the average in self-play, which has to be published too
    texts, legal = [Stairs().reset(seed=1)[0]], [(0, 1, 12)]
    if there.policy.answers.masked:
        (one,) = there.policy.distribution(texts, legal, adapters=result)
        (other,) = here.policy.distribution(texts, legal, adapters=here.publish_result())
        assert one == pytest.approx(other, abs=1e-3) and one.sum() == pytest.approx(1.0)


def test_the_weight_between_sampler_and_scorer_is_one_but_for_rounding(remote: RemoteSampler) -> None:
    model = choosing(total_steps=1, sampler_weight_cap=2.0)
    model.policy.sampler = remote
    model.learn()
    (row,) = rows_of(model)
    assert row["train/sampler_weight"] == pytest.approx(1.0, abs=1e-4) and row["train/sampler_capped"] == 0
    assert row["train/sampler_gap_max"] < 1e-4


def test_an_old_sampler_is_weighted(remote: RemoteSampler, monkeypatch: pytest.MonkeyPatch) -> None:
    """It plays the base under the learner's name: the gap is the adapters', and weights are below the cap."""
    model = choosing(total_steps=1, sampler_weight_cap=1.5)
    publish = remote.publish

    def stale(name: str, adapters: Any) -> None:
        publish(name, {} if name == NEWEST else adapters)

    monkeypatch.setattr(remote, "publish", stale)
    model.policy.sampler = remote
    model.learn()
    (row,) = rows_of(model)
    assert row["train/sampler_gap"] > 1e-3 and 0 < row["train/sampler_weight"] <= 1.5
    assert row["train/approx_kl"] >= 0  # the ratio's denominator is the scorer's


def test_decisions_are_the_local_ones(remote: RemoteSampler) -> None:
    """Greedy and by noise, of several adapters in one call; only the critic's values are missing."""
    policy, texts = make_policy(adapters=0.1), ["x", "seat 0", "y"]
    masks = masks_of([(0, 1, 2), (1, 12, 123), (7,)])
    remote.publish(NEWEST, policy.adapters.learning)
    local, names = policy.sampler, [NEWEST, BASE, NEWEST]
    expected = policy.decide(texts, masks, None, adapters=names)
    policy.sampler = remote
    found = policy.decide(texts, masks, None, adapters=names)
    for own, other in zip(found, expected, strict=True):
        assert own.tokens == other.tokens and own.adapters == other.adapters
        assert own.log_probs == pytest.approx(other.log_probs, abs=1e-4)
        assert own.legal_mass == pytest.approx(other.legal_mass, rel=1e-3)
        assert own.value is None and other.value is not None
    scored = policy.values_of(found)
    assert scored == pytest.approx([decision.value for decision in expected], abs=1e-5)
    assert local.tokens_read > 0 and remote.tokens_read == 0
