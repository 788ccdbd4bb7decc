"""PPO over whole episodes: the update, its optimizer, Stable-Baselines3's tools, and what is learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.callbacks import StopTrainingOnMaxEpisodes
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import update_learning_rate
from stable_baselines3.common.vec_env import DummyVecEnv

from gamespiel.agents.learning.advantages import normalize_by_group
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Shaped
from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.models.optimizer import ScaledAdamW
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.samplers import Failures, Stages
from task_gym.wrappers import Curriculum, FailureReplay, TokenObservation
from tests.agents.toys import (
    Bandit,
    Echo,
    Quiet,
    Signs,
    Stairs,
    collect,
    make_policy,
    make_ppo,
    rows_of,
)
from tests.task_gym.tasks import Tenths


def wrap_tokens(env: gym.Env[str, Any]) -> TokenObservation:
    """Returns the environment with prompts as the embedded model's token ids."""
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    return TokenObservation(env, codec.encode_prompt, 96, len(codec.tokenizer), codec.pad)


def state(model: LLMPPO) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in model.policy.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], part: str = "") -> bool:
    return all(torch.equal(a[key], b[key]) for key in a if key.startswith(part))


def rates_of(optimizer: torch.optim.Optimizer) -> list[float]:
    """Returns the rates of the next step, one per group."""
    return [group["lr"] * group["lr_scale"] for group in optimizer.param_groups]


# -- an update -----------------------------------------------------------------------------------------------


def test_advantages_are_normalised_over_the_rollout_per_seat() -> None:
    model, plain = (make_ppo(batch_size=6, normalize_advantage=flag) for flag in (True, False))
    assert collect(model) and collect(plain)
    decode = model.policy.codec.tokenizer.decode
    texts = [decode(decision.prompt) for decision in model.rollout_buffer.decisions]
    seats = [text[text.index("seat ") :][:6] for text in texts]
    assert set(seats) == {"seat 0", "seat 1"}
    expected = normalize_by_group(plain.rollout_buffer.advantages, seats)
    assert model.rollout_buffer.advantages == pytest.approx(expected)
    assert model.rollout_buffer.returns == pytest.approx(plain.rollout_buffer.returns)


def test_critic_warmup_leaves_the_actor_alone() -> None:
    model = make_ppo(Bandit, batch_size=8, critic_warmup_steps=1, adapters=0.05)
    before = state(model)
    model.learn(8)
    warm = state(model)
    assert same(before, warm, "adapter") and not same(before, warm, "value_head")
    model.learn(8)
    assert not same(warm, state(model), "adapter")


def test_the_kl_coefficient_moves() -> None:
    """Adapters with an effect diverge from the base by far more than 1e-6."""
    model = make_ppo(batch_size=4, kl=AdaptiveKLController(0.3, 1e-6, horizon=1), adapters=0.05)
    model.learn(1)
    assert model.kl.coefficient == pytest.approx(0.3 * 1.2)
    (row,) = rows_of(model)
    assert row["train/kl_coef"] == model.kl.coefficient and row["train/kl_ref"] > 1e-3
    assert row["decisions"] == model.num_timesteps == len(model.rollout_buffer)
    assert all(np.isfinite(value) for key, value in row.items() if key != "train/explained_variance")
    assert 0 < row["train/exact_entropy"] < 1  # some of Stairs' legal sets have one branching node


@pytest.mark.sample
@pytest.mark.trains
def test_a_divergence_without_weight_is_measured_in_some_steps() -> None:
    """Step 2 reads nothing for the reference, and the weights are the same bits."""
    free = {"adapters": 0.05, "batch_size": 3, "total_steps": 2}
    some = make_ppo(kl=AdaptiveKLController(0.0, 0.1, None), **free)
    every = make_ppo(kl=AdaptiveKLController(0.0, 0.1, 100), **free)  # any factor leaves a weight of 0
    for model in (some, every):
        model.learn()
    assert ["train/kl_ref" in row for row in rows_of(some)] == [True, False]
    assert ["train/kl_ref" in row for row in rows_of(every)] == [True, True]
    tokens = [rows_of(model)[1]["train/tokens_per_decision"] for model in (some, every)]
    assert tokens[0] < tokens[1]
    assert same(state(some), state(every))


