"""The numbers of an update, calculated by hand: the buffer, advantages, losses, and their coefficients."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.learning.advantages import KnownValues, explained_variance, normalize_by_group
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Coefficients, Shaped
from gamespiel.agents.learning.terms import (
    Part,
    Played,
    Scored,
    critic_error,
    entropy_bonus,
    illegal_mass_penalty,
    load_term,
    magnet_divergence,
    policy_gradient,
    reference_divergence,
    select_terms,
)
from gamespiel.agents.models import BASE, MAGNET
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import ActionTrie, FreeText
from task_gym.errors import ArgumentError

# -- the buffer of turns -------------------------------------------------------------------------------------


TRIE = ActionTrie.build({action: (10 + action,) for action in range(3)})
FREE = FreeText(frozenset({2}), 4)
PLAIN = Hyperparameters(normalize_advantage=False)


def decision(constraint: Any, tokens: tuple[int, ...], *log_probs: float) -> Decision:
    return Decision((len(tokens),), constraint, tokens, np.array(log_probs, dtype=np.float32))


def add(
    buffer: TurnBuffer, episode: int, reward: float, value: float, group: Any = None, action: int = 0
) -> None:
    chosen = Decision((len(buffer),), TRIE, TRIE.tokens[action], np.array([-0.5], dtype=np.float32))
    buffer.add(episode, chosen, reward, value, group)


def test_interleaved_episodes_of_different_lengths() -> None:
    """Episodes 0 (3 turns) and 1 (cut after 2), as a wave adds them. γ = 0.5, λ = 0.25.

    Episode 0: V 1, 2, 4, reward 8 at the end:
        δ₂ = 8 + 0.5·0 − 4 = 4      A₂ = 4
        δ₁ = 0 + 0.5·4 − 2 = 0      A₁ = 0 + 0.125·4 = 0.5
        δ₀ = 0 + 0.5·2 − 1 = 0      A₀ = 0 + 0.125·0.5 = 0.0625
    Episode 1: V 2, 2, rewards 0, cut in a state of value 12:
        δ₁ = 0 + 0.5·12 − 2 = 4     A₁ = 4
        δ₀ = 0 + 0.5·2 − 2 = −1     A₀ = −1 + 0.125·4 = −0.5
    """
    buffer = TurnBuffer(Hyperparameters(gamma=0.5, lam=0.25, normalize_advantage=False))
    for episode, reward, value in ((0, 0, 1), (1, 0, 2), (0, 0, 2), (1, 0, 2), (0, 8, 4)):
        add(buffer, episode, reward, value)
    buffer.bootstrap(1, 12.0)
    buffer.compute_returns_and_advantage()
    assert buffer.advantages.tolist() == [0.0625, -0.5, 0.5, 4.0, 4.0]
    assert buffer.returns.tolist() == [1.0625, 1.5, 2.5, 6.0, 8.0]


def test_a_choice_is_one_unit_and_a_forced_answer_a_unit_of_nothing() -> None:
    """Among 1, 12 and 2, the 12 is decided at the root and after the 1: its unit is -0.5 - 0.25.

    Of a set of one nothing is decided. Of two replies, each of 2 tokens, every token is a unit.
    """
    end = 9
    trie = ActionTrie.build({1: (1, end), 12: (1, 2, end), 2: (2, end)})
    only, free = ActionTrie.build({7: (7, end)}), FreeText(frozenset({end}), 5)
    log_probs = [[-0.5, -0.25], [], [-1.0], [-2.0, -4.0]]
    answers = [(trie, (1, 2, end)), (only, (7, end)), (trie, (2, end)), (free, (3, end))]
    buffer = TurnBuffer(PLAIN)
    for turn, ((constraint, tokens), row) in enumerate(zip(answers, log_probs, strict=True)):
        buffer.add(turn, decision(constraint, tokens, *row), float(turn), 0.0)
    buffer.compute_returns_and_advantage()
    batch = buffer.batch(np.array([3, 0, 1, 2]))
    assert batch.turn_of_unit.tolist() == [0, 0, 1, 2, 3]
    assert batch.sampler_log_probs.tolist() == [-2.0, -4.0, -0.75, 0.0, -1.0]
    assert batch.unit_of_token.tolist() == [0, 1, 2, 2, 4]
    assert batch.sum_over_units(torch.arange(1.0, 6.0)).tolist() == [1.0, 2.0, 7.0, 0.0, 5.0]


@pytest.mark.parametrize("all_actions", [False, True])
def test_equal_turns_are_merged_by_the_sign_of_their_advantage(all_actions: bool) -> None:
    """One prompt of two states: action 0 gains 0.2, 0.4 and -0.6 in them, and action 1 as much the other way.

    Actions are equally likely. Of the drawn ones, 0, 0 and 0, two turns gain 0.3 in the mean. Of all actions,
    each counts half a turn.
    """
    trie = ActionTrie.build({0: (10, 99), 1: (11, 99)})
    buffer, half = TurnBuffer(replace(PLAIN, advantage_scale=0.5)), np.log(0.5)
    for episode in range(3):
        buffer.add(episode, decision(trie, (10, 99), half), 0.0, 0.5)
    buffer.compute_returns_and_advantage()
    known = {
        episode: KnownValues(
            np.array([gain]), np.array([value]), [np.array([0.5, 0.5])], [np.array([gain, -gain])]
        )
        for episode, (gain, value) in enumerate([(0.2, 0.1), (0.4, 0.3), (-0.6, 0.8)])
    }
    buffer.compute_returns_and_advantage(known)
    buffer.merge_turns(known, all_actions=all_actions)
    assert buffer.weights is not None and buffer.advantages is not None and buffer.returns is not None
    rows = {
        (choice.tokens[0], bool(advantage > 0)): (weight, advantage, value)
        for choice, weight, advantage, value in zip(
            buffer.decisions, buffer.weights, buffer.advantages, buffer.returns, strict=True
        )
    }
    expected = {(10, True): (2, 0.6, 0.2), (10, False): (1, -1.2, 0.8)}
    if all_actions:
        expected |= {(11, False): (2, -0.6, 0.2), (11, True): (1, 1.2, 0.8)}
    assert rows.keys() == expected.keys()
    scale = len(rows) / sum(weight for weight, _, _ in expected.values())
    for key, (weight, advantage, value) in expected.items():
        assert rows[key] == pytest.approx((weight * scale, advantage, value))
    assert buffer.weigh(np.arange(len(rows)))["turns"] == pytest.approx(len(rows))


def test_a_better_action_that_is_rare_counts_as_one_of_the_floor() -> None:
    """Action 0 has 1% of two states of one prompt, where it gains 0.6 and -0.2: better in the mean.

    With a floor of 5%, both of its rows count five times. Action 1, worse in the mean, counts as it is
    played, and so does action 0 where it gains -0.6 and 0.2.
    """
    trie = ActionTrie.build({0: (10, 99), 1: (11, 99)})
    for sign, factor in ((1.0, 5.0), (-1.0, 1.0)):
        buffer = TurnBuffer(replace(PLAIN, advantage_scale=1.0))
        for episode in range(2):
            buffer.add(episode, decision(trie, (11, 99), np.log(0.99)), 0.0, 0.5)
        chances = [np.array([0.01, 0.99])]
        known = {
            episode: KnownValues(
                np.array([0.0]), np.array([0.5]), chances, [np.array([sign * gain, -sign * gain / 99])]
            )
            for episode, gain in enumerate([0.6, -0.2])
        }
        buffer.compute_returns_and_advantage(known)
        buffer.merge_turns(known, all_actions=True, floor=0.05)
        assert buffer.advantages is not None
        rows = [
            (choice.tokens[0], advantage)
            for choice, advantage in zip(buffer.decisions, buffer.advantages, strict=True)
        ]
        assert sorted(row for row in rows if row[0] == 10) == [
            (10, pytest.approx(gain * factor)) for gain in sorted((sign * 0.6, -sign * 0.2))
        ]
        assert sorted(row for row in rows if row[0] == 11) == [
            (11, pytest.approx(gain)) for gain in sorted((-sign * 0.6 / 99, sign * 0.2 / 99))
        ]


def test_replies_and_their_scorers_column() -> None:
    """Each token is a unit of its own. The scorer's column is filled turn by turn; the sampler's stays.

    Turns that were not scored keep the sampler's as their old ones.
    """
    buffer = TurnBuffer(PLAIN)
    log_probs = [(-0.5, -1.0), (-2.0,), (-4.0, -8.0, -16.0)]
    for turn, (tokens, row) in enumerate(zip([(5, 6), (7,), (8, 9, 10)], log_probs, strict=True)):
        buffer.add(turn, decision(FREE, tokens, *row), turn + 1.0, 0.5)
    buffer.compute_returns_and_advantage()
    batch = buffer.batch(np.array([2, 0]))
    assert [decision.prompt for decision in batch.decisions] == [(3,), (2,)]
    assert [decision.tokens for decision in batch.decisions] == [(8, 9, 10), (5, 6)]
    assert batch.unit_of_token.tolist() == [0, 1, 2, 3, 4] and batch.turn_of_unit.tolist() == [0, 0, 0, 1, 1]
    assert batch.sampler_log_probs.tolist() == batch.old_log_probs.tolist() == [-4, -8, -16, -0.5, -1]
    assert batch.advantages.tolist() == [2.5, 0.5] and batch.returns.tolist() == [3.0, 1.0]
    for tensor in (batch.old_log_probs, batch.advantages, batch.returns):
        assert tensor.dtype == torch.float32
    buffer.put_scored(np.array([2, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    batch = buffer.batch(np.arange(3))
    assert batch.old_log_probs.tolist() == [4.0, 5.0, -2.0, 1.0, 2.0, 3.0]
    assert batch.sampler_log_probs.tolist() == [-0.5, -1.0, -2.0, -4.0, -8.0, -16.0]
    assert buffer.sampler_gap().tolist() == [4.5, 6.0, 0.0, 5.0, 10.0, 19.0]


def test_decisions_that_are_refused() -> None:
    buffer = TurnBuffer(Hyperparameters())
    for wrong, message in (
        # The only branching node of TRIE has one log-probability, a written token one each.
        (decision(TRIE, (10,), -0.5, -0.5), "1 decided tokens was given 2 log-probabilities"),
        (decision(FREE, (1, 2), -1.0), "2 decided tokens was given 1 log-probabilities"),
        (decision(TRIE, (99,), -0.5), r"the tokens \[99\] are the answer of none of \[0, 1, 2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            buffer.add(0, wrong, 0.0, 0.0)
    assert len(buffer) == 0


def test_batches_need_advantages_and_a_reset_forgets_all() -> None:
    buffer = TurnBuffer(Hyperparameters())
    for turn in range(2):
        add(buffer, turn, 0.0, 0.0)  # the second makes the advantages stale
        with pytest.raises(RuntimeError, match="call compute_returns_and_advantage"):
            buffer.batch(np.arange(1))
        buffer.compute_returns_and_advantage()
    buffer.bootstrap(0, 5.0)
    buffer.reset()
    assert len(buffer) == 0 and buffer.advantages is None
    add(buffer, 0, 1.0, 0.0)
    buffer.compute_returns_and_advantage()
    assert buffer.returns is not None and buffer.returns.tolist() == [1.0]  # the old bootstrap is gone


# -- advantages and terms of the loss ------------------------------------------------------------------------


def test_groups_are_normalised_apart() -> None:
    """Seat 0: 1, 3 → mean 2, deviation 1; seat 1: 10, 10, 40 → mean 20, deviation √200 = 14.142.

    The deviation of one value, or of equal ones, is 0, and 0/0 must not reach the loss. ±0.001 is the
    critic's error on episodes of equal reward; it becomes ±0.001 / 0.05, not ±1.
    """
    out = normalize_by_group(np.array([1.0, 10.0, 3.0, 10.0, 40.0]), ["0", "1", "0", "1", "1"])
    root = math.sqrt(2)
    assert out == pytest.approx([-1.0, -1 / root, 1.0, -1 / root, root], abs=1e-6)
    one = normalize_by_group(np.array([5.0, 1.0, 3.0]), ["alone", "b", "b"])
    assert one == pytest.approx([0.0, -1.0, 1.0])
    assert np.abs(normalize_by_group(np.full(7, 0.1), [None] * 7)).max() < 1e-6
    assert normalize_by_group(np.zeros(0), []).shape == (0,)
    errors = np.array([0.001, -0.001])
    assert normalize_by_group(errors, [None] * 2) == pytest.approx([0.02, -0.02])


def test_explained_variance() -> None:
    """Var(returns) of 0, 2 is 1; errors 0.5, −0.5 vary by 0.25; a constant error does not vary."""
    returns = np.array([0.0, 2.0])
    assert explained_variance(np.array([0.5, 1.5]), returns) == 0.75
    assert explained_variance(returns + 3.0, returns) == 1.0
    assert explained_variance(np.zeros(2), returns) == 0.0
    assert math.isnan(explained_variance(np.array([0.0, 1.0]), np.ones(2)))
    # A row of weight 3 is three rows: returns 0, 0, 0, 4 vary by 3, and errors 0, 0, 0, 2 by 3/4.
    weighted = explained_variance(np.array([0.0, 2.0]), np.array([0.0, 4.0]), np.array([1.5, 0.5]))
    assert weighted == pytest.approx(1 - 0.75 / 3)


NONE = torch.zeros(0)


def make_played(count: int, *columns: Tensor) -> Played:
    """Returns what is known of units and turns that all weigh the same, as many of each."""
    return Played(*columns, *[NONE] * (4 - len(columns)), torch.ones(count), torch.ones(count))


def clipped_gradient(new: Tensor, old: Tensor, advantages: Tensor) -> Part:
    scored, played = Scored(new, NONE, NONE), make_played(len(old), old, old, advantages)
    return policy_gradient(scored, played, Coefficients(cliprange=0.2))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        # Within 0.8 … 1.2 the loss is −r A, and d(−r A)/d log π = −r A.
        (1.0, 2.0, -2.0, -2.0),
        (1.1, -2.0, 2.2, 2.2),
        # Beyond, in the direction of the advantage: clipped, without a gradient.
        (1.5, 2.0, -1.2 * 2, 0.0),
        (0.5, -2.0, 0.8 * 2, 0.0),
        # Beyond, in the other direction: the unclipped value is the minimum and pulls back.
        (1.5, -2.0, 1.5 * 2, 3.0),
        (0.5, 2.0, -0.5 * 2, -1.0),
    ],
)
def test_the_clip(ratio: float, advantage: float, loss: float, gradient: float) -> None:
    old = torch.tensor([-1.0])
    new = (old + math.log(ratio)).requires_grad_()
    part = clipped_gradient(new, old, torch.tensor([advantage]))
    part.loss.backward()
    assert part.over == "units" and part.loss.item() == pytest.approx(loss, abs=1e-6)
    assert new.grad is not None and float(new.grad) == pytest.approx(gradient, abs=1e-6)
    assert float(part.metrics["clip_fraction"]) == float(abs(ratio - 1) > 0.2)
    assert not part.metrics["clip_fraction"].requires_grad and not part.metrics["approx_kl"].requires_grad


def test_the_mean_over_units() -> None:
    """Ratios 1, 2 and ½ with A = 1, 1, −1 and ε = 0.2: −(1 + 1.2 − 0.8)/3 = −1.4/3; two of three outside.

    (r − 1) − ln r: 0, 1 − ln 2, −½ + ln 2; their mean is ½/3.
    """
    old = torch.tensor([-1.0, -2.0, -0.5])
    new = old + torch.tensor([1.0, 2.0, 0.5]).log()
    part = clipped_gradient(new, old, torch.tensor([1.0, 1.0, -1.0]))
    metrics = {name: float(value) for name, value in part.metrics.items()}
    assert metrics == pytest.approx({"policy_loss": -1.4 / 3, "clip_fraction": 2 / 3, "approx_kl": 0.5 / 3})


def test_the_weight_between_sampler_and_scorer() -> None:
    """The scorer finds ½, 1 and 4 times the sampler's probability; a cap of 2 leaves ½, 1 and 2.

    At ratio 1 with A = 1 the loss is −(½ + 1 + 2)/3, and the gradient of each unit is −weight/3.
    """
    old = torch.tensor([-1.0, -2.0, -3.0])
    sampler = old - torch.tensor([0.5, 1.0, 4.0]).log()
    new = old.clone().requires_grad_()
    played = make_played(3, old, sampler, torch.ones(3))
    part = policy_gradient(Scored(new, NONE, NONE), played, Coefficients(sampler_weight_cap=2.0))
    part.loss.backward()
    assert float(part.loss.detach()) == pytest.approx(-3.5 / 3, abs=1e-6)
    assert new.grad is not None and new.grad.tolist() == pytest.approx([-0.5 / 3, -1 / 3, -2 / 3], abs=1e-6)
    assert float(part.metrics["sampler_weight"]) == pytest.approx(3.5 / 3)
    assert float(part.metrics["sampler_capped"]) == pytest.approx(1 / 3)


def test_mass_above_the_target_costs_nothing() -> None:
    """Masses 1, 0.9 and 0.45 of a target of 0.9 cost 0, 0 and log 2; only the last has a gradient."""
    log_mass = torch.tensor([1.0, 0.9, 0.45]).log().requires_grad_()
    scored = Scored(NONE, NONE, NONE, log_mass=log_mass)
    part = illegal_mass_penalty(scored, make_played(3), Coefficients(legal_coef=0.5, legal_target=0.9))
    assert part.over == "turns" and float(part.loss.detach()) == pytest.approx(math.log(2) / 6, abs=1e-6)
    assert float(part.metrics["legal_loss"].detach()) == pytest.approx(math.log(2) / 3, abs=1e-6)
    assert float(part.metrics["legal_mass"]) == pytest.approx(2.35 / 3)
    part.loss.backward()
    assert log_mass.grad[[0, 2]].tolist() == pytest.approx([0.0, -1 / 6])


def test_means_with_their_weights() -> None:
    """Entropies 1 and 3 with weight 0.2, as a bonus; divergences 0 and 1 with 0.3, 2 and 4 with 0.5.

    The critic's error is (1² + 3²)/2, with 0.1.
    """
    divergences = {BASE: torch.tensor([0.0, 1.0]), MAGNET: torch.tensor([2.0, 4.0])}
    scored = Scored(NONE, torch.tensor([1.0, 3.0]), torch.tensor([1.0, -1.0]), divergences)
    played = make_played(2, NONE, NONE, NONE, torch.tensor([0.0, 2.0]))
    numbers = Coefficients(ent_coef=0.2, kl_coef=0.3, magnet_coef=0.5, vf_coef=0.1)
    for term, over, loss, metrics in (
        (entropy_bonus, "units", -0.4, {"entropy": 2.0}),
        (reference_divergence, "units", 0.15, {"kl_ref": 0.5}),
        (magnet_divergence, "units", 1.5, {"kl_magnet": 3.0}),
        (critic_error, "turns", 0.5, {"value_loss": 5.0}),
    ):
        part = term(scored, played, numbers)
        assert part.over == over and float(part.loss) == pytest.approx(loss)
        assert {name: float(value) for name, value in part.metrics.items()} == pytest.approx(metrics)


def test_a_turn_of_weight_three_is_three_turns() -> None:
    """Advantages 1, 1, 1 and −1 at ratio 1, entropies 1, 1, 1 and 2, and errors 1, 1, 1 and 3."""
    old = torch.zeros(2)
    scored = Scored(old, torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
    weights = torch.tensor([1.5, 0.5])
    played = Played(old, old, torch.tensor([1.0, -1.0]), torch.zeros(2), weights, weights)
    numbers = Coefficients(ent_coef=1.0, vf_coef=1.0)
    assert float(policy_gradient(scored, played, numbers).loss) == pytest.approx(-2 / 4)
    assert float(entropy_bonus(scored, played, numbers).loss) == pytest.approx(-5 / 4)
    assert float(critic_error(scored, played, numbers).loss) == pytest.approx((3 * 1 + 9) / 4)


# -- the coefficient of the divergence -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kl", "turns", "horizon", "expected"),
    [
        (0.1, 500, 1000, 0.2),  # on target
        (0.11, 500, 1000, 0.2 * (1 + 0.1 * 0.5)),  # a tenth above the target, for half a horizon
        (0.095, 1000, 1000, 0.2 * (1 - 0.05)),  # a twentieth below, for one horizon
        (5.0, 1000, 1000, 0.2 * 1.2),  # far above counts as a fifth
        (0.0, 50_000, 1000, 0.2 * 0.8),  # so does far below, and 50 horizons count as one
        (5.0, 1000, None, 0.2),
    ],
)
def test_an_update(kl: float, turns: int, horizon: int | None, expected: float) -> None:
    control = AdaptiveKLController(coefficient=0.2, target=0.1, horizon=horizon)
    control.update(kl, turns)
    assert control.coefficient == pytest.approx(expected)


def test_a_fixed_weight_of_0_asks_for_some_divergences_and_none_may_be_no_number() -> None:
    """A divergence that is no number would make the coefficient, and every later loss, NaN."""
    every = list(range(1, 31))
    for coefficient, horizon, measured in (
        (0.0, None, [1, 10, 20, 30]),
        (0.1, None, every),
        (0.0, 100, every),
    ):
        control = AdaptiveKLController(coefficient, 0.1, horizon)
        assert [step + 1 for step in range(30) if control.needs_divergence(step)] == measured
    for wrong in ((-0.1, 0.1, 10), (0.1, 0.0, 10), (0.1, 0.1, 0)):
        with pytest.raises(ValueError, match="got {}, {}, {}".format(*wrong)):
            AdaptiveKLController(*wrong)
    control = AdaptiveKLController(0.2, 0.1)
    with pytest.raises(FloatingPointError, match="divergence from the reference is nan"):
        control.update(math.nan, 10)
    assert control.coefficient == 0.2


# -- schedules -----------------------------------------------------------------------------------------------


def test_schedules_by_hand() -> None:
    """At 1, 3/4, 1/2, 1/4 and 0 remaining, of 8, and from 0.3 to 0.06; the mean of these two is 0.18.

    4 - 4 cos(pi r): cos(pi) = -1, cos(3 pi / 4) = -1/sqrt 2, 0, 1/sqrt 2, 1.
    """
    root = 4 / math.sqrt(2)
    for shape, expected, ends in (
        ("constant", (8, 8, 8, 8, 8), (0.3, 0.3, 0.3)),
        ("linear", (8, 6, 4, 2, 0), (0.3, 0.18, 0.06)),
        ("cosine", (8, 4 + root, 4, 4 - root, 0), (0.3, 0.18, 0.06)),
    ):
        values, falling = Shaped(shape, 8.0), Shaped(shape, 0.3, 0.06)
        assert [values(left) for left in (1, 0.75, 0.5, 0.25, 0)] == pytest.approx(expected, abs=1e-12)
        assert [falling(left) for left in (1.0, 0.5, 0.0)] == pytest.approx(ends)
    with pytest.raises(ArgumentError, match=r"'linaer' was given, allowed: .*did you mean 'linear'"):
        Shaped("linaer", 1.0)


def twice_the_entropy(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    return Part(2 * played.mean_over_units(scored.entropy), "units", {"mine": torch.tensor(7.0)})


def test_a_term_is_found_by_its_path_and_has_the_last_place() -> None:
    term = load_term(f"{__name__}:twice_the_entropy")
    assert select_terms(mass=False, magnet=False, more=[term])[-1] is term
    scored = Scored(NONE, torch.tensor([1.0, 3.0]), NONE)
    assert float(term(scored, make_played(2), Coefficients()).loss) == 4.0
    for path, message in (
        ("math", "'math' was given, needed: a module and its function"),
        ("no_such_module:term", "'no_such_module' cannot be found"),
        ("math:sqr", "'math' has no 'sqr'; did you mean 'sqrt'"),
        ("math:pi", "which is 3.14"),
    ):
        with pytest.raises(ArgumentError, match=rf"ppo\.terms: .*{message}"):
            load_term(path)
