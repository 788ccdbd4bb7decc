"""The engines: hidden states at chosen positions, and a whole step of training on each model family."""

from __future__ import annotations

import copy
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
import transformers

import game_gym  # noqa: F401  # registers the environments
from gamespiel.agents.engines import (
    ENGINES,
    Budgets,
    PaddedEngine,
    SharedEngine,
    UnsupportedModelError,
    make_engine,
)
from gamespiel.agents.models import BASE
from gamespiel.agents.models.loading import load_base
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from task_gym.errors import ArgumentError
from task_gym.wrappers import NamedActions
from tests.agents.families import FAMILIES, parametrize_families
from tests.agents.toys import Stairs, collect, make_policy, make_ppo

SEQUENCES = [(18, 30, 41), (50, 51, 52, 53, 54, 55, 56), (7,), (9, 8, 7, 6)]
BOTH = pytest.mark.parametrize("reading", ENGINES)


def test_logits_are_scaled_as_their_family_does(policy: LLMPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = policy.engine.logits(torch.ones(1, 64))
    for setting, value, expected in (
        ("logit_scale", 0.5, 0.5 * plain),
        ("logits_scaling", 4.0, plain / 4),
        ("final_logit_softcapping", 2.0, 2 * torch.tanh(plain / 2)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(policy.engine.transformer.config, setting, value, raising=False)
            assert torch.allclose(policy.engine.logits(torch.ones(1, 64)), expected)


def test_a_padded_engine_has_chunks_room_and_ends(policy: LLMPolicy) -> None:
    """Chunks hold similar lengths, longest first: 7 alone fills 8; 4 + 4 (the 3 padded to 4) fills 8; then 1.

    The widest prompt has 7 tokens: 80 // 8 rows of one more token, and then 80 // 9.
    """
    engine, config = PaddedEngine(policy.model, Budgets(8)), policy.model.get_base_model().generation_config
    assert list(engine.chunks(SEQUENCES)) == [[1], [3, 0], [2]]
    assert list(engine.chunks(SEQUENCES, 28)) == [[1, 3, 0, 2]]
    # A sequence above the budget still gets a forward.
    assert list(engine.chunks(SEQUENCES, 1)) == [[1], [3], [0], [2]]
    engine.budgets.tokens_per_forward = 80
    _, prefix = engine.prefill(SEQUENCES, cache=True)
    assert engine.room(prefix) == 10
    _, prefix = engine.grow(prefix, [2, 3], [5, 6])
    assert engine.room(prefix) == 8
    engine.budgets.tokens_per_forward = 1
    assert engine.room(prefix) == 1
    # Ends are those of the generation config.
    assert engine.vocab_size == 1536 and engine.end_tokens == {2}
    for ends, expected in (([2, 0], {2, 0}), (None, set())):
        config.eos_token_id = ends
        assert engine.end_tokens == expected
    config.eos_token_id = 2


@BOTH
def test_checkpointed_layers_give_the_same_gradient(reading: str) -> None:
    """With gradients they run twice, without gradients once: three times in all, not two."""
    gradients, calls = [], []
    for checkpointing in (False, True):
        policy = make_policy(
            adapters=0.1, model={"reading": reading, "gradient_checkpointing": checkpointing}
        )
        layer = policy.engine.transformer.layers[0].input_layernorm
        count: list[int] = []
        layer.register_forward_hook(lambda *_, count=count: count.append(1))
        policy.engine.read(SEQUENCES, range(4), [0] * 4).square().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in policy.adapter_parameters()]))
        policy.set_training_mode(True)
        with torch.no_grad():
            policy.engine.read(SEQUENCES, range(4), [0] * 4)
        calls.append(len(count))
    assert calls == [2, 3]
    assert torch.allclose(gradients[0], gradients[1], atol=1e-7) and gradients[0].norm() > 0