FALLING: dict[str, Any] = {"learning_rate": lambda left: 8e-3 * left}
WARM_UP: dict[str, Any] = {"learning_rate": 8e-3, "critic_warmup_steps": 1, "lr_warmup_steps": 3}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(FALLING, [8e-3, 6e-3, 4e-3, 2e-3]), (WARM_UP, [8e-3, 2e-3, 4e-3, 6e-3, 8e-3])],
    ids=["falling", "warm-up"],
)
def test_schedules_span_the_steps(settings: dict[str, Any], expected: list[float]) -> None:
    """One step of the critic alone, at its whole rate; then 3 steps at 1/4, 2/4 and 3/4 of the actor's."""
    steps = len(expected)
    model = make_ppo(
        Bandit, batch_size=2, total_steps=steps, adam_beta2=0.5, ent_coef=lambda left: left,
        **settings,
    )  # fmt: skip
    model.learn()
    rows, optimizer = rows_of(model), model.policy.optimizer
    assert [row["train/learning_rate"] for row in rows] == pytest.approx(expected)
    assert rates_of(optimizer) == pytest.approx([expected[-1], 10 * expected[-1]])
    assert model.ent_coef == pytest.approx(1 / steps)
    assert model.step == steps and [row["step"] for row in rows] == list(range(1, steps + 1))
    assert {group["betas"] for group in optimizer.param_groups} == {(0.9, 0.5)}


# -- Stable-Baselines3's tools -------------------------------------------------------------------------------


def test_the_maskable_evaluator() -> None:
    """The best action pays, with texts and with token ids."""
    model = make_ppo(Bandit, adapters=0.05)
    mask = Bandit().action_masks()
    pays = int(model.predict(Bandit().reset()[0], deterministic=True, action_masks=mask)[0])
    env = TextVecEnv([lambda: Monitor(Bandit(pays))] * 2)
    assert evaluate_policy(model, env, n_eval_episodes=6) == (1.0, 0.0)
    assert evaluate_policy(model, Monitor(wrap_tokens(Bandit(pays))), n_eval_episodes=3) == (1.0, 0.0)


def test_one_environment_is_wrapped_and_a_gpu_that_is_not_there_is_no_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stable-Baselines3 takes the CPU without a word if CUDA is asked for and is not there."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ArgumentError, match=r"device: 'cuda:1' was given, and torch finds no GPU here; allow"
    ):
        LLMPPO(LLMPolicy, Stairs(), batch_size=2, device="cuda:1")
    model = LLMPPO(LLMPolicy, Stairs(), batch_size=2, policy_kwargs={"lora": {"r": 2}}, device="auto")
    assert model.device == torch.device("cpu")
    assert isinstance(model.env, TextVecEnv) and model.env.num_envs == 1
    assert model.env.env_is_wrapped(Monitor) == [True]
    assert isinstance(model.observation_space, spaces.Text)
    model.set_logger(Logger(None, []))
    assert collect(model)


def test_stable_baselines_callbacks_know_the_end_and_the_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    """Two environments: four episodes each are eight, the eighth of them in the second step of five.

    A step that a callback stops does not count. A step of eight episodes is two waves of four.
    """
    quiet = Quiet()
    model = make_ppo(Bandit, envs=4, batch_size=8)
    model.learn(16, callback=quiet)
    step = ["rollout start", "step", "step", "rollout end"]
    assert quiet.heard == ["training start", *step, *step, "training end"]
    assert model.num_timesteps == quiet.num_timesteps == 16 and model.step == 2
    model = make_ppo(Bandit, 2, batch_size=5, total_steps=4)
    assert model.learn(callback=StopTrainingOnMaxEpisodes(4)).step == 1

    class Limit(Quiet):
        def _on_training_start(self) -> None:
            self.limit = self.locals["total_timesteps"]

    limit = Limit()
    model.learn(5, callback=limit, progress_bar=True, log_interval=None)  # 5 more, after 5 decisions
    assert (limit.limit, model.num_timesteps, model.step) == (10, 10, 2)
    model.learn(progress_bar=True)
    assert model.step == 4
    bars = capsys.readouterr().out
    assert "5/5" in bars and "2/2" in bars  # decisions, then the steps that were left


