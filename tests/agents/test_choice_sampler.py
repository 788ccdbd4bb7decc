"""The distribution over choices, against one from the full model's logits, and the noise that draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from gamespiel.agents.engines import base
from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling import choice_sampler
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.noise import (
    Address,
    DrawnNoise,
    Purpose,
    episode_seeds,
    group_uniforms,
    permutation,
)
from task_gym.seeding import DRAWN_LIMIT
from tests.agents.deciders import as_reference, forwards, kl
from tests.agents.toys import asked, make_policy, masks_of, same_noise

Legal = tuple[int, ...]
HUNDREDS: Legal = tuple(range(0, 600, 2))
SETS: list[Legal] = [(0, 1, 2), (1, 2, 12, 123), (7,), (10, 15), (5, 50, 55, 500), HUNDREDS]
TEXTS = [
    "x",
    "seat 0\nlegal 1 12",
    "seat 1\nround 2\npot 7\nlegal 1 2 12 123",
    "y",
    "z z",
    "a longer state\n" * 4,
]


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(n_actions=600, adapters=0.1)


class Whole(NamedTuple):
    """Log-probabilities of n actions, and logs of the legal mass along their paths, (n,) each.

    The mass of the path is that of its branching nodes, the whole answer's that of all its tokens.
    """

    log_probs: Tensor
    masses: Tensor
    answer_masses: Tensor


def whole_tree(policy: LLMPolicy, text: str, legal: Legal) -> Whole:
    """Returns what is known of each legal action, by brute force.

    The model, head included, reads prompt and answer of every action as one text. A token is legal if it
    continues an answer that has the same tokens before it.
    """
    tokenizer, end = policy.codec.tokenizer, "<|im_end|>"
    prompt = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    start = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    rows = [tokenizer(f"{prompt}{action}{end}", add_special_tokens=False)["input_ids"] for action in legal]
    answers = [tuple(row[start:]) for row in rows]
    longest = max(map(len, rows))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    attended = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    logits = policy.model(input_ids=padded, attention_mask=attended).logits
    triples = []
    for i, answer in enumerate(answers):
        log_prob, mass, answer_mass = torch.zeros(3)
        for depth in range(len(answer)):
            next_tokens = sorted({a[depth] for a in answers if a[:depth] == answer[:depth]})
            unmasked = logits[i, start - 1 + depth].log_softmax(-1)
            legal_mass = unmasked[next_tokens].logsumexp(-1)
            answer_mass = answer_mass + legal_mass
            if len(next_tokens) > 1:
                log_prob = log_prob + unmasked[answer[depth]] - legal_mass
                mass = mass + legal_mass
        triples.append((log_prob, mass, answer_mass))
    return Whole(*(torch.stack(column) for column in zip(*triples, strict=True)))


@pytest.fixture(scope="module")
@torch.no_grad()
def wholes(policy: LLMPolicy) -> list[Whole]:
    """Returns what is known of ``SETS``, after ``TEXTS``."""
    return [whole_tree(policy, text, legal) for text, legal in zip(TEXTS, SETS, strict=True)]


def score(policy: LLMPolicy, texts: list[str], legal: list[Legal], actions: Any, mass: bool = False) -> Any:
    return policy.score(texts, actions, masks_of(legal, 600), mass=mass)


def score_all(policy: LLMPolicy, text: str, legal: Legal) -> Any:
    """Returns the scores of every legal action of one state."""
    return score(policy, [text] * len(legal), [legal] * len(legal), legal)


def draw(
    policy: LLMPolicy, texts: list[str], legal: list[Legal], uniforms: Callable[[int], Any]
) -> list[Decision]:
    return policy.decide(texts, masks_of(legal, 600), DrawnNoise.for_batch(uniforms, len(texts)))


def actions_of(policy: LLMPolicy, decisions: Sequence[Decision]) -> list[Any]:
    return [policy.answer_of(decision).action for decision in decisions]


def test_probabilities_are_those_of_brute_force(policy: LLMPolicy, wholes: list[Whole]) -> None:
    """Prompts of different lengths and legal sets of different shapes, together and one by one."""
    for p, text, legal, whole in zip(policy.distribution(TEXTS, SETS), TEXTS, SETS, wholes, strict=True):
        expected = whole.log_probs
        with torch.no_grad():
            scored = score_all(policy, text, legal)
        (alone,) = policy.distribution([text], [legal])
        assert np.allclose(p, expected.exp(), atol=1e-5) and np.allclose(p, alone, atol=1e-6)
        assert torch.allclose(scored.sum(scored.log_probs), expected, atol=1e-4)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert list(scored.exact) == [legal in [(0, 1, 2), (7,), (10, 15)]] * len(legal)
    with pytest.raises(ValueError, match=r"action 12 is not legal: the legal actions are \[1, 2\]"):
        score(policy, ["x"], [(1, 2)], [12])


# -- sampling ------------------------------------------------------------------------------------------------


def test_legal_mass_is_what_the_unmasked_model_gives(policy: LLMPolicy, wholes: list[Whole]) -> None:
    """It is multiplied over the path's branching nodes; a single legal action has none, so 1.

    The best action's is that of its path too.
    """
    drawn = draw(policy, TEXTS, SETS, np.random.default_rng(1).random)
    best = policy.decide(TEXTS, masks_of(SETS, 600), None)
    for whole, legal, *decisions in zip(wholes, SETS, drawn, best, strict=True):
        for one, action in zip(decisions, actions_of(policy, decisions), strict=True):
            expected = float(whole.masses[legal.index(action)].exp())
            assert one.legal_mass == pytest.approx(expected, abs=1e-5)
    assert drawn[2].legal_mass == best[2].legal_mass == 1.0 > drawn[1].legal_mass


def test_log_mass_is_along_the_whole_answer(
    policy: LLMPolicy, wholes: list[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forced tokens and the end of turn count, and so does an only action, which leaves nothing to choose.

    It may be made in parts, with the same gradient.
    """
    actions = [legal[-1] for legal in SETS]
    scored = score(policy, TEXTS, SETS, actions, mass=True)
    expected = [float(whole.answer_masses[-1].exp()) for whole in wholes]
    assert scored.log_mass.exp().tolist() == pytest.approx(expected, rel=1e-4)
    assert all(0 < mass < 1 for mass in expected)
    plain = score(policy, TEXTS, SETS, actions)
    assert plain.log_mass is None
    for name in ("log_probs", "entropy", "hidden", "child_log_probs"):
        assert torch.allclose(getattr(scored, name), getattr(plain, name), atol=1e-4)
    whole = torch.cat([g.flatten() for g in gradients(policy, scored.log_mass.sum())])
    monkeypatch.setattr(base, "LOGITS_LEARNED_FROM", 2 * len(policy.codec.tokenizer))
    again = score(policy, TEXTS, SETS, actions, mass=True).log_mass
    parts = torch.cat([g.flatten() for g in gradients(policy, again.sum())])
    assert float((parts - whole).norm() / whole.norm()) < 1e-5 and float(whole.norm()) > 0


