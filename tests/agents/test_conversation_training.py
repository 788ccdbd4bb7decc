"""Learning from conversations: whole episodes, each token read once, the same decisions and gradients."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.noise import permutation
from gamespiel.agents.sampling.sampler import Sampler
from task_gym.replies import visible
from task_gym.wrappers import Conversation
from tests.agents.test_update import prompts_of, relative, train_in_batches
from tests.agents.toys import (
    N_ACTIONS,
    Echo,
    Stairs,
    collect,
    gradient_of,
    make_ppo,
    rows_of,
    same_noise,
    trained,
)

SHARED = {"policy_kwargs": {"lora": {"r": 4}, "model": {"reading": "shared"}}}
PADDED = {"policy_kwargs": {"lora": {"r": 4}, "model": {"reading": "padded"}}}
LEARNS = {"batch_size": 10, "adapters": 0.05, "max_grad_norm": 1e9, "ent_coef": 0.1, "vf_coef": 0.5}


def talking(make: Any = Stairs) -> gym.Env[Any, Any]:
    return Conversation(make())


def learner(**kwargs: Any) -> LLMPPO:
    model = make_ppo(talking, **LEARNS | SHARED | kwargs)
    assert collect(model)
    return model


def episodes_of(model: LLMPPO) -> list[list[Any]]:
    decisions = model.rollout_buffer.decisions
    return [[decisions[turn] for turn in turns] for turns in model.rollout_buffer.list_episodes()]


def distinct(sequences: Any) -> int:
    """Returns the number of tokens of a tree of sequences."""
    return len({tuple(sequence[: n + 1]) for sequence in sequences for n in range(len(sequence))})


def test_a_conversation_is_read_once_in_play() -> None:
    """Each distinct token, but the last of a prompt, which has to be read for its answer to follow.

    Answers of several tokens are read on beyond the prompts: each node of their tries but the first.
    """
    model = make_ppo(talking, **LEARNS | SHARED, envs=10)
    assert collect(model)
    episodes = episodes_of(model)
    assert len(episodes) == 10 and max(map(len, episodes)) > 2
    for decisions in episodes:
        for one, other in pairwise(decisions):
            so_far = one.prompt + one.tokens
            assert other.prompt[: len(so_far)] == so_far and other.left_out == 0
    prompts = prompts_of(model)
    read, least = model.policy.engine.tokens_read, distinct(prompts)
    nodes = sum(
        len(decision.constraint.nodes) > 1 and len(decision.log_probs) - 1
        for decision in model.rollout_buffer.decisions
    )
    assert least <= read <= least + nodes + len(prompts) < 0.8 * sum(map(len, prompts))


class Forgetful:
    """A sampler that keeps nothing between turns."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)

    def sample(self, requests: Any) -> Any:
        self._sampler.end_episodes()
        return self._sampler.sample(requests)


def play_both(make_env: Any, budget: int, **settings: Any) -> tuple[list[Decision], dict[str, int]]:
    """Returns the decisions of a sampler, the same as of a forgetful one, and the tokens that both read."""
    played, read = list[list[Decision]](), dict[str, int]()
    for name, tokens in (("forgetful", 10**6), ("own", budget)):
        model = make_ppo(make_env, tokens_per_forward=tokens, **settings)
        if name == "forgetful":
            model.policy.sampler = Forgetful(model.policy.sampler)  # type: ignore[assignment]
        assert collect(model)
        played.append(model.rollout_buffer.decisions)
        read[name] = model.policy.engine.tokens_read
    expected, own = played
    assert [(d.prompt, d.tokens) for d in own] == [(d.prompt, d.tokens) for d in expected]
    for a, b in zip(own, expected, strict=True):
        assert np.allclose(a.log_probs, b.log_probs, atol=1e-5)
    return own, read


@pytest.mark.parametrize("reading", [SHARED, PADDED])
@pytest.mark.parametrize("budget", [10**6, 300])
def test_what_is_kept_changes_no_decision(reading: Any, budget: int) -> None:
    """Nor does a budget with place for some of the conversations only."""
    _, read = play_both(talking, budget, **LEARNS | reading, envs=5)
    if reading is SHARED:
        assert read["own"] < read["forgetful"]