class NoMask(gym.Env[str, int]):
    observation_space, action_space = Bandit.observation_space, Bandit.action_space


class FromOne(Bandit):
    action_space = spaces.Discrete(3, start=1)


class Stuck(Bandit):
    def action_masks(self) -> np.ndarray[Any, Any]:
        return np.zeros(3, dtype=bool)


def test_what_it_cannot_learn_from_is_refused() -> None:
    """Other environments are checked as the first ones. Their number may change: no result depends on it."""
    with pytest.raises(ArgumentError, match=r"which has no action_masks\(\); allowed"):
        make_ppo(NoMask, 1)
    with pytest.raises(ArgumentError, match=r"Discrete\(3, start=1\) were given, allowed: "):
        make_ppo(FromOne, 1)
    with pytest.raises(ArgumentError, match=r"began without a legal action"):
        make_ppo(Stuck, 1, batch_size=1).learn(1)
    with pytest.raises(ArgumentError, match=r"env: none was given"):
        LLMPPO("LLMPolicy")
    with pytest.raises(ArgumentError, match=r"total_steps: 0 was given"):
        make_ppo(Bandit, 1, total_steps=0)
    with pytest.raises(ValueError, match=r"batch_size: .* got 0"):
        make_ppo(batch_size=0)
    with pytest.raises(ValueError, match=r"learn\(\) needs total_timesteps, or total_steps"):
        make_ppo().learn()
    vector = DummyVecEnv([lambda: wrap_tokens(Bandit())])
    model = LLMPPO("LLMPolicy", vector, policy_kwargs={"lora": {"r": 2}}, device="cpu")
    with pytest.raises(ValueError, match="collects from a TextVecEnv, got DummyVecEnv"):
        model.learn(4)
    model = make_ppo(Stairs, 2, batch_size=3)
    for wrapped in (FailureReplay(Tenths(), Failures()), Curriculum(Tenths(), Stages([{"name": "a"}]))):
        with pytest.raises(ArgumentError, match=rf"env: {wrapped.class_name()} was given around an env"):
            model.set_env(TextVecEnv([Tenths, lambda wrapped=wrapped: wrapped]))
    with pytest.raises(ValueError, match=r"Action spaces do not match"):
        model.set_env(TextVecEnv([Bandit]))
    model.set_env(TextVecEnv([Stairs] * 3))
    assert model.n_envs == 3 and collect(model)


# -- the optimizer -------------------------------------------------------------------------------------------


def pair(lr: float) -> tuple[torch.nn.Parameter, torch.nn.Parameter, ScaledAdamW]:
    a, b = (torch.nn.Parameter(torch.tensor([1.0])) for _ in range(2))
    groups = [{"params": [a]}, {"params": [b], "lr_scale": 10.0}]
    return a, b, ScaledAdamW(groups, lr=lr, weight_decay=0.5)


def test_the_scale_outlives_a_written_rate_a_failed_step_and_a_file() -> None:
    """AdamW decays by lr · decay, then Adam's first step is lr · g / (|g| + ε), so lr · sign(g).

    1 · (1 − 0.02 · 0.5) − 0.02 = 0.97, and, with ten times the rate, 1 · (1 − 0.2 · 0.5) + 0.2 = 1.1.
    """
    a, b, optimizer = pair(1.0)
    update_learning_rate(optimizer, 0.02)  # into all groups
    with pytest.raises(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.02]
    a.grad, b.grad = torch.tensor([0.3]), torch.tensor([-2.0])
    optimizer.step()
    assert (a.item(), b.item()) == pytest.approx((0.97, 1.1), abs=1e-6)
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.02]  # as it was scheduled
    _, _, other = pair(0.5)
    other.param_groups[1]["lr_scale"] = 1.0
    other.load_state_dict(optimizer.state_dict())
    assert rates_of(other) == rates_of(optimizer) == pytest.approx([0.02, 0.2])