def test_one_decision_divides_the_unit_interval(policy: LLMPolicy) -> None:
    """With u = (i + 1/2) / N, an action of probability p is drawn N p times, up to rounding at its ends.

    The lowest uniform takes a node's first child; the highest, and 1 by rounding, take its last. Padding is
    never taken: the narrower node is padded to the wider one's five children.
    """
    n, legal = 1000, (0, 1, 2)
    (p,) = policy.distribution(["x"], [legal])
    drawn = draw(policy, ["x"] * n, [legal] * n, lambda size: (np.arange(n) + 0.5) / n)
    actions = actions_of(policy, drawn)
    assert np.abs(np.bincount(actions, minlength=3) - n * p).max() <= 1
    assert (np.diff(actions) >= 0).all()  # ascending with the uniform
    sets: list[Legal] = [(1, 2), (0, 1, 2, 3, 4)]
    for uniform, expected in ((0.0, [1, 0]), (np.nextafter(1.0, 0.0), [2, 4]), (1.0, [2, 4])):
        drawn = draw(policy, ["x", "y"], sets, lambda size, u=uniform: np.full(2, u))
        assert actions_of(policy, drawn) == expected


def test_forwards_of_samples(policy: LLMPolicy) -> None:
    """The highest uniform takes the highest token, so the largest id: end-of-turn comes before digits.

    Repeated states are read once, and answers through "1" are read on once per level.
    """
    cases: tuple[tuple[Legal, int], ...] = (
        ((7,), 1),  # nothing to decide: the prompt, for the critic
        (HUNDREDS[:5], 1),  # 0 2 4 6 8: one decision, at the prompt's last position
        (tuple(range(1, 10)), 1),
        ((1, 12), 2),  # a forced "1", then end of turn or "2"
        ((120, 123), 2),  # a forced "12" is read with what follows it, not token by token
        ((1, 12, 123), 3),
        (tuple(range(500, 600, 2)), 3),  # one for each digit, however many ids there are
    )
    for legal, expected in cases:
        with forwards(policy) as shapes:
            drawn = draw(policy, ["x"], [legal], lambda size: np.full(1, np.nextafter(1.0, 0.0)))
        assert actions_of(policy, drawn) == [legal[-1]]
        assert len(shapes) == expected and all(rows == 1 for rows, _ in shapes), legal
    n, texts, digits = 100, ["x", "seat 0"] * 50, [(0, 1, 2)] * 100
    noise = np.linspace(0, 0.99, n)
    with forwards(policy) as shapes:
        drawn = draw(policy, texts, digits, lambda size: noise)
        score(policy, texts, digits, actions_of(policy, drawn))
        draw(policy, ["x"] * n, [(1, 12, 15)] * n, lambda size: noise)
    assert [rows for rows, _ in shapes] == [2, 2, 1, 1]


