"""Training on texts: replies, with a decision per token, and conversations, whose tokens are read once."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gamespiel.agents.learning.coefficients import AdaptiveKLController
from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.measure.episodes import reply_constraint
from task_gym.replies import visible
from task_gym.spaces import UnicodeText
from task_gym.wrappers import Conversation
from tests.agents.deciders import kl
from tests.agents.test_update import train_in_batches
from tests.agents.toys import (
    N_ACTIONS,
    ONE_STEP,
    Echo,
    Stairs,
    assert_same_step,
    collect,
    draw_batches,
    make_policy,
    make_ppo,
    prompts_of,
    rows_of,
    same_noise,
    trained,
)

pytestmark = [pytest.mark.trains, pytest.mark.sample]


def learner(**kwargs: Any) -> LLMPPO:
    """Returns a learner with one step's episodes; its adapters are random, so replies differ in length."""
    settings = {"batch_size": 8, "max_new_tokens": 6, "adapters": 0.02, "max_grad_norm": 1e9} | kwargs
    model = make_ppo(lambda: Echo(3), **settings)
    assert collect(model)
    return model


# -- the loss ------------------------------------------------------------------------------------------------


def test_the_losses_are_means_over_tokens_and_the_critics_over_turns() -> None:
    """At ratio 1 the policy's loss is −Σ n A / Σ n, over turns of n tokens. The untrained head says 0.

    Temperature 0.6 divides the logits in sampling and in scoring alike.
    """
    model = learner(**ONE_STEP, temperature=0.6)
    buffer = model.rollout_buffer
    counts = np.array([len(decision.tokens) for decision in buffer.decisions])
    assert len(set(counts)) > 1 and np.abs(buffer.advantages).max() > 0.1
    with torch.no_grad():
        scores = model.policy.scorer.score(buffer.decisions)
    metrics = trained(model)
    assert metrics["train/sampler_gap_max"] < 1e-5
    assert metrics["train/clip_fraction"] == 0 and metrics["train/approx_kl"] < 1e-7
    expected = -(counts * buffer.advantages).sum() / counts.sum()
    assert metrics["train/policy_loss"] == pytest.approx(expected, abs=1e-5)
    assert metrics["train/value_loss"] == pytest.approx((buffer.returns**2).mean(), rel=1e-5)
    assert metrics["train/entropy"] == pytest.approx(float(scores.entropy.mean()), rel=1e-4)
    assert "train/legal_loss" not in metrics and "train/exact_entropy" not in metrics


@pytest.mark.parametrize("estimator", ["exact", "k3"])
def test_the_divergence_is_per_token(estimator: str) -> None:
    model = learner(**ONE_STEP, kl_estimator=estimator)
    buffer, policy = model.rollout_buffer, model.policy
    with torch.no_grad():
        scores = policy.scorer.score(buffer.decisions)
        with policy.adapters.use(BASE):
            base = policy.scorer.score(buffer.decisions)
        log_ratio = base.log_probs - scores.log_probs
        expected = kl(scores, base) if estimator == "exact" else log_ratio.exp() - 1 - log_ratio
    assert trained(model)["train/kl_ref"] == pytest.approx(float(expected.mean()), rel=1e-3)
    assert float(expected.mean()) > 1e-3


@pytest.mark.parametrize(("tokens", "estimator"), [(1, "exact"), (130, "k3")])
def test_the_gradient_does_not_depend_on_the_forwards(tokens: int, estimator: str) -> None:
    """Forwards have different numbers of tokens; a budget of one token gives each turn its own."""
    some = {"kl_estimator": estimator, "ent_coef": 0.1, "vf_coef": 0.5}
    weighted = {"kl": AdaptiveKLController(0.3, 1.0, None)}
    whole, split = (
        learner(**ONE_STEP, **some, **weighted, tokens_per_backward=budget) for budget in (10**6, tokens)
    )
    assert_same_step(whole, split)