# -- learning ------------------------------------------------------------------------------------------------


FREE = AdaptiveKLController(0.0, 0.1, horizon=None)


@pytest.mark.sample
@pytest.mark.trains
def test_reading_the_sign_that_says_what_pays() -> None:
    """The untrained model wins about half of the episodes; the trained one wins more than nine in ten.

    It keeps winning: with all episodes won, the policy must not unlearn. The learning rate falls as in the
    presets, since Adam's steps do not shrink when only noise is left in the gradient.
    """
    falling = Shaped("linear", 1e-3)
    model = make_ppo(
        Signs,
        envs=64,
        batch_size=64,
        mini_batch_size=64,
        ppo_epochs=4,
        kl=FREE,
        learning_rate=falling,
        total_steps=20,
    )
    model.learn(20 * 64)
    rewards = [row["rollout/reward"] for row in rows_of(model)]
    assert 0.3 < rewards[0] < 0.7
    assert np.mean(rewards[10:15]) > 0.9
    assert min(rewards[15:]) > 0.9


@pytest.mark.trains
def test_choices_of_several_tokens_and_turns() -> None:
    """Ids of several tokens begin one another, and the last turn's reward must reach the first turn."""
    model = make_ppo(
        envs=64, batch_size=48, learning_rate=2e-3, mini_batch_size=128, ppo_epochs=2, gamma=1.0, kl=FREE
    )
    model.learn(8 * 48 * 3)
    rewards = [row["rollout/reward"] for row in rows_of(model)]
    assert np.mean(rewards[-2:]) > np.mean(rewards[:2]) + 0.3


@pytest.mark.trains
def test_inside_stock_maskable_ppo() -> None:
    """MaskablePPO's buffer, masks and loss, with token ids; the action that the model prefers less pays."""
    (likes,) = make_policy(3).distribution(Bandit().reset()[0], [(0, 1)])
    pays = int(likes.argmin())
    env = DummyVecEnv([lambda: wrap_tokens(Bandit(pays))] * 8)
    model = MaskablePPO(
        LLMPolicy, env, 2e-3, n_steps=8, batch_size=64, n_epochs=4, device="cpu", seed=0,
        policy_kwargs={"lora": {"r": 4}},
    )  # fmt: skip
    before, _ = evaluate_policy(model, env, n_eval_episodes=64, deterministic=False, warn=False)
    model.learn(15 * 64)
    after, _ = evaluate_policy(
        model, Monitor(wrap_tokens(Bandit(pays))), n_eval_episodes=64, deterministic=False
    )
    assert before < 0.7 and after > 0.9
    assert rates_of(model.policy.optimizer) == [2e-3, 2e-2]


def collect_rewards(make_env: Callable[[], Echo], rate: float, **kwargs: Any) -> list[float]:
    """Returns the rewards of 40 steps of 128 episodes."""
    model = make_ppo(
        make_env, envs=128, batch_size=128, mini_batch_size=32, ppo_epochs=2, kl=FREE,
        learning_rate=Shaped("linear", rate), temperature=1.0, total_steps=40, **kwargs,
    )  # fmt: skip
    model.learn()
    return [row["rollout/reward"] for row in rows_of(model)]


@pytest.mark.trains
def test_replies_of_one_token_and_of_five() -> None:
    """One of four digits, where the optimum is 1 and a reply that depends on nothing earns 1/4 at most.

    The embedded model copies now and then, so that it begins at about a half. At three times this rate the
    first updates go so far that rounding decides how many of the digits are ever told apart. Each of five
    digits pays 1/5 in its place; a reply that depends on nothing earns 1/2 at most.
    """
    rewards = collect_rewards(lambda: Echo(1, "0123"), 1e-3, max_new_tokens=2, ent_coef=0.02)
    assert 0.25 < rewards[0] < 0.7 and np.mean(rewards[-10:]) > 0.9
    rewards = collect_rewards(lambda: Echo(5, "01"), 3e-3, max_new_tokens=6, ent_coef=0.01)
    assert rewards[0] < 0.5 and np.mean(rewards[-10:]) > 0.9
