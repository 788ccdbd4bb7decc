"""Training on replies as text: the same buffer, losses and loop, with a decision per token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.learning.kl_control import AdaptiveKLController
from gamespiel.agents.learning.schedules import schedule
from gamespiel.agents.models.names import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.episodes import reply_constraint
from task_gym.spaces import UnicodeText
from tests.agents.deciders import Texts
from tests.agents.toys import (
    TEXT,
    Echo,
    collect,
    gradient_of,
    make_policy,
    make_ppo,
    randomise,
    rows_of,
    trained,
)

FREE = AdaptiveKLController(0.0, 0.1, horizon=None)
ONE_STEP = {"mini_batch_size": 64, "gradient_accumulation_steps": 1, "ppo_epochs": 1}


def writer(length: int = 3, **kwargs: Any) -> LLMPPO:
    """Returns a learner of replies whose adapters are random, so that replies differ in length."""
    given = {"batch_size": 12, "max_new_tokens": 6, "adapters": 0.02, "max_grad_norm": 1e9} | kwargs
    return make_ppo(lambda: Echo(length), **given)


def learner(**kwargs: Any) -> LLMPPO:
    """Returns a writer with one step's episodes in its buffer."""
    model = writer(**kwargs)
    assert collect(model)
    return model


# -- the buffer ----------------------------------------------------------------------------------------------


FREE_TEXT = FreeText(ends=frozenset({2}), max_new_tokens=4)


def replied(tokens: tuple[int, ...], log_probs: list[float]) -> Decision:
    return Decision((1,), FREE_TEXT, tokens, np.array(log_probs, dtype=np.float32))


def written_buffer() -> TurnBuffer:
    """Replies of 2, 1 and 3 tokens, in episodes of their own; rewards 1, 2, 3, values 0."""
    buffer = TurnBuffer(normalize=False)
    log_probs = ([-0.5, -1.0], [-2.0], [-4.0, -8.0, -16.0])
    for turn, (tokens, own) in enumerate(zip([(5, 6), (7,), (8, 9, 10)], log_probs, strict=True)):
        buffer.add(turn, replied(tokens, own), turn + 1.0, 0.0)
    buffer.compute_returns_and_advantage()
    return buffer


def test_minibatches_of_replies() -> None:
    """Each token is a ratio unit of its own."""
    batch = written_buffer().batch(np.array([2, 0]))
    assert [decision.tokens for decision in batch.decisions] == [(8, 9, 10), (5, 6)]
    assert batch.unit_of_token.tolist() == [0, 1, 2, 3, 4] and batch.turn_of_unit.tolist() == [0, 0, 0, 1, 1]
    assert batch.sampler_log_probs.tolist() == [-4, -8, -16, -0.5, -1] and batch.advantages.tolist() == [3, 1]


