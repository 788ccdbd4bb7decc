"""PPO over whole episodes: the update, saving and resuming, and Stable-Baselines3's tools."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.callbacks import CheckpointCallback, StopTrainingOnMaxEpisodes
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from gamespiel.agents.learning.advantages import normalize_by_group
from gamespiel.agents.learning.kl_control import AdaptiveKLController
from gamespiel.agents.models.loading import TINY
from gamespiel.agents.policy import LLMPolicy, MissingMaskError
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.errors import ArgumentError
from task_gym.samplers import Failures
from task_gym.wrappers import FailureReplay
from tests.agents.toys import Bandit, Quiet, Stairs, Until, as_tokens, collect, make_ppo, masks_of, rows_of
from tests.metrics import timeless
from tests.task_gym.tasks import Tenths

TEXTS = ["x", "seat 0\nlegal 1 12", "y\n" * 5]
MASKS = masks_of([(0, 1, 2), (1, 12, 123), (7,)])


def state(model: LLMPPO) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in model.policy.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], part: str = "") -> bool:
    return all(torch.equal(a[key], b[key]) for key in a if key.startswith(part))


# -- an update -----------------------------------------------------------------------------------------------


def test_advantages_are_normalised_over_the_rollout_per_seat() -> None:
    model, plain = (make_ppo(batch_size=12, normalize_advantage=flag) for flag in (True, False))
    assert collect(model) and collect(plain)
    decode = model.policy.codec.tokenizer.decode
    texts = [decode(decision.prompt) for decision in model.rollout_buffer.decisions]
    seats = [text[text.index("seat ") :][:6] for text in texts]
    assert set(seats) == {"seat 0", "seat 1"}
    assert plain.rollout_buffer.advantages is not None
    expected = normalize_by_group(plain.rollout_buffer.advantages, seats)
    assert model.rollout_buffer.advantages == pytest.approx(expected)


def test_critic_warmup_leaves_the_actor_alone() -> None:
    model = make_ppo(Bandit, batch_size=8, critic_warmup_steps=1, adapters=0.05)
    before = state(model)
    model.learn(8)
    warm = state(model)
    assert same(before, warm, "adapter") and not same(before, warm, "value_head")
    model.learn(8)
    assert not same(warm, state(model), "adapter")


@pytest.mark.parametrize(("target", "expected"), [(1e-6, 0.3 * 1.2), (1e6, 0.3 * 0.8)])
def test_the_kl_coefficient_moves(target: float, expected: float) -> None:
    """Adapters with an effect diverge from the base by far more than 1e-6 and far less than 1e6."""
    model = make_ppo(batch_size=8, kl=AdaptiveKLController(0.3, target, horizon=1), adapters=0.05)
    model.learn(1)
    assert model.kl.coefficient == pytest.approx(expected)
    (row,) = rows_of(model)
    assert row["train/kl_coef"] == model.kl.coefficient and row["train/kl_ref"] > 1e-3


def test_a_divergence_without_weight_is_measured_in_some_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps 2 and 3 read nothing for the reference, and the weights are the same bits."""
    free = {"kl": AdaptiveKLController(0.0, 0.1, None), "adapters": 0.05, "batch_size": 6, "total_steps": 3}
    some, every = make_ppo(**free), make_ppo(**free)
    some.learn()
    monkeypatch.setattr(AdaptiveKLController, "needs_divergence", lambda control, step: True)
    every.learn()
    assert ["train/kl_ref" in row for row in rows_of(some)] == [True, False, False]
    for row, other in zip(rows_of(some), rows_of(every), strict=True):
        same_row = {name for name in other if other[name] == row.get(name, math.nan)}
        assert {"train/policy_loss", "train/entropy", "train/actor_grad_norm"} <= same_row
        assert ("train/tokens_per_decision" in same_row) == ("train/kl_ref" in row)
    own, theirs = state(some), state(every)
    assert all(torch.equal(own[name], theirs[name]) for name in own)


def test_a_heavy_divergence_pulls_back_to_the_reference() -> None:
    """The critic's loss is off and rewards are near 0, so the KL alone moves the adapters."""
    model = make_ppo(
        batch_size=8, adapters=0.05, learning_rate=3e-3, vf_coef=0.0,
        kl=AdaptiveKLController(1.0, 1.0, horizon=None), gamma=1e-9, ppo_epochs=2,
    )  # fmt: skip
    model.learn(120)
    found = [row["train/kl_ref"] for row in rows_of(model)]
    assert found[-1] < 0.5 * found[0]