def test_replies_that_are_cut_are_marked_and_penalised() -> None:
    """With one token, every reply that is not the end at once is cut, and its turn loses a quarter."""
    model = learner(max_new_tokens=1, cut_penalty=0.25, normalize_advantage=False)
    buffer, logged = model.rollout_buffer, model.logger.name_to_value
    ends = model.policy.free_text(1).ends
    cut = np.array([decision.tokens[-1] not in ends for decision in buffer.decisions])
    assert cut.any() and [len(decision.tokens) for decision in buffer.decisions] == [1] * 8
    assert [decision.cut for decision in buffer.decisions] == cut.tolist()
    paid = np.array(buffer.rewards) + 0.25 * cut
    assert set(paid.round(6)) <= {0.0, round(1 / 3, 6)}
    assert logged["rollout/cut_share"] == cut.mean() and logged["rollout/reply_tokens"] == 1
    assert logged["rollout/reward"] == pytest.approx(paid.mean())  # the environment's, before the penalty
    assert logged["rollout/illegal"] == 0 and "rollout/legal_mass" not in logged
    assert logged["rollout/cut"] == 0  # no episode was


# -- the policy ----------------------------------------------------------------------------------------------


def text_policy(**kwargs: Any) -> LLMPolicy:
    return make_policy(space=UnicodeText(1000), adapters=0.1, max_new_tokens=5, **kwargs)


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
    # A policy that chooses writes at temperature one.
    assert reply_constraint(make_policy(3, temperature=0.5), 4) == FreeText(frozenset({2}), 4, 1.0)
    assert reply_constraint(text_policy(temperature=0.5), 4) == FreeText(frozenset({2}), 4, 0.5)


# -- conversations -------------------------------------------------------------------------------------------


SHARED = {"policy_kwargs": {"lora": {"r": 4}, "model": {"reading": "shared"}}}
PADDED = {"policy_kwargs": {"lora": {"r": 4}, "model": {"reading": "padded"}}}
LEARNS = {"batch_size": 4, "adapters": 0.05, "max_grad_norm": 1e9, "ent_coef": 0.1, "vf_coef": 0.5}


def talking(make: Any = Stairs) -> gym.Env[Any, Any]:
    return Conversation(make())


def talker(**kwargs: Any) -> LLMPPO:
    model = make_ppo(talking, **LEARNS | SHARED | kwargs)
    assert collect(model)
    return model


def distinct(sequences: Any) -> int:
    """Returns the number of tokens of a tree of sequences."""
    return len({tuple(sequence[: n + 1]) for sequence in sequences for n in range(len(sequence))})


def forget_between_turns(sampler: Any) -> None:
    sample = sampler.sample

    def sample_forgetfully(requests: Any) -> Any:
        sampler.end_episodes()
        return sample(requests)

    sampler.sample = sample_forgetfully


def play_all(make_env: Any, *budgets: int, **settings: Any) -> tuple[list[Decision], list[int]]:
    """Returns the decisions of a forgetful sampler, the same as of others, and the tokens that all read."""
    played, read = list[list[Decision]](), list[int]()
    for budget in (None, *budgets):
        model = make_ppo(make_env, tokens_per_forward=budget or 10**6, **settings)
        if budget is None:
            forget_between_turns(model.policy.sampler)
        assert collect(model)
        played.append(model.rollout_buffer.decisions)
        read.append(model.policy.engine.tokens_read)
    for decisions in played[1:]:
        assert [(d.prompt, d.tokens) for d in decisions] == [(d.prompt, d.tokens) for d in played[0]]
        for a, b in zip(decisions, played[0], strict=True):
            assert np.allclose(a.log_probs, b.log_probs, atol=1e-5)
    return played[0], read


def test_what_is_kept_changes_no_decision() -> None:
    """Nor does a budget with place for some of the conversations only."""
    _, (forgetful, *others) = play_all(talking, 10**6, 300, **LEARNS | SHARED, envs=3)
    assert max(others) < forgetful
    play_all(talking, 300, **LEARNS | PADDED, envs=3)


def test_the_update_reads_a_conversation_once_and_nothing_is_kept_after_it_or_a_round_of_play() -> None:
    """Prompts and the nodes of answers, each distinct token once; the reference reads them again."""
    model = talker()
    engine, observation = model.policy.engine, Conversation(Stairs()).reset(seed=1)[0]
    masks = np.ones((1, N_ACTIONS), dtype=bool)

    def read_again() -> int:
        before = engine.tokens_read
        model.policy.decide([observation], masks, same_noise(0.0, 1))
        return engine.tokens_read - before

    whole, again = read_again(), read_again()
    assert again < whole
    assert collect(model) and read_again() == whole
    model.train()
    assert read_again() == whole  # nothing of the old weights is used