def test_nothing_is_kept_after_an_update_or_a_round_of_play() -> None:
    model = learner()
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
    model = learner(mini_batch_size=4, gradient_accumulation_steps=2, ppo_epochs=2)
    model.step = 3
    batches = train_in_batches(model, monkeypatch)
    episodes = [[decision.prompt for decision in episode] for episode in episodes_of(model)]
    expected, turns = [], []
    for epoch in (0, 1):
        for at in permutation(0, 3, epoch, len(episodes)):
            turns = turns + episodes[at]
            if len(turns) >= 8:
                expected.append(turns)
                turns = []
        expected, turns = ([*expected, turns] if turns else expected), []
    assert [sorted(batch) for batch in batches] == [sorted(batch) for batch in expected]
    assert len(expected) > 4


ONE_STEP = {"mini_batch_size": 64, "gradient_accumulation_steps": 1, "ppo_epochs": 1}


@pytest.mark.parametrize("tokens", [400, 10**6])
def test_gradients_are_those_of_reading_each_turn_alone(tokens: int) -> None:
    """Budgets of a stretch of turns, whose prefix is read again, and of all."""
    alone, shared = learner(**PADDED, **ONE_STEP), learner(**ONE_STEP, tokens_per_backward=tokens)
    metrics = [trained(model) for model in (alone, shared)]
    assert len(alone.rollout_buffer) <= 64
    assert relative(gradient_of(shared), gradient_of(alone)) < 1e-5
    for name in ("policy_loss", "value_loss", "entropy", "kl_ref"):
        assert metrics[1][f"train/{name}"] == pytest.approx(metrics[0][f"train/{name}"], rel=1e-4, abs=1e-7)


def test_the_update_reads_a_conversation_once() -> None:
    """Prompts and the nodes of answers, each distinct token once; the reference reads them again."""
    model = learner(**ONE_STEP, tokens_per_forward=10**6, tokens_per_backward=10**6, legal_coef=0.0)
    before = model.policy.engine.tokens_read
    model.train()
    sequences = [decision.prompt + decision.tokens[:-1] for decision in model.rollout_buffer.decisions]
    read = model.policy.engine.tokens_read - before
    assert distinct(prompts_of(model)) <= read / 2 <= distinct(sequences)
    assert read / 2 < 0.8 * sum(map(len, prompts_of(model)))


def test_metrics_say_how_long_conversations_are_and_how_many_are_cut() -> None:
    whole, cut = (
        make_ppo(talking, batch_size=6, policy_kwargs={"lora": {"r": 4}, "context_tokens": limit})
        for limit in (None, 150)
    )
    for model in (whole, cut):
        model.learn(6)
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


def test_texts_are_conversations_of_their_own_tokens() -> None:
    """What an untrained model writes is hardly ever what the tokenizer would choose for its text.

    Protocol "evaluate" cuts white space at a reply's ends: such a reply may have to be tokenised anew.
    """
    settings = {"lora": {"r": 4}, "model": {"reading": "shared"}, "max_new_tokens": 8, "temperature": 4.0}
    model = make_ppo(partial(talking, Questions), batch_size=8, envs=8, policy_kwargs=settings)
    assert collect(model)
    codec, drifted = model.policy.codec, 0
    for one, other in episodes_of(model):
        said = one.tokens if one.cut else one.tokens[:-1]
        text = codec.decode_reply(said)
        if visible(text) == text:
            assert other.prompt[: len(one.prompt) + len(said)] == one.prompt + said
            drifted += codec.encode_text(text) != said
    assert drifted > 0
    assert math.isfinite(trained(model)["train/policy_loss"])


@pytest.mark.parametrize("budget", [10**6, 300])
def test_a_written_reply_is_read_once(budget: int) -> None:
    """Each distinct token of prompts and replies, and once more each prompt's last.

    A reply's last token is read with the next prompt, and not at all if there is none.
    """
    settings = {"lora": {"r": 4}, "model": {"reading": "shared"}, "max_new_tokens": 8, "temperature": 1.5}
    own, read = play_both(partial(talking, Questions), budget, batch_size=8, envs=8, policy_kwargs=settings)
    texts = [d.prompt + d.tokens[:-1] for d in own]
    assert max(len(d.tokens) for d in own) == 8
    if budget == 10**6:
        assert distinct(texts) <= read["own"] <= distinct(texts) + len(own) < read["forgetful"]
