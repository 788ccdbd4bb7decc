"""Model families: a whole step of training on each architecture, with each engine."""

from __future__ import annotations

import copy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

import game_gym  # noqa: F401  # registers the environments
from gamespiel.agents.engines import ENGINES
from gamespiel.agents.models.loading import load_base
from gamespiel.agents.models.names import BASE
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.tokens.codec import TokenBoundaryError
from task_gym.wrappers import NamedActions
from tests.agents.families import FAMILIES, parametrize_families
from tests.agents.toys import Stairs, collect, make_ppo

AT_ONCE = ("llama3", "gemma3")
"""Names as answers; and windows, norms everywhere, and a tokenizer of another kind."""

EVERY_READING = pytest.mark.parametrize("reading", ENGINES)


def kuhn() -> gym.Env[str, int]:
    """Returns a game whose actions have names."""
    return NamedActions(gym.make("GameSpiel-v0", game="kuhn_poker", opponent="random", rules=False))


def learner(family: str, reading: str, folder: Path) -> LLMPPO:
    """Returns a learner on a family's model; ids of several tokens, or names."""
    answer = FAMILIES[family].answer
    model = {"model_name": FAMILIES[family].save(folder), "random_weights": True, "reading": reading}
    keywords = {"model": model, "lora": {"r": 4}, "answer": answer}
    env = Stairs if answer == "id" else kuhn
    return make_ppo(env, adapters=0.1, batch_size=16, mini_batch_size=5, policy_kwargs=keywords)


@parametrize_families(FAMILIES, AT_ONCE)
@EVERY_READING
def test_a_step_of_training(family: str, reading: str, tmp_path: Path) -> None:
    """Adapters and head move, the base does not, and nothing is infinite. Before, the ratio is one."""
    model = learner(family, reading, tmp_path)
    policy = model.policy
    assert policy.engine.reading == reading
    base = {n: p.detach().clone() for n, p in policy.model.named_parameters() if not p.requires_grad}
    before = copy.deepcopy(policy.state_dict())
    assert collect(model)
    policy.set_training_mode(True)
    for batch in model.rollout_buffer.get(5):  # rollouts were of at most 4 rows
        scores = policy.scorer.score(batch.decisions)
        ratio = (batch.sum_over_units(scores.log_probs) - batch.sampler_log_probs).exp()
        assert (ratio - 1).abs().max() < 1e-5
    assert any(model.rollout_buffer.rewards)  # or the critic, which says 0, would have nothing to learn
    model.train()
    after = policy.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert [key for key in after if torch.equal(before[key], after[key])] == []
    named = dict(policy.model.named_parameters())
    assert base and all(torch.equal(value, named[name]) for name, value in base.items())
    logged = model.logger.name_to_value
    assert all(np.isfinite(value) for value in logged.values() if isinstance(value, float))
    assert logged["train/kl_ref"] > 0 and logged["train/actor_grad_norm"] > 0


@parametrize_families(FAMILIES, AT_ONCE)
@EVERY_READING
def test_probabilities_are_those_of_transformers(family: str, reading: str, tmp_path: Path) -> None:
    """By hand: the answers' tokens, one after the other, among those of legal actions that begin alike.

    With adapters off it is the base as it was loaded, which is the reference policy; with them on it is not.
    """
    policy = learner(family, reading, tmp_path).policy
    text, info = kuhn().reset(seed=1)
    if family == "gemma3":
        window = policy.model.get_base_model().config.sliding_window
        assert len(policy.codec.encode_prompt(text)) > 2 * window
    legal = tuple(info["legal_actions"])
    (own,) = policy.distribution([text], [legal])
    (reference,) = policy.distribution([text], [legal], adapters=BASE)
    base = load_base(policy.model_settings, "cpu", policy.seed)
    texts = map(str, legal) if policy.answer == "id" else text.names
    answers = [policy.codec.encode_answer(spelt) for spelt in texts]
    prompt = policy.codec.encode_prompt(text)

    def chance(model: torch.nn.Module, answer: tuple[int, ...]) -> float:
        left, chance = answers, 1.0
        for depth, token in enumerate(answer):
            children = sorted({tokens[depth] for tokens in left})
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([[*prompt, *answer[:depth]]])).logits[0, -1, children]
            chance *= float(logits.softmax(-1)[children.index(token)])
            left = [tokens for tokens in left if tokens[depth] == token]
        return chance

    assert reference == pytest.approx([chance(base, answer) for answer in answers], abs=1e-5)
    assert np.abs(own - reference).max() > 1e-3


def test_llama_3_answers_by_name_alone(tmp_path: Path) -> None:
    folder = FAMILIES["llama3"].save(tmp_path)
    with pytest.raises(TokenBoundaryError, match=r"splits digits .*env\.answer: name"):
        make_ppo(policy_kwargs={"model": {"model_name": folder, "random_weights": True}})