def test_optimizer_batches_are_whole_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes in a drawn order, until there are at least 8 turns; the last batch may have fewer."""
    model = talker(batch_size=10, mini_batch_size=4, gradient_accumulation_steps=2, ppo_epochs=2)
    model.step = 3
    batches = train_in_batches(model, monkeypatch)
    buffer = model.rollout_buffer
    episodes = [[buffer.decisions[turn].prompt for turn in turns] for turns in buffer.list_episodes()]
    expected = draw_batches(episodes, 3, 8)
    assert [sorted(batch) for batch in batches] == [sorted(batch) for batch in expected]
    assert len(expected) > 4


@pytest.mark.parametrize("tokens", [400, 10**6])
def test_gradients_are_those_of_reading_each_turn_alone(tokens: int) -> None:
    """Budgets of a stretch of turns, whose prefix is read again, and of all."""
    assert_same_step(talker(**PADDED, **ONE_STEP), talker(**ONE_STEP, tokens_per_backward=tokens))
    model = talker(**ONE_STEP, tokens_per_forward=10**6, tokens_per_backward=10**6, legal_coef=0.0)
    before = model.policy.engine.tokens_read
    model.train()
    sequences = [decision.prompt + decision.tokens[:-1] for decision in model.rollout_buffer.decisions]
    read = model.policy.engine.tokens_read - before
    assert distinct(prompts_of(model)) <= read / 2 <= distinct(sequences)
    assert read / 2 < 0.8 * sum(map(len, prompts_of(model)))


def test_metrics_say_how_long_conversations_are_and_how_many_are_cut() -> None:
    whole, cut = (
        make_ppo(talking, batch_size=4, policy_kwargs={"lora": {"r": 4}, "context_tokens": limit})
        for limit in (None, 150)
    )
    for model in (whole, cut):
        model.learn(4)
    (row,), (short,) = rows_of(whole), rows_of(cut)
    assert row["rollout/conversations_cut"] == 0 < short["rollout/conversations_cut"] < 1
    lengths = [len(decision.prompt) for decision in cut.rollout_buffer.decisions]
    assert short["rollout/conversation_tokens"] == pytest.approx(np.mean(lengths))
    assert max(lengths) <= 150 < max(len(decision.prompt) for decision in whole.rollout_buffer.decisions)
    assert math.isfinite(short["train/policy_loss"])


class Questions(Echo):
    """Two turns of ``Echo``, the second of which asks for the same."""

    def reset(self, **options: Any) -> Any:
        self.asked = 0
        self.first = super().reset(**options)
        return self.first

    def step(self, action: str) -> Any:
        self.asked += 1
        text, reward, over, cut, info = super().step(action)
        return (
            (text, reward, over, cut, info) if self.asked == 2 else (self.first[0], 0.0, False, False, info)
        )


def test_a_written_reply_is_read_once() -> None:
    """Each distinct token of prompts and replies, and once more each prompt's last.

    A reply's last token is read with the next prompt, and not at all if there is none. So the next prompt has
    the reply's own tokens, which are hardly ever those that the tokenizer would choose for its text. Protocol
    "evaluate" cuts white space at a reply's ends: such a reply may have to be tokenised anew.
    """
    settings = {"lora": {"r": 4}, "model": {"reading": "shared"}, "max_new_tokens": 8, "temperature": 4.0}
    talks = partial(talking, Questions)
    decisions, read = play_all(talks, 10**6, 300, batch_size=5, envs=5, policy_kwargs=settings)
    texts = [d.prompt + d.tokens[:-1] for d in decisions]
    assert max(len(d.tokens) for d in decisions) == 8
    codec, drifted = make_policy(3).codec, 0
    for one, other in zip(decisions[::2], decisions[1::2], strict=True):
        said = one.tokens if one.cut else one.tokens[:-1]
        text = codec.decode_reply(said)
        if visible(text) == text:
            assert other.prompt[: len(one.prompt) + len(said)] == one.prompt + said
            drifted += codec.encode_text(text) != said
    assert drifted > 0
    assert distinct(texts) <= read[1] <= distinct(texts) + len(decisions) < read[0]