def test_an_engine_is_chosen_by_name_and_family(policy: LLMPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_engine(policy.model, "padded"), PaddedEngine)
    assert isinstance(make_engine(policy.model, "shared"), SharedEngine)
    assert isinstance(make_engine(policy.model, "auto"), PaddedEngine)  # it is small
    monkeypatch.setattr("gamespiel.agents.engines.SMALL", 1000)
    assert isinstance(make_engine(policy.model, "auto"), SharedEngine)
    with pytest.raises(ArgumentError, match=r"'sharde' was given.*'auto', 'shared', 'padded'; .*'shared'"):
        make_engine(policy.model, "sharde")
    # Nemotron's attention would never see the tree, and nobody looked at what its layers do.
    config = transformers.NemotronConfig(
        vocab_size=50, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4,
    )  # fmt: skip
    model = transformers.NemotronForCausalLM(config).eval()
    assert isinstance(make_engine(model, "auto"), PaddedEngine)
    with pytest.raises(UnsupportedModelError, match=r"'shared': the family 'nemotron' is none of .*'padded'"):
        make_engine(model, "shared")
    with pytest.raises(UnsupportedModelError, match=r"gradient_checkpointing: the family 'nemotron' is none"):
        make_engine(model, "padded", gradient_checkpointing=True)


def test_a_model_with_a_state_is_continued_by_reading_anew() -> None:
    """Mamba keeps no keys and values, and its state would take in the padding."""
    torch.manual_seed(0)
    model = transformers.MambaForCausalLM(
        transformers.MambaConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, state_size=4)
    ).eval()
    engine = PaddedEngine(model)
    _, prefix = engine.prefill(SEQUENCES, cache=True)
    extended = engine.extend(prefix, [2, 0, 2], [(11, 12, 13), (14,), (15,)])
    assert engine.room(prefix) > 10**9  # nothing is kept
    _, prefix = engine.grow(prefix, [2, 0, 2], [11, 14, 15])
    grown, _ = engine.grow(prefix, [0, 1], [12, 16])
    texts = [(7, 11, 12, 13), (18, 30, 41, 14), (7, 15), (7, 11, 12), (18, 30, 41, 14, 16)]
    for state, text in zip([*extended, *grown], texts, strict=True):
        with torch.no_grad():
            expected = model.backbone(torch.tensor([text])).last_hidden_state[0, -1]
        assert torch.allclose(state, expected, atol=1e-5)


# -- model families ------------------------------------------------------------------------------------------


AT_ONCE = ("llama3", "gemma3")
"""Names as answers; and windows, norms everywhere, and a tokenizer of another kind."""

GEMMA3 = pytest.param("gemma3", marks=[pytest.mark.families, pytest.mark.sample])
"""Its steps are the slowest."""


def kuhn() -> gym.Env[str, int]:
    """Returns a game whose actions have names."""
    return NamedActions(gym.make("GameSpiel-v0", game="kuhn_poker", opponent="random", rules=False))


def learner(family: str, reading: str, folder: Path) -> LLMPPO:
    """Returns a learner on a family's model; ids of several tokens, or names."""
    answer = FAMILIES[family].answer
    model = {"model_name": FAMILIES[family].save(folder), "random_weights": True, "reading": reading}
    keywords = {"model": model, "lora": {"r": 4}, "answer": answer}
    env = Stairs if answer == "id" else kuhn
    return make_ppo(env, adapters=0.1, batch_size=12, mini_batch_size=6, policy_kwargs=keywords)


@parametrize_families(sorted({*FAMILIES} - {"gemma3"}), ("llama3", GEMMA3))
@BOTH
def test_a_step_of_training(family: str, reading: str, tmp_path: Path) -> None:
    """Adapters and head move, the base does not, and nothing is infinite. Before, the ratio is one."""
    model = learner(family, reading, tmp_path)
    policy = model.policy
    assert policy.engine.reading == reading
    base = {n: p.detach().clone() for n, p in policy.model.named_parameters() if not p.requires_grad}
    before = copy.deepcopy(policy.state_dict())
    assert collect(model)
    policy.set_training_mode(True)
    batch = model.rollout_buffer.batch(np.arange(len(model.rollout_buffer)))  # of more rows than in play
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
@BOTH
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
    (probs,) = policy.distribution([text], [legal])
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
    assert probs == pytest.approx([chance(policy.model, answer) for answer in answers], abs=1e-5)
    assert np.abs(probs - reference).max() > 1e-3