def test_the_entropy_bonus_and_its_schedule() -> None:
    """Alone in the loss, the bonus makes two actions equally likely, ln 2 nats; at weight 0 it is off."""
    free = {"vf_coef": 0.0, "cliprange": 1e-9, "kl": AdaptiveKLController(0.0, 0.1, None), "adapters": 0.1}
    model = make_ppo(
        Bandit, envs=16, batch_size=16, ent_coef=lambda left: 100 * (left > 0.5), total_steps=20, **free
    )
    model.learn()
    found = [row["train/entropy"] for row in rows_of(model)]
    assert found[0] < 0.6 and found[9] == pytest.approx(np.log(2), abs=0.02)
    assert model.ent_coef == 0


def test_schedules_span_the_steps() -> None:
    """In 4 steps a linear rate is 4/4, 3/4, 2/4, 1/4 of its start; the critic's is ten times that."""
    rates = []

    class Rates(Quiet):
        def _on_rollout_start(self) -> None:
            optimizer = self.model.policy.optimizer
            rates.append(optimizer.effective_rates())

    model = make_ppo(
        Bandit, batch_size=2, learning_rate=lambda left: 1e-3 * left, total_steps=4, ppo_epochs=1
    )
    model.learn(callback=Rates())
    rates = [*rates[1:], model.policy.optimizer.effective_rates()]
    assert np.allclose(rates, [[1e-3 * left, 1e-2 * left] for left in (1.0, 0.75, 0.5, 0.25)])
    assert model.step == 4 and [row["step"] for row in rows_of(model)] == [1, 2, 3, 4]


def test_the_rate_warms_up_after_the_critic() -> None:
    """One step of the critic alone, at its whole rate; then 3 steps at 1/4, 2/4 and 3/4 of the actor's."""
    rates = []

    class Rates(Quiet):
        def _on_rollout_end(self) -> None:
            rates.append(self.model.policy.optimizer.effective_rates()[0])

    model = make_ppo(
        Bandit, batch_size=2, learning_rate=8e-3, total_steps=6, ppo_epochs=1,
        critic_warmup_steps=1, lr_warmup_steps=3, adam_beta2=0.5,
    )  # fmt: skip
    model.learn(callback=Rates())
    rates = [*rates[1:], model.policy.optimizer.effective_rates()[0]]
    assert np.allclose(rates, [8e-3, 2e-3, 4e-3, 6e-3, 8e-3, 8e-3])
    assert {group["betas"] for group in model.policy.optimizer.param_groups} == {(0.9, 0.5)}


@pytest.mark.parametrize(
    "name",
    ["batch_size", "mini_batch_size", "gradient_accumulation_steps", "ppo_epochs", "tokens_per_backward"],
)
def test_sizes_below_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: Input should be greater than or equal to 1, got 0"):
        make_ppo(**{name: 0})


def test_what_it_cannot_learn_from_is_refused() -> None:
    with pytest.raises(ValueError, match=r"learn\(\) needs total_timesteps, or total_steps"):
        make_ppo().learn()
    vector = DummyVecEnv([lambda: as_tokens(Bandit())])
    model = LLMPPO("LLMPolicy", vector, policy_kwargs={"lora": {"r": 2}}, device="cpu")
    with pytest.raises(ValueError, match="collects from a TextVecEnv, got DummyVecEnv"):
        model.learn(4)


# -- stopping and going on -----------------------------------------------------------------------------------


def learner(**kwargs: Any) -> LLMPPO:
    return make_ppo(
        batch_size=6, ppo_epochs=2, total_steps=4, learning_rate=lambda left: 3e-3 * left,
        kl=AdaptiveKLController(0.2, 0.01, horizon=30), **kwargs,
    )  # fmt: skip


def test_going_on_is_the_same_as_never_having_stopped() -> None:
    """Four steps at once, against two steps, a copy into another learner, and two more steps."""
    whole = learner()
    whole.learn()
    first = learner()
    first.learn(callback=Until(2))
    assert first.step == 2
    second = learner(envs=4)
    second.policy.load_state_dict(copy.deepcopy(first.policy.state_dict()))
    second.policy.optimizer.load_state_dict(copy.deepcopy(first.policy.optimizer.state_dict()))
    second.kl, second.step = copy.deepcopy(first.kl), first.step
    second.num_timesteps = first.num_timesteps
    torch.manual_seed(999)  # global generators must not matter
    np.random.seed(999)
    second.learn()
    assert second.step == whole.step == 4 and second.num_timesteps == whole.num_timesteps
    assert same(whole.policy.state_dict(), second.policy.state_dict())
    assert whole.kl == second.kl and whole.kl.coefficient != 0.2
    moments = [m.policy.optimizer.state_dict()["state"] for m in (whole, second)]
    assert all(torch.equal(moments[0][i][k], moments[1][i][k]) for i in moments[0] for k in moments[0][i])
    unbroken, broken = ([timeless(row) for row in rows_of(model)] for model in (whole, second))
    assert unbroken[2:] == broken and len(broken) == 2


