"""AIVAT: unbiased to the last digit, whatever is known, and with less variance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from game_gym.aivat import assume_policies, expected_estimate, make_estimator
from game_gym.exact import evaluate, find_variant, greedy, uniform
from game_gym.tree import GameTree, build_tree
from task_gym.errors import SizeError

KUHN, LEDUC = (find_variant(game=game) for game in ("kuhn_poker", "leduc_poker"))


@pytest.fixture(scope="module")
def trees() -> dict[str, GameTree]:
    return {"kuhn": build_tree(KUHN, rules=False), "leduc": build_tree(LEDUC, rules=False)}


def draw_table(tree: GameTree, seed: int) -> list[list[float]]:
    """Returns a policy that was drawn at random."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(len(state.legal))).tolist() for state in tree.states]


def test_a_tree_has_every_history_and_its_values(trees: dict[str, GameTree]) -> None:
    assert {name: len(tree.parents) for name, tree in trees.items()} == {"kuhn": 58, "leduc": 9457}
    for tree, scale in ((trees["kuhn"], 4), (trees["leduc"], 26)):
        own, other = tree.tabulate(greedy(uniform)), tree.tabulate(uniform)
        found = tree.expected_scores([own, other])[0], tree.expected_scores([other, own])[1]
        # Returns are -2 … 2 in kuhn and -13 … 13 in leduc; scores are their places in it.
        values = evaluate(tree.variant, greedy(uniform), rules=False).values
        assert found == pytest.approx([value / scale + 1 / 2 for value in values], abs=1e-12)
    # test_evaluation has it by hand: "first" scores 3/8 from both seats of kuhn.
    kuhn = trees["kuhn"]
    tables = [kuhn.tabulate(greedy(uniform)), kuhn.tabulate(uniform)]
    assert kuhn.expected_scores(tables)[0] == pytest.approx(3 / 8, abs=1e-12)


def test_a_tree_finds_histories(trees: dict[str, GameTree]) -> None:
    tree = trees["kuhn"]
    node = tree.find([2, 0, 1, 1])  # the king against the jack, bet and call
    assert tree.scores[node].tolist() == [1, 0] and tree.find([]) == 0
    with pytest.raises(KeyError):
        tree.find([0, 0])  # one card twice
    with pytest.raises(SizeError, match="more than"):
        build_tree(find_variant(game="tic_tac_toe"), most=1000)


@pytest.mark.parametrize("game", ["kuhn", "leduc"])
def test_the_sum_over_all_histories_is_the_exact_value(trees: dict[str, GameTree], game: str) -> None:
    """Both seats, each policy known or not: probability times estimate sums to the exact value, to 1e-12."""
    tree = trees[game]
    tables = [draw_table(tree, 1), draw_table(tree, 2)]
    values = tree.expected_scores(tables)
    for seat, blind, *known in itertools.product((0, 1), (False, True), (False, True), (False, True)):
        given = [table if own else None for table, own in zip(tables, known, strict=True)]
        estimator = make_estimator(tree, seat, given, blind=blind)
        mean, variance, plain = expected_estimate(estimator, tables)
        assert mean == pytest.approx(values[seat], abs=1e-12)
        low, high = estimator.bounds
        ends = estimator.estimates[~np.isnan(estimator.estimates)]
        assert low <= ends.min() and ends.max() <= high
        # If everything is known, nothing varies; otherwise something does.
        assert (variance < 1e-20) is all(known) and plain > 0