def test_the_scorers_column_is_filled_turn_by_turn() -> None:
    """The sampler's stays; turns that were not scored keep the sampler's as their old ones."""
    buffer = written_buffer()
    buffer.put_scored(np.array([2, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    batch = buffer.batch(np.arange(3))
    assert batch.old_log_probs.tolist() == [4.0, 5.0, -2.0, 1.0, 2.0, 3.0]
    assert batch.sampler_log_probs.tolist() == [-0.5, -1.0, -2.0, -4.0, -8.0, -16.0]
    assert buffer.sampler_gap().tolist() == [4.5, 6.0, 0.0, 5.0, 10.0, 19.0]


def test_replies_without_a_number_for_each_token_are_refused() -> None:
    buffer = TurnBuffer()
    for tokens, log_probs in (((1, 2), [-1.0]), ((1,), [-1.0, -1.0])):
        with pytest.raises(ValueError, match=rf"{len(tokens)} decided tokens .* {len(log_probs)} log-prob"):
            buffer.add(0, replied(tokens, log_probs), 0.0, 0.0)
    assert len(buffer) == 0


# -- the loss ------------------------------------------------------------------------------------------------


def test_the_losses_are_means_over_tokens_and_the_critics_over_turns() -> None:
    """At ratio 1 the policy's loss is −Σ n A / Σ n, over turns of n tokens. The untrained head says 0.

    Temperature 0.6 divides the logits in sampling and in scoring alike.
    """
    model = learner(**ONE_STEP, temperature=0.6)
    buffer = model.rollout_buffer
    assert buffer.advantages is not None and buffer.returns is not None
    counts = np.array([len(decision.tokens) for decision in buffer.decisions])
    assert len(set(counts)) > 1 and np.abs(buffer.advantages).max() > 0.1
    with torch.no_grad():
        own = model.policy.scorer.score(buffer.decisions)
    found = trained(model)
    assert found["train/sampler_gap_max"] < 1e-5
    assert found["train/clip_fraction"] == 0 and found["train/approx_kl"] < 1e-7
    expected = -(counts * buffer.advantages).sum() / counts.sum()
    assert found["train/policy_loss"] == pytest.approx(expected, abs=1e-5)
    assert found["train/value_loss"] == pytest.approx((buffer.returns**2).mean(), rel=1e-5)
    assert found["train/entropy"] == pytest.approx(float(own.entropy.mean()), rel=1e-4)
    assert "train/legal_loss" not in found and "train/exact_entropy" not in found


@pytest.mark.parametrize("estimator", ["exact", "k3"])
def test_the_divergence_is_per_token(estimator: str) -> None:
    model = learner(**ONE_STEP, kl_estimator=estimator)
    buffer, policy = model.rollout_buffer, model.policy
    with torch.no_grad():
        texts = Texts(policy.codec, policy.engine, 6, policy.temperature)
        prompts = [decision.prompt for decision in buffer.decisions]
        replies = [decision.tokens for decision in buffer.decisions]
        own = texts.evaluate(prompts, replies)
        with policy.adapters.use(BASE):
            base = texts.evaluate(prompts, replies)
        log_ratio = base.log_probs - own.log_probs
        expected = own.kl_to(base) if estimator == "exact" else log_ratio.exp() - 1 - log_ratio
    assert trained(model)["train/kl_ref"] == pytest.approx(float(expected.mean()), rel=1e-3)
    assert float(expected.mean()) > 1e-3


@pytest.mark.parametrize(("tokens", "estimator"), [(1, "exact"), (130, "k3")])
def test_the_gradient_does_not_depend_on_the_forwards(tokens: int, estimator: str) -> None:
    """Forwards have different numbers of tokens; a budget of one token gives each turn its own."""
    some = {
        "kl_estimator": estimator,
        "ent_coef": 0.1,
        "vf_coef": 0.5,
        "kl": AdaptiveKLController(0.3, 1.0, None),
    }
    whole, split = (learner(**ONE_STEP, **some, tokens_per_backward=budget) for budget in (10**6, tokens))
    found = [trained(model) for model in (whole, split)]
    difference = (gradient_of(split) - gradient_of(whole)).norm() / gradient_of(whole).norm()
    assert difference < 1e-5
    for name in ("policy_loss", "value_loss", "entropy", "kl_ref"):
        assert found[1][f"train/{name}"] == pytest.approx(found[0][f"train/{name}"], rel=1e-4, abs=1e-7)


# -- rollouts ------------------------------------------------------------------------------------------------


def test_replies_that_are_cut_are_marked_and_penalised() -> None:
    """With one token, every reply that is not the end at once is cut, and its turn loses a quarter."""
    model = learner(max_new_tokens=1, cut_penalty=0.25, normalize_advantage=False)
    buffer, logged = model.rollout_buffer, model.logger.name_to_value
    ends = model.policy.free_text(1).ends
    cut = np.array([decision.tokens[-1] not in ends for decision in buffer.decisions])
    assert cut.any() and [len(decision.tokens) for decision in buffer.decisions] == [1] * 12
    assert [decision.cut for decision in buffer.decisions] == cut.tolist()
    paid = np.array(buffer.rewards) + 0.25 * cut
    assert set(paid.round(6)) <= {0.0, round(1 / 3, 6)}
    assert logged["rollout/cut_share"] == cut.mean() and logged["rollout/reply_tokens"] == 1
    assert logged["rollout/reward"] == pytest.approx(paid.mean())  # the environment's, before the penalty
    assert logged["rollout/illegal"] == 0 and "rollout/legal_mass" not in logged
    assert logged["rollout/cut"] == 0  # no episode was


def test_save_and_load(tmp_path: Path) -> None:
    model = writer(temperature=0.8)
    model.learn(12)
    model.save(tmp_path / "model.zip")
    loaded = LLMPPO.load(tmp_path / "model.zip", env=TextVecEnv([lambda: Echo(3)] * 4), device="cpu")
    policy = loaded.policy
    assert (policy.decode, policy.max_new_tokens, policy.temperature) == ("text", 6, 0.8)
    texts = [Echo(3).reset(seed=seed)[0] for seed in range(3)]
    said, hidden = model.predict(texts, deterministic=True)
    assert said.tolist() == loaded.predict(texts, deterministic=True)[0].tolist() and hidden is None
    assert loaded.predict(texts[0], deterministic=True)[0] == said[0] and isinstance(said[0], str)


# -- the policy ----------------------------------------------------------------------------------------------


def text_policy(**kwargs: Any) -> LLMPolicy:
    policy = LLMPolicy(TEXT, UnicodeText(1000), lambda _: 1e-3, lora={"r": 4}, max_new_tokens=5, **kwargs)
    randomise(policy, 0.1)
    return policy


def test_the_verbs() -> None:
    policy, texts = text_policy(), ["x", "write 12"]
    actions, values, log_probs = policy.forward(texts, deterministic=True)
    decisions = policy.decide(texts, None, None)
    assert actions.tolist() == [policy.answer_of(decision).action for decision in decisions]
    tokens = [decision.tokens for decision in decisions]
    again, scored, entropy = policy.evaluate_actions(texts, tokens)
    assert torch.allclose(values, again) and torch.allclose(log_probs, scored, atol=1e-4)
    assert values.shape == (2, 1) and entropy.shape == (2,) and bool((entropy > 0).all())
    assert policy.predict(np.array(texts, dtype=object))[0].shape == (2,)
    with pytest.raises(ValueError, match=r"writes replies .* no distribution under a mask"):
        policy.get_distribution(texts, np.ones((2, 2)))


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        (spaces.Discrete(2), {"decode": "text"}, r"got decode='text' and Discrete\(2\)"),
        (UnicodeText(9), {"decode": "choice"}, r"got decode='choice' and UnicodeText\(0, 9\)"),
        (UnicodeText(9), {"decode": "txt"}, r"did you mean 'text'"),
        (spaces.Discrete(2), {"think": True}, r"think=True is for a policy that writes"),
    ],
)
def test_settings_that_do_not_go_together(
    space: spaces.Space[Any], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        LLMPolicy(TEXT, space, lambda _: 1e-3, **settings)


def test_a_policy_that_chooses_writes_at_temperature_one() -> None:
    assert reply_constraint(make_policy(3, temperature=0.5), 4) == FreeText(frozenset({2}), 4, 1.0)
    assert reply_constraint(text_policy(temperature=0.5), 4) == FreeText(frozenset({2}), 4, 0.5)


# -- learning ------------------------------------------------------------------------------------------------


def collect_rewards(make_env: Callable[[], Echo], rate: float, **kwargs: Any) -> list[float]:
    """Returns the rewards of 40 steps of 128 episodes."""
    model = make_ppo(
        make_env, envs=128, batch_size=128, mini_batch_size=32, ppo_epochs=2, kl=FREE,
        learning_rate=schedule("linear", rate), temperature=1.0, total_steps=40, **kwargs,
    )  # fmt: skip
    model.learn()
    return [row["rollout/reward"] for row in rows_of(model)]


@pytest.mark.trains
def test_an_answer_of_one_token_and_of_five() -> None:
    """One of four digits, where the optimum is 1 and a reply that depends on nothing earns 1/4 at most.

    The embedded model copies now and then, so that it begins at about a half. At three times this rate the
    first updates go so far that rounding decides how many of the digits are ever told apart. Each of five
    digits pays 1/5 in its place; a reply that depends on nothing earns 1/2 at most.
    """
    rewards = collect_rewards(lambda: Echo(1, "0123"), 1e-3, max_new_tokens=2, ent_coef=0.02)
    assert 0.25 < rewards[0] < 0.7 and np.mean(rewards[-10:]) > 0.9
    rewards = collect_rewards(lambda: Echo(5, "01"), 3e-3, max_new_tokens=6, ent_coef=0.01)
    assert rewards[0] < 0.5 and np.mean(rewards[-10:]) > 0.9