def prompts_of(model: LLMPPO) -> list[tuple[int, ...]]:
    """Returns the prompts of the buffer's turns."""
    return [decision.prompt for decision in model.rollout_buffer.decisions]


def test_the_seed_is_the_run() -> None:
    """One seed gives one run; another seed gives other episodes and other adapters."""
    a, b, c = (make_ppo(batch_size=4, seed=seed) for seed in (0, 0, 1))
    for model in (a, b, c):
        model.learn(1)
    assert same(state(a), state(b)) and not same(state(a), state(c), "adapter")
    assert prompts_of(a) == prompts_of(b) != prompts_of(c)


def test_the_number_of_environments_does_not_change_a_step() -> None:
    models = [make_ppo(batch_size=6, envs=envs) for envs in (1, 4, 6)]
    for model in models:
        assert collect(model)
    first, *others = models
    for model in others:
        assert prompts_of(model) == prompts_of(first)
        answers = [decision.tokens for decision in model.rollout_buffer.decisions]
        assert answers == [decision.tokens for decision in first.rollout_buffer.decisions]


# -- Stable-Baselines3's tools -------------------------------------------------------------------------------


def test_callbacks_hear_what_they_expect() -> None:
    quiet = Quiet()
    model = make_ppo(Bandit, envs=4, batch_size=8)
    model.learn(16, callback=quiet)
    step = ["rollout start", "step", "step", "rollout end"]  # two waves of four one-turn episodes
    assert quiet.heard == ["training start", *step, *step, "training end"]
    assert model.num_timesteps == quiet.num_timesteps == 16 and model.step == 2


def test_a_callback_that_stops() -> None:
    quiet = Quiet(rounds=3)
    model = make_ppo(Bandit, envs=4, batch_size=8)
    model.learn(800, callback=quiet)
    assert model.step == 1 and model.num_timesteps == 8 and len(rows_of(model)) == 1
    assert quiet.heard[-2:] == ["step", "training end"]


def test_what_is_logged() -> None:
    model = make_ppo(batch_size=6)
    model.learn(1)
    (row,) = rows_of(model)
    expected = {"step", "decisions", "rollout/reward", "rollout/legal_mass", "rollout/faults"}
    expected |= {f"train/{name}" for name in ("policy_loss", "value_loss", "entropy", "kl_ref", "kl_coef")}
    expected |= {f"train/{name}" for name in ("approx_kl", "clip_fraction", "learning_rate", "exact_entropy")}
    assert expected <= set(row)
    assert row["decisions"] == model.num_timesteps == len(model.rollout_buffer)
    assert all(np.isfinite(value) for key, value in row.items() if key != "train/explained_variance")
    assert 0 < row["train/exact_entropy"] < 1  # some of Stairs' legal sets have one branching node