@pytest.mark.parametrize("seat", [0, 1])
def test_a_seat_that_reads_the_true_state_is_estimated_without_bias(
    trees: dict[str, GameTree], seat: int
) -> None:
    """An unknown policy that depends on the whole history, hidden cards too: only not ``blind`` is right."""
    tree, rng = trees["leduc"], np.random.default_rng(5)
    table = draw_table(tree, 3)
    given = [table, None] if seat == 0 else [None, table]
    edges = tree.edge_probabilities(given)
    drawn = np.where(np.isnan(edges), rng.uniform(size=len(edges)), 0)
    sums = np.bincount(tree.parents.clip(0), weights=drawn, minlength=len(edges))
    cheating = np.where(np.isnan(edges), drawn / np.maximum(sums[tree.parents.clip(0)], 1e-300), edges)
    value = tree.back_up(cheating, seat)[0]
    weights = tree.reach(cheating)
    means = {}
    for blind in (False, True):
        found = make_estimator(tree, seat, given, blind=blind).estimates
        ends = ~np.isnan(found)
        means[blind] = weights[ends] @ found[ends]
    assert means[False] == pytest.approx(value, abs=1e-12)
    assert means[True] != pytest.approx(value, abs=1e-6)


def test_the_luck_of_a_hand_by_hand(trees: dict[str, GameTree]) -> None:
    """Only chance is known, so both are expected to play uniformly.

    Seat 0 of kuhn then earns -7/8 with the jack: bet (1/2) earns +1 or -2, mean -1/2; pass (1/2) earns -1 if
    seat 1 passes, else -1 or -2, mean -5/4. The king has the mirror image, 9/8, and all three have 1/8 in the
    mean. So the jack is bad luck of 1, a quarter in score. Seat 1's card changes nothing for a jack. Pass and
    pass: -1, a score of 1/4, with the luck 1/2.
    """
    estimator = make_estimator(trees["kuhn"], 0, [None, None])
    assert estimator.estimate([0, 1, 0, 0], 0.25) == pytest.approx(1 / 2)
    # Given up right after the deal: the least score, and the same luck.
    assert estimator.estimate([0, 1], 0.0) == pytest.approx(1 / 4)
    with pytest.raises(KeyError):
        estimator.estimate([7], 0.0)


def test_the_hands_that_could_have_been_are_averaged(trees: dict[str, GameTree]) -> None:
    """Seat 0 plays uniformly, and bets with the jack or the king. Seat 1 has the queen, and folds.

    The value function has seat 1 play a best response to uniform play: bet after a pass; after a bet, fold
    the jack and call with the rest. Seat 0 then earns -7/4 with the jack; with the king 3/4 against the jack
    and 5/4 against the queen, so 1 in the mean; -1/2 with the queen; and -5/12 in all, as test_exact has it.
    After its bet it earns -2 with the jack and 2 with the king against the queen.
    Jack: 1 + (-5/12 + 7/4) + 0 + (-7/4 + 2) = 31/12, a score of 55/48.
    King: 1 + (-5/12 - 1) + (1 - 5/4) + (5/4 - 2) = -17/12, a score of 7/48.
    Seat 1 cannot tell the two hands apart, and both were equally likely to bet: 31/48 for both.
    """
    tree = trees["kuhn"]
    jack, king = ([card, 1, 1, 0] for card in (0, 2))
    for blind, expected in ((False, [55 / 48, 7 / 48]), (True, [31 / 48, 31 / 48])):
        estimator = make_estimator(tree, 0, [tree.tabulate(uniform), None], blind=blind)
        assert [estimator.estimate(hand, 3 / 4) for hand in (jack, king)] == pytest.approx(expected)


@pytest.mark.parametrize("seat", [0, 1])
def test_a_best_response_is_estimated_without_variance(trees: dict[str, GameTree], seat: int) -> None:
    """An unknown seat that plays as the value function expects leaves no luck: one estimate for all games."""
    tree = trees["leduc"]
    known = draw_table(tree, 4)
    given = [None, known] if seat == 0 else [known, None]
    tables = assume_policies(tree, given)
    best = evaluate(tree.variant, uniform, rules=False).best  # against uniform play
    responding = assume_policies(tree, [None, tree.tabulate(uniform)])
    assert tree.expected_scores(responding)[0] == pytest.approx(best[0] / 26 + 1 / 2, abs=1e-12)
    mean, variance, plain = expected_estimate(make_estimator(tree, seat, given, blind=False), tables)
    assert mean == pytest.approx(tree.expected_scores(tables)[seat], abs=1e-12)
    assert variance < 1e-20 < plain