# -- entropy and divergence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("legal", SETS, ids=lambda legal: f"{len(legal)} ids to {legal[-1]}")
def test_entropy_and_divergence_are_right_on_average(policy: LLMPolicy, legal: Legal) -> None:
    """The policy's mean of the paths' sums is the exact value: Σ p(a) h(a) = −Σ p ln p; so for the KL.

    With at most one branching node, every action's own sum is exact.
    """
    text = f"seat 0{asked(legal[:8])}"  # it is read once for each action
    with torch.no_grad():
        scored = score_all(policy, text, legal)
    (p,) = policy.distribution([text], [legal])
    (q,) = policy.distribution([text], [legal], adapters=BASE)
    with as_reference(policy):
        reference = score_all(policy, text, legal)
    entropy, divergence = -(p * np.log(p)).sum(), (p * np.log(p / q)).sum()
    paths_entropy, paths_divergence = (
        scored.sum(each).numpy() for each in (scored.entropy, kl(scored, reference))
    )
    assert not kl(scored, scored).any()
    assert (p * paths_entropy).sum() == pytest.approx(entropy, abs=1e-5)
    assert (p * paths_divergence).sum() == pytest.approx(divergence, abs=1e-5)
    if len(legal) > 1:
        assert entropy > 0.01 and divergence > 0.01  # not trivially so
    if scored.exact[0]:
        assert np.allclose(paths_entropy, entropy, atol=1e-5)
        assert np.allclose(paths_divergence, divergence, atol=1e-5)
    else:
        assert np.ptp(paths_entropy) > 0.01 and np.ptp(paths_divergence) > 0.01


def gradients(policy: LLMPolicy, loss: Tensor) -> list[Tensor]:
    grads = torch.autograd.grad(loss, policy.adapter_parameters(), allow_unused=True)
    return [g for g in grads if g is not None]


def test_gradients_are_those_of_brute_force(policy: LLMPolicy) -> None:
    legal = (1, 2, 12, 123)
    expected = gradients(policy, whole_tree(policy, "seat 0", legal).log_probs.sum())
    scored = gradients(policy, score_all(policy, "seat 0", legal).log_probs.sum())
    assert len(expected) == len(scored) > 0
    for a, b in zip(expected, scored, strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-3)