def test_the_checkpoint_callback(tmp_path: Path) -> None:
    make_ppo(Bandit, envs=4, batch_size=8).learn(16, callback=CheckpointCallback(2, str(tmp_path)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rl_model_16_steps.zip", "rl_model_8_steps.zip"]


def test_save_and_load(tmp_path: Path) -> None:
    policy_kwargs = {"lora": {"r": 2}, "critic_lr_multiplier": 7.0}
    model = make_ppo(batch_size=4, policy_kwargs=policy_kwargs, kl=AdaptiveKLController(0.2, 0.1, 20))
    model.learn(1)
    model.save(tmp_path / "model.zip")
    # Adapters of rank 2, a head and their Adam moments, but not the base.
    assert (tmp_path / "model.zip").stat().st_size < (TINY / "model.safetensors").stat().st_size / 2
    loaded = LLMPPO.load(tmp_path / "model.zip", env=TextVecEnv([Stairs] * 4), device="cpu")
    assert same(state(model), state(loaded))
    assert torch.equal(
        model.policy.get_distribution(TEXTS, MASKS).probs, loaded.policy.get_distribution(TEXTS, MASKS).probs
    )
    assert [group["lr_scale"] for group in loaded.policy.optimizer.param_groups] == [1.0, 7.0]
    assert loaded.kl == model.kl and loaded.kl is not model.kl
    assert (loaded.step, loaded.num_timesteps, loaded.hyperparameters.batch_size) == (
        1,
        model.num_timesteps,
        4,
    )
    for one in (model, loaded):
        one.learn(1)
    assert same(state(model), state(loaded))  # the same after further training


def test_load_without_an_environment_predicts(tmp_path: Path) -> None:
    model = make_ppo(adapters=0.1)
    model.save(tmp_path / "model")
    loaded = LLMPPO.load(tmp_path / "model", device="cpu")
    assert np.array_equal(
        model.predict(TEXTS, deterministic=True, action_masks=MASKS)[0],
        loaded.predict(TEXTS, deterministic=True, action_masks=MASKS)[0],
    )


def test_predict() -> None:
    model = make_ppo(adapters=0.1)
    actions, hidden = model.predict(np.array(TEXTS, dtype=object), action_masks=MASKS)
    assert actions.shape == (3,) and hidden is None
    assert all(MASKS[row, action] for row, action in enumerate(actions))
    one, _ = model.predict("x", action_masks=MASKS[0], deterministic=True)
    assert one.shape == () and MASKS[0, one]
    with pytest.raises(MissingMaskError):
        model.predict("x")


def test_the_maskable_evaluator() -> None:
    """A policy that always plays 1 earns 1 in every episode, with texts and with token ids."""
    model = make_ppo(Bandit)

    def highest(texts: Any, masks: Any, noise: Any) -> list[Decision]:
        actions = [np.flatnonzero(mask)[-1] for mask in np.atleast_2d(masks)]
        given = model.policy.make_decisions(texts, actions, masks)
        return [replace(decision, value=0.0) for decision in given]

    model.policy.decide = highest  # type: ignore[method-assign]
    env = TextVecEnv([lambda: Monitor(Bandit())] * 2)
    assert evaluate_policy(model, env, n_eval_episodes=6) == (1.0, 0.0)
    assert evaluate_policy(model, Monitor(as_tokens(Bandit())), n_eval_episodes=3) == (1.0, 0.0)
    rewards, lengths = evaluate_policy(
        make_ppo(),
        TextVecEnv([lambda: Monitor(Stairs())] * 2),
        n_eval_episodes=4,
        return_episode_rewards=True,
    )
    assert len(rewards) == len(lengths) == 4 and set(lengths) <= {2, 3, 4}


def test_one_environment_is_wrapped() -> None:
    model = LLMPPO(LLMPolicy, Stairs(), batch_size=2, policy_kwargs={"lora": {"r": 2}}, device="cpu")
    assert isinstance(model.env, TextVecEnv) and model.env.num_envs == 1
    assert model.env.env_is_wrapped(Monitor) == [True]
    assert isinstance(model.observation_space, spaces.Text)
    model.set_logger(Logger(None, []))
    assert collect(model)


def test_a_gpu_that_is_not_there_is_no_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stable-Baselines3 takes the CPU without a word if CUDA is asked for and is not there."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(
        ArgumentError, match=r"device: 'cuda:1' was given, and torch finds no GPU here; allow"
    ):
        LLMPPO(LLMPolicy, Stairs(), batch_size=2, device="cuda:1")
    assert LLMPPO(LLMPolicy, Stairs(), batch_size=2, device="auto").device == torch.device("cpu")


def test_other_environments_are_checked_as_the_first_ones() -> None:
    """Their number may change: no result depends on it."""
    model = make_ppo(Stairs, 2, batch_size=3)
    sampled = TextVecEnv([lambda: FailureReplay(Tenths(), Failures())])
    with pytest.raises(ArgumentError, match=r"env: FailureReplay was given around an environment"):
        model.set_env(sampled)
    with pytest.raises(ValueError, match=r"Action spaces do not match"):
        model.set_env(TextVecEnv([Bandit]))
    model.set_env(TextVecEnv([Stairs] * 3))
    assert model.n_envs == 3 and collect(model)


def test_stable_baselines_callbacks_know_the_end_and_the_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    """Two environments: four episodes each are eight, the eighth of them in the second step of five.

    A step that a callback stops does not count.
    """
    model = make_ppo(Bandit, 2, batch_size=5, ppo_epochs=1, total_steps=4)
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


class NoMask(Bandit):
    action_masks = None  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        if name == "action_masks":
            raise AttributeError(name)
        return super().__getattribute__(name)


class FromOne(Bandit):
    action_space = spaces.Discrete(3, start=1)


class Stuck(Bandit):
    def action_masks(self) -> np.ndarray[Any, Any]:
        return np.zeros(3, dtype=bool)


def test_environments_of_ones_own_that_it_cannot_play() -> None:
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


def test_a_loaded_model_keeps_its_hyper_parameters(tmp_path: Path) -> None:
    make_ppo(Bandit, 1, batch_size=8).save(tmp_path / "model")
    with pytest.raises(ArgumentError, match=r"load: batch_size=4 was given, and a saved model keeps"):
        LLMPPO.load(tmp_path / "model", batch_size=4)
    assert LLMPPO.load(tmp_path / "model", learning_rate=0.5).learning_rate == 0.5
