"""The policy: its inputs, its trained weights, and numbers that do not depend on the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy, MissingMaskError, MissingNamesError
from gamespiel.agents.tokens.answers import AmbiguousNamesError
from task_gym.errors import ArgumentError
from task_gym.spaces import UnicodeText
from task_gym.wrappers import NamedText, TokenObservation
from tests.agents.toys import (
    N_ACTIONS,
    TEXT,
    Stairs,
    make_policy,
    masks_of,
    randomise,
    same_noise,
)

TEXTS = ["x", "seat 0\nlegal 1 12", "y\n" * 5]
LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (7,)]
MASKS = masks_of(LEGAL)
CHOICES = spaces.Discrete(3)


# -- spaces and masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "taken", "settings", "message"),
    [
        (spaces.Box(0.0, 1.0, (8,)), CHOICES, {}, r"reads texts .* or token ids"),
        (TEXT, spaces.MultiDiscrete([2, 2]), {}, "got decode='choice' and MultiDiscrete"),
        (TEXT, CHOICES, {"use_sde": True}, "state-dependent exploration"),
        (TEXT, spaces.Discrete(2), {"decode": "text"}, r"got decode='text' and Discrete\(2\)"),
        (TEXT, UnicodeText(9), {"decode": "choice"}, r"got decode='choice' and UnicodeText\(0, 9\)"),
        (TEXT, UnicodeText(9), {"decode": "txt"}, r"did you mean 'text'"),
        (TEXT, spaces.Discrete(2), {"think": True}, r"think=True is for a policy that writes"),
    ],
)
def test_spaces_and_settings_that_are_refused(seen: Any, taken: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LLMPolicy(seen, taken, lambda _: 1e-3, **settings)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (None, "needs action_masks"),
        (masks_of([(0,), (), (1,)]), r"rows \[1\] allow nothing"),
        (masks_of(LEGAL[:2]), r"shape \(2, 124\) came with 3 observations"),
        (MASKS.ravel(), r"shape \(1, 372\) came with 3 observations"),
    ],
    ids=["none", "empty", "too few", "flat"],
)
def test_what_is_legal_is_never_guessed(policy: LLMPolicy, masks: Any, message: str) -> None:
    for call in (
        lambda: policy.predict(np.array(TEXTS, dtype=object), action_masks=masks),
        lambda: policy.forward(TEXTS, action_masks=masks),
        lambda: policy.forward(TEXTS, deterministic=True, action_masks=masks),
        lambda: policy.evaluate_actions(TEXTS, [0, 1, 7], masks),
        lambda: policy.get_distribution(TEXTS, masks),
    ):
        with pytest.raises(MissingMaskError, match=message):
            call()


# -- answers by name -----------------------------------------------------------------------------------------

NAMED = [
    NamedText("x", ["0", "1", "2"]),
    NamedText("seat 0", ["legal", "legal 1", "seat"]),
    NamedText("y", ["'only'"]),
]


def test_sampling_and_scoring_by_name_agree(policy: LLMPolicy) -> None:
    """The first state's names are the numbers of its actions."""
    named = make_policy(adapters=0.1, answer="name")
    probs = named.get_distribution(NAMED, MASKS).probs
    by_number = policy.get_distribution(TEXTS[:1], MASKS[:1]).probs[0]
    assert torch.allclose(probs[0], by_number, atol=1e-6) and probs[2, 7] == 1.0
    for uniform in (0.05, 0.5, 0.95):
        drawn = named.decide(NAMED, MASKS, same_noise(uniform, 3))
        actions = [int(named.answer_of(decision).action) for decision in drawn]
        _, log_probs, _ = named.evaluate_actions(NAMED, actions, MASKS)
        sampled = torch.tensor([float(decision.log_probs.sum()) for decision in drawn])
        assert torch.allclose(sampled, log_probs, atol=1e-5)
        expected = probs[torch.arange(3), actions].log()
        assert torch.allclose(log_probs.double(), expected, atol=1e-5)
    best = named.predict(np.array(NAMED, dtype=object), deterministic=True, action_masks=MASKS)[0]
    assert best.tolist() == probs.argmax(-1).tolist()
    assert named.predict(NAMED[2], action_masks=MASKS[2])[0] == 7


