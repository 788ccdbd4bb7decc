"""Learning: with ``LLMPPO``, and in stock MaskablePPO."""

from __future__ import annotations

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from gamespiel.agents.learning.kl_control import AdaptiveKLController
from gamespiel.agents.learning.schedules import schedule
from gamespiel.agents.policy import LLMPolicy
from tests.agents.toys import Bandit, Signs, as_tokens, make_policy, make_ppo, rows_of

pytestmark = pytest.mark.trains
FREE = AdaptiveKLController(0.0, 0.1, horizon=None)


@pytest.mark.sample
def test_reading_the_sign_that_says_what_pays() -> None:
    """The untrained model wins about half of the episodes; the trained one wins more than nine in ten.

    It keeps winning: with all episodes won, the policy must not unlearn. The learning rate falls as in the
    presets, since Adam's steps do not shrink when only noise is left in the gradient.
    """
    falling = schedule("linear", 1e-3)
    model = make_ppo(
        Signs, envs=64, batch_size=64, mini_batch_size=64, kl=FREE, learning_rate=falling, total_steps=40
    )
    model.learn(40 * 64)
    rewards = [row["rollout/reward"] for row in rows_of(model)]
    assert 0.3 < rewards[0] < 0.7
    assert np.mean(rewards[12:20]) > 0.9
    assert min(rewards[20:]) > 0.9


def test_choices_of_several_tokens_and_turns() -> None:
    """Ids of several tokens begin one another, and the last turn's reward must reach the first turn."""
    model = make_ppo(
        envs=64, batch_size=48, learning_rate=2e-3, mini_batch_size=128, ppo_epochs=2, gamma=1.0, kl=FREE
    )
    model.learn(8 * 48 * 3)
    rewards = [row["rollout/reward"] for row in rows_of(model)]
    assert np.mean(rewards[-2:]) > np.mean(rewards[:2]) + 0.3


def test_inside_stock_maskable_ppo() -> None:
    """MaskablePPO's buffer, masks and loss, with token ids; the action that the model prefers less pays."""
    (likes,) = make_policy(3).distribution(Bandit().reset()[0], [(0, 1)])
    pays = int(likes.argmin())
    env = DummyVecEnv([lambda: as_tokens(Bandit(pays))] * 8)
    model = MaskablePPO(
        LLMPolicy, env, 2e-3, n_steps=8, batch_size=64, n_epochs=4, device="cpu", seed=0,
        policy_kwargs={"lora": {"r": 4}},
    )  # fmt: skip
    before, _ = evaluate_policy(model, env, n_eval_episodes=64, deterministic=False, warn=False)
    model.learn(15 * 64)
    after, _ = evaluate_policy(
        model, Monitor(as_tokens(Bandit(pays))), n_eval_episodes=64, deterministic=False
    )
    assert before < 0.7 and after > 0.9
    assert model.policy.optimizer.effective_rates() == [2e-3, 2e-2]