def test_logits_of_many_nodes_are_made_in_parts(policy: LLMPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A greedy choice reads all nodes: with a large vocabulary their logits would not fit into memory."""
    texts, legal = ["x", "seat 0", "y"], [(0, 1, 2), (1, 12, 123), (0, 15)]
    whole = policy.distribution(texts, legal)
    counted: list[int] = []
    logits = policy.engine.logits
    monkeypatch.setattr(policy.engine, "logits", lambda h: counted.append(len(h)) or logits(h))
    monkeypatch.setattr("gamespiel.agents.engines.nodes.LOGITS_AT_ONCE", 2 * len(policy.codec.tokenizer))
    parts = policy.distribution(texts, legal)
    assert max(counted) == 2 and len(counted) > 1
    assert all(np.allclose(one, other, atol=1e-6) for one, other in zip(whole, parts, strict=True))


def test_nodes_that_are_read_with_their_prompts_give_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """One forward for small tries, in place of one per digit; rows of both kinds may be in one call."""
    shared = make_policy(n_actions=600, adapters=0.1, model={"reading": "shared"})
    # The prompt's forward decides the first digit of HUNDREDS, then each digit has one. In (5, 50, 55, 500)
    # the first decision is after a digit, so even that needs another forward if nodes are read one by one.
    for legal, expected in ((SETS, [1 + 3, 4]), (SETS[:-1], [1, 2])):
        drawn, counts = [], []
        for limit in (choice_sampler.READ_AT_ONCE, -1):
            monkeypatch.setattr(choice_sampler, "READ_AT_ONCE", limit)
            noise = same_noise(0.3, len(legal))
            with forwards(shared) as shapes:
                drawn.append(shared.decide(TEXTS[: len(legal)], masks_of(legal, 600), noise))
            counts.append(len(shapes))
        monkeypatch.undo()
        assert counts == expected
        for one, other in zip(*drawn, strict=True):
            assert one.tokens == other.tokens and one.value == pytest.approx(other.value, abs=1e-5)
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-5)
            assert one.legal_mass == pytest.approx(other.legal_mass, abs=1e-5)


# -- random numbers, addressed by their purpose --------------------------------------------------------------


@given(
    st.lists(st.integers(0, 15), min_size=1, max_size=16, unique=True),
    st.integers(0, 2**32 - 1), st.integers(0, 1000), st.integers(0, 50), st.integers(0, 6),
)  # fmt: skip
def test_an_episode_gets_its_number_in_any_company(
    episodes: list[int], seed: int, step: int, turn: int, depth: int
) -> None:
    """The keys are those of all runs: SeedSequence([seed, purpose, step, turn, depth]) of Philox."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1, step, turn, depth])))
    expected = generator.random(16)[episodes]
    addresses = [Address(seed, Purpose.ACTIONS, step, turn, episode) for episode in episodes]
    assert np.array_equal(group_uniforms(addresses)(depth), expected)
    assert np.array_equal(np.concatenate([address.uniforms(depth) for address in addresses]), expected)


def test_seeds_and_orders_of_a_step() -> None:
    seeds = episode_seeds(7, 3, 100)
    assert seeds == episode_seeds(7, 3, 100) and len(set(seeds)) == 100
    assert all(type(seed) is int and 0 <= seed < DRAWN_LIMIT for seed in seeds)
    assert seeds != episode_seeds(7, 4, 100) and seeds != episode_seeds(8, 3, 100)
    assert seeds != episode_seeds(7, 3, 100, Purpose.EVALUATION_TASKS)
    order = permutation(0, 1, 0, 50)
    assert sorted(order) == list(range(50)) and order.tolist() != list(range(50))
    assert np.array_equal(order, permutation(0, 1, 0, 50))
    assert not np.array_equal(order, permutation(0, 1, 1, 50))
    assert not np.array_equal(order, permutation(0, 2, 0, 50))


def test_drawn_noise_takes_one_draw_per_depth_and_group() -> None:
    """A group of rows 3 and 0 in a batch of 4: each depth draws 4 numbers, and takes two of them.

    Addresses of several groups come back in order: episodes 3 and 1 of turn 0, with 3 of turn 2 between them.
    """
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    batch = DrawnNoise.for_batch(rng.random, 4)
    noise = group_uniforms([batch[3], batch[0]])
    for depth in range(2):
        assert np.array_equal(noise(depth), again.random(4)[[3, 0]])
    mixed = [Address(0, Purpose.ACTIONS, 4, turn, episode) for turn, episode in ((0, 3), (2, 3), (0, 1))]
    expected = [address.uniforms(1)[0] for address in mixed]
    assert group_uniforms(mixed)(1).tolist() == expected and len(set(expected)) == 3