def test_names_are_never_guessed() -> None:
    named = make_policy(answer="name")
    for texts, count in (
        (TEXTS, "no"),
        ([NAMED[0], NAMED[2], NAMED[1]], "1"),
        ([*TEXTS[:1], *NAMED[1:]], "no"),
    ):
        with pytest.raises(MissingNamesError, match=rf"{count} names came with the legal actions"):
            named.get_distribution(texts, MASKS)
    with pytest.raises(MissingNamesError, match="no names"):
        named.predict("x", action_masks=MASKS[0])
    with pytest.raises(AmbiguousNamesError, match=r"\['a', 'b', 'a'"):
        named.get_distribution([NamedText("x", ["a", "b", "a"])], masks_of([(0, 1, 2)]))
    with pytest.raises(ArgumentError, match=r"'names' was given, .*; did you mean 'name'"):
        make_policy(answer="names")


# -- trained weights -----------------------------------------------------------------------------------------


def test_the_state_is_what_learns() -> None:
    """Two layers of seven linear maps, A and B each; weight and bias of the head; nothing of the base.

    Nothing switches dropout on.
    """
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    policy = make_policy()
    make_policy(model={"random_weights": True})
    assert torch.equal(torch.rand(1), expected)  # global randomness is left alone
    state = policy.state_dict()
    adapters = [key for key in state if key.startswith("adapter.")]
    assert len(adapters) == 2 * 7 * 2 and all("lora_" in key for key in adapters)
    assert set(state) - set(adapters) == {"value_head.weight", "value_head.bias"}
    names = [name for name, parameter in policy.model.named_parameters() if parameter.requires_grad]
    assert len(names) == 28 and all("lora_" in name for name in names)
    trainable = {id(p) for p in policy.trainable_parameters()}
    assert trainable == {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert len(trainable) == 28 + 2
    assert torch.equal(policy.predict_values(TEXTS), torch.zeros(3, 1))
    policy.set_training_mode(True)
    assert not any(module.training for module in policy.modules())
    assert not any(isinstance(m, torch.nn.Dropout) and m.p > 0 for m in policy.modules())


def test_another_state_is_refused(policy: LLMPolicy) -> None:
    state = policy.state_dict()
    lacking = {k: v for k, v in state.items() if k != "value_head.bias"}
    with pytest.raises(RuntimeError, match=r"missing \['value_head.bias'\], unknown \[\]"):
        policy.load_state_dict(lacking)
    with pytest.raises(RuntimeError, match=r"missing \[\], unknown \['base.weight'\]"):
        policy.load_state_dict(state | {"base.weight": torch.zeros(1)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        policy.load_state_dict(make_policy(lora={"r": 2}).state_dict())


def test_values_are_the_head_on_the_prompts_last_state() -> None:
    policy = make_policy(adapters=0.1)
    torch.nn.init.normal_(policy.value_head.weight, generator=torch.Generator().manual_seed(0))
    policy.value_head.bias.data.fill_(0.25)
    expected = []
    for text in TEXTS:
        ids = torch.tensor([policy.codec.encode_prompt(text)])
        with torch.no_grad():
            hidden = policy.model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0, -1]
            expected.append(float(hidden @ policy.value_head.weight[0]) + 0.25)
    with torch.no_grad():
        for values in (
            policy.predict_values(TEXTS),
            policy.forward(TEXTS, action_masks=MASKS)[1],
            policy.evaluate_actions(TEXTS, [0, 12, 7], MASKS)[0],
            torch.tensor([[d.value] for d in policy.decide(TEXTS, MASKS, same_noise(0.0, 3))]),
            torch.tensor([[d.value] for d in policy.decide(TEXTS, MASKS, None)]),
        ):
            assert np.allclose(values[:, 0].numpy(), expected, atol=1e-5)


# -- the same number in every pass ---------------------------------------------------------------------------


def test_sampled_and_evaluated_alike_through_the_sb3_verbs(policy: LLMPolicy) -> None:
    masks = masks_of(LEGAL * 5)
    torch.manual_seed(0)
    actions, values, log_probs = policy.forward(TEXTS * 5, action_masks=masks)
    again, scored, entropy = policy.evaluate_actions(TEXTS * 5, actions, torch.tensor(masks))
    assert actions.dtype == torch.int64 and actions.shape == log_probs.shape == entropy.shape == (15,)
    assert values.shape == again.shape == (15, 1)
    assert torch.allclose(log_probs, scored, atol=1e-5)


# -- observations --------------------------------------------------------------------------------------------


def test_observations_and_masks_of_any_kind_of_one_and_of_several(policy: LLMPolicy) -> None:
    kinds = [MASKS.tolist(), torch.tensor(MASKS), *(MASKS.astype(kind) for kind in (np.int8, np.float32))]
    assert all(policy.answers.legal_sets(masks, 3) == LEGAL for masks in kinds)
    size = len(policy.codec.tokenizer)
    env = TokenObservation(Stairs(), policy.codec.encode_prompt, 128, size, policy.codec.pad)
    ids = np.stack([env.tokens(text) for text in TEXTS])
    assert policy.prompts(ids) == policy.prompts(torch.tensor(ids)) == policy.prompts(TEXTS)
    probs = policy.get_distribution(TEXTS, MASKS).probs
    assert torch.equal(policy.get_distribution(torch.tensor(ids), MASKS).probs, probs)
    assert torch.equal(policy.get_distribution(torch.tensor(ids).float(), MASKS).probs, probs)
    reader = LLMPolicy(env.observation_space, spaces.Discrete(N_ACTIONS), lambda _: 1e-3, lora={"r": 4})
    randomise(reader, 0.1)
    assert torch.equal(reader.get_distribution(ids, MASKS).probs, probs)
    with pytest.raises(ValueError, match=r"rows \[1\] hold nothing but padding"):
        policy.prompts(np.array([[5, policy.codec.pad], [policy.codec.pad] * 2]))
    one, _ = policy.predict("x", deterministic=True, action_masks=MASKS[0])
    assert one.shape == () and one in LEGAL[0]
    ids = env.tokens("x")
    assert policy.predict(ids, deterministic=True, action_masks=MASKS[0])[0] == one
    for several in (np.array(TEXTS, dtype=object), np.array(TEXTS), TEXTS):
        actions, _ = policy.predict(several, deterministic=True, action_masks=MASKS)
        assert actions.shape == (3,) and actions[0] == one
    assert policy.predict(ids[None], deterministic=True, action_masks=MASKS[:1])[0].shape == (1,)


def test_the_only_legal_action_is_certain(policy: LLMPolicy) -> None:
    """If no state of a batch has a choice, there is no node to read."""
    texts, masks = ["x", "seat 0"], masks_of([(7,), (12,)])
    for noise in (None, same_noise(0.0, 2)):
        taken = policy.decide(texts, masks, noise)
        assert [policy.answer_of(decision).action for decision in taken] == [7, 12]
        assert all(len(decision.log_probs) == 0 and decision.legal_mass == 1 for decision in taken)


def test_the_best_action_is_the_most_probable(policy: LLMPolicy) -> None:
    """The action's whole probability counts, not a greedy choice per token."""
    legal = [(1, 12, 15, 2), (0, 1, 2), (7,), (10, 100, 120)]
    texts = ["a", "b", "c", "d"]
    best = [
        actions[int(p.argmax())] for actions, p in zip(legal, policy.distribution(texts, legal), strict=True)
    ]
    masks = masks_of(legal)
    assert policy.predict(texts, deterministic=True, action_masks=masks)[0].tolist() == best
    actions, _, log_probs = policy.forward(texts, deterministic=True, action_masks=masks)
    assert actions.tolist() == best
    decisions = policy.decide(texts, masks, None)
    assert [policy.answer_of(decision).action for decision in decisions] == best
    probs = policy.get_distribution(texts, masks).probs
    assert probs.shape == (4, N_ACTIONS) and np.array_equal(probs.numpy() > 0, masks)
    assert torch.allclose(probs.sum(-1), torch.ones(4, dtype=torch.float64))
    for chances in (log_probs.detach().numpy(), [float(decision.log_probs.sum()) for decision in decisions]):
        assert np.allclose(np.exp(chances), probs[range(4), best], atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_masks_in_single(dtype: str) -> None:
    """−1e8 is −inf in float16, and −inf · 0 in a gradient is NaN: nodes of 2 and of 10 children together."""
    policy = make_policy(adapters=0.1, model={"dtype": dtype})
    assert {p.dtype for p in policy.model.parameters() if not p.requires_grad} == {getattr(torch, dtype)}
    assert {p.dtype for p in policy.trainable_parameters()} == {torch.float32}
    legal = [(1, 2), tuple(range(10)), (1, 12, 123)]
    masks = masks_of(legal)
    decisions = policy.make_decisions(TEXTS, [1, 9, 12], masks)
    reference = policy.scorer.prepare(decisions, BASE, [np.arange(3)]).take(np.arange(3))
    scored = policy.scorer.score(decisions, {BASE: reference})
    assert scored.log_probs.dtype == scored.entropy.dtype == scored.values.dtype == torch.float32
    numbers = (scored.log_probs, scored.entropy, scored.divergences[BASE], scored.values)
    torch.cat(numbers).sum().backward()
    grads = [p.grad for p in policy.trainable_parameters() if p.grad is not None]
    assert len(grads) >= 28 and all(torch.isfinite(g).all() for g in grads)
    for p in policy.distribution(TEXTS, legal):
        assert p.sum() == pytest.approx(1.0, abs=1e-9) and (p > 0).all()
