"""Exact values against what can be worked out on paper, and AIVAT."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from game_gym import exact
from game_gym.aivat import Estimator, assume_policies, make_estimator
from game_gym.exact import check_size, evaluate, find_variant, greedy, uniform
from game_gym.tree import GameTree, Table, build_tree
from game_gym.walk import TERMINAL
from task_gym.errors import ArgumentError, SizeError
from tests.game_gym.play import LEDUC, episode, make

KUHN = find_variant(game="kuhn_poker")
LEDUC_POKER = find_variant(task_id=LEDUC)
MORE = [pytest.mark.families, pytest.mark.sample]


# One of Kuhn's equilibria (Kuhn 1950): by card and betting, the probability of Bet.
EQUILIBRIUM = {
    # Seat 0 bets the jack with alpha and the king with 3 alpha, calls with the queen at alpha + 1/3.
    ("J", "none"): 0.1,
    ("Q", "none"): 0,
    ("K", "none"): 0.3,
    ("J", "you pass, Player 1 bet"): 0,
    ("Q", "you pass, Player 1 bet"): 0.1 + 1 / 3,
    ("K", "you pass, Player 1 bet"): 1,
    # Seat 1 bluffs the jack a third of the time, calls with the queen a third of the time.
    ("J", "Player 0 pass"): 1 / 3,
    ("Q", "Player 0 pass"): 0,
    ("K", "Player 0 pass"): 1,
    ("J", "Player 0 bet"): 0,
    ("Q", "Player 0 bet"): 1 / 3,
    ("K", "Player 0 bet"): 1,
}


def play_equilibrium(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[np.ndarray]:
    answers = []
    for text in texts:
        lines = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
        bet = EQUILIBRIUM[lines["Your card"], lines["Betting"]]
        answers.append(np.array([1 - bet, bet]))
    return answers


def test_kuhns_equilibrium_is_worth_minus_an_eighteenth_and_cannot_be_exploited() -> None:
    result = evaluate(KUHN, play_equilibrium)
    assert result.self_value == pytest.approx(-1 / 18, abs=1e-12)
    assert result.exploitability == pytest.approx(0, abs=1e-12)


def test_kuhn_against_uniform_by_hand() -> None:
    # Uniform against uniform. Seat 0 passes or bets, 1/2 each; s is the sign at showdown, of mean 0.
    # pass-pass: s. pass-bet: seat 0 folds -1, or calls 2s. bet: seat 1 folds +1, or calls 2s. Signs cancel:
    # 1/2 * (1/2 * 1/2 * -1) + 1/2 * (1/2 * 1) = -1/8 + 1/4 = 1/8.
    #
    # Best response from seat 0, by card (the other card is each of the remaining two with 1/2):
    #   J: pass -1 at a pass; at a bet fold -1: -1. Bet: 1/2 * 1 + 1/2 * -2 = -1/2. Best -1/2.
    #   Q: bet: 1/2 * 1 + 1/2 * 0 (a call wins and loses 2 equally often) = 1/2. Pass: 1/2 * 0 + 1/2 * 0.
    #      Best 1/2.
    #   K: bet: 1/2 * 1 + 1/2 * 2 = 3/2. Pass: 1/2 * 1 + 1/2 * 2 = 3/2. Best 3/2.
    # Mean (-1/2 + 1/2 + 3/2) / 3 = 1/2.
    #
    # From seat 1, where seat 0 passes or bets with 1/2 and, having passed, folds or calls a bet with 1/2:
    #   J: at a pass: pass -1, bet 1/2 * 1 + 1/2 * -2 = -1/2; at a bet: fold -1. Mean -3/4.
    #   Q: at a pass: pass 0, bet 1/2 * 1 + 0 = 1/2; at a bet: call 0. Mean 1/4.
    #   K: at a pass: pass 1, bet 1/2 * 1 + 1/2 * 2 = 3/2; at a bet: call 2. Mean 7/4.
    # Mean (-3/4 + 1/4 + 7/4) / 3 = 5/12.
    result = evaluate(KUHN, uniform)
    assert result.values == pytest.approx((1 / 8, -1 / 8))
    assert result.self_value == pytest.approx(1 / 8)
    assert result.best == pytest.approx((1 / 2, 5 / 12))
    assert result.share == pytest.approx(0)
    # NashConv: (1/2 - 1/8) + (5/12 + 1/8) = 11/12, and half of it.
    assert result.exploitability == pytest.approx(11 / 24)
    assert result.information_states == 12  # 3 cards, 2 bettings a seat, 2 seats


def test_kuhn_against_first_by_hand() -> None:
    # "first" always passes: a bet takes the ante every time, from either seat, whatever the cards.
    result = evaluate(KUHN, lambda texts, legal: [np.array([0, 1])] * len(texts), opponent="first")
    assert result.values == pytest.approx((1, 1))
    assert result.best == pytest.approx((1, 1))
    assert result.share == pytest.approx(1)


def test_what_a_move_loses_to_the_best_one_by_hand() -> None:
    # Seat 0 of kuhn_poker has the jack: a pass earns -1, a bet +1 or -2. It loses 1/2, an eighth in score.
    assert exact.list_regrets(KUHN, [0, 1, 0, 1, 0], 0) == pytest.approx([1 / 8, 0])
    # Against a bet seat 1's queen meets jack or king: to call earns 0, and to give up -1.
    assert exact.list_regrets(KUHN, [0, 1, 1, 0], 1) == pytest.approx([1 / 4])
    # The king is given up before its first move: a bet would have earned +1 or +2, a score of 7/8.
    assert exact.list_regrets(KUHN, [2, 1], 0) == pytest.approx([7 / 8])
    no_game, never_bet, no_seat = ([0, 7], 0, "random"), ([0, 1, 0, 1, 0], 0, "first"), ([0, 1], 5, "random")
    for arguments, said in ((no_game, "like it"), (never_bet, "never plays so"), (no_seat, "seat")):
        with pytest.raises(ArgumentError, match=said):
            exact.list_regrets(KUHN, *arguments)


@pytest.mark.parametrize(("variant", "scale"), [(KUHN, 4), pytest.param(LEDUC_POKER, 26, marks=MORE)])
def test_regrets_add_up_to_what_a_policy_lacks(variant: Any, scale: int) -> None:
    tree, lacking = build_tree(variant, rules=False), [0.0, 0.0]
    result, reach = evaluate(variant, uniform, rules=False), tree.reach(tree.uniform_edges())
    for leaf in np.flatnonzero(tree.movers == TERMINAL):
        history, node = [], leaf
        while node:  # edge k leads to node k + 1
            history, node = [int(tree.actions[node - 1]), *history], tree.parents[node - 1]
        for seat in (0, 1):
            lacking[seat] += reach[leaf] * sum(exact.list_regrets(variant, history, seat))
    gaps = [(best - value) / scale for best, value in zip(result.best, result.values, strict=True)]
    assert lacking == pytest.approx(gaps, abs=1e-12)


def test_information_states_are_the_environments_prompts() -> None:
    for rules in (True, False):
        states = {(s.seat, s.text): s.legal for s in build_tree(LEDUC_POKER, rules).states}
        env = make(task_id=LEDUC, rules=rules)
        for seed in range(50):
            for step in episode(env, seed)[:-1]:
                info = step[-1]
                assert states[info["seat"], step[0]] == tuple(info["legal_actions"])


@pytest.mark.parametrize(
    ("name", "params", "histories", "situations"),
    [
        ("kuhn_poker", {}, 58, 12),
        ("leduc_poker", {}, 9457, 936),
        ("liars_dice", {"dice_sides": 4}, 8181, 4 * 2**8),
        pytest.param("liars_dice", {}, 294_883, 6 * 2**12, marks=pytest.mark.families),
    ],
)
def test_histories_are_counted_to_the_last(
    name: str, params: dict[str, Any], histories: int, situations: int
) -> None:
    """In liar's dice, a die of six faces each: 36 deals after 1 + 6 nodes of chance.

    In a deal, each of the 2^12 ascending sequences of bids is a turn, and each but the empty one can be
    called a lie: 36 * (4096 + 4095) + 7 = 294,883 histories. A player knows one die and the bids, which makes
    6 * 4096 situations. With four faces, it is 16 * (256 + 255) + 5.
    """
    variant = find_variant(game=name, params=params)
    assert len(build_tree(variant, rules=False, most=histories).states) == situations
    check_size(variant, histories)
    with pytest.raises(SizeError, match=f"more than {histories - 1:,} histories"):
        check_size(variant, histories - 1)


@pytest.mark.parametrize(
    ("name", "params"),
    [("leduc_poker", {}), pytest.param("connect_four", {"rows": 3, "columns": 3}, marks=MORE)],
)
def test_random_policies_have_the_values_of_openspiels_own_algorithms(
    name: str, params: dict[str, Any]
) -> None:
    from open_spiel.python.algorithms.exploitability import nash_conv
    from open_spiel.python.policy import tabular_policy_from_callable

    game = find_variant(game=name, params=params)
    tree = build_tree(game, rules=False)
    table = draw_table(tree, 3)
    chances = {
        (state.seat, state.key): dict(zip(state.legal, row, strict=True))
        for state, row in zip(tree.states, table, strict=True)
    }
    theirs = tabular_policy_from_callable(
        game.game,
        lambda state: chances[state.current_player(), state.information_state_string()],
    )
    evaluation = exact.evaluate_table(tree, table, "random")
    whole = nash_conv(game.game, theirs, return_only_nash_conv=False, use_cpp_br=False)
    assert evaluation.exploitability == pytest.approx(whole.nash_conv / 2, abs=1e-12)
    gains = [
        best - value
        for best, value in zip(exact.find_best_values(tree, table), whole.player_improvements, strict=True)
    ]
    assert gains == pytest.approx([evaluation.self_value, -evaluation.self_value], abs=1e-12)


@pytest.mark.memory
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units")
def test_five_million_histories_fit_in_a_gibibyte() -> None:
    """3×3 hex has 548,650 histories, of which 290,890 are turns: each may take 2^30 / 5,000,000 bytes."""
    code = (
        "from resource import RUSAGE_SELF, getrusage\n"
        "from game_gym.exact import find_variant\n"
        "from game_gym.tree import build_tree\n"
        "game = find_variant(game='hex', params={'board_size': 3})\n"
        "before = getrusage(RUSAGE_SELF).ru_maxrss\n"
        "tree = build_tree(game)\n"
        "print(len(tree.movers), len(tree.states), getrusage(RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nodes, states, grown = map(int, done.stdout.split())
    assert (nodes, states) == (548_650, 290_890)
    assert grown * 1024 / nodes < 2**30 / 5_000_000


def test_equal_positions_are_one_node_where_nothing_is_hidden() -> None:
    """Tic-tac-toe has 5,478 positions in 549,946 histories.

    Of games of two players at random, the first wins 737/1260, the second 121/420, and 8/63 are drawn.
    """
    game = find_variant(game="tic_tac_toe")
    tree = build_tree(game, False, merge=True)
    assert len(tree.movers) == 5478 and len(tree.parents) > 5477
    one, same, other = (tree.find_turns(moves, 0)[2] for moves in ([4, 0, 8], [8, 0, 4], [0, 4, 8]))
    assert one == same != other
    with pytest.raises(KeyError):
        tree.find_turns([4, 4], 0)
    check_size(game, 5478)
    result = evaluate(game, uniform, rules=False)
    assert result.self_value == pytest.approx(737 / 1260 - 121 / 420, abs=1e-12)
    assert tree.reach(tree.uniform_edges())[tree.movers == TERMINAL].sum() == pytest.approx(1.0, abs=1e-12)
    assert evaluate(game, uniform, "first", rules=False).best == (1.0, 1.0)


def test_the_policy_is_asked_once_and_never_twice_the_same() -> None:
    calls = []

    def policy(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[np.ndarray]:
        calls.append(list(texts))
        return uniform(texts, legal)

    evaluate(KUHN, policy)
    assert len(calls) == 1 and len(set(calls[0])) == len(calls[0]) == 12


def test_greedy_takes_the_likeliest_and_the_first_of_equals() -> None:
    def policy(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[np.ndarray]:
        return [np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.5])]

    answers = greedy(policy)(["a", "b"], [[0, 1, 2], [1, 2]])
    assert [answer.tolist() for answer in answers] == [[0, 1, 0], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "chess"}, "chess was given, which has more than 5,000,000 histories"),
        ({"game": "connect_four"}, "connect_four was given, which has more than 5,000,000 histories"),
        ({"game": "kuhn_poker", "params": {"players": 3}}, "kuhn_poker was given, with 3 seats"),
        ({"game": "oware"}, "oware was given, whose information states OpenSpiel does not"),
    ],
)
def test_games_that_cannot_be_enumerated_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SizeError, match=message):
        evaluate(find_variant(**arguments), uniform)


def test_what_is_no_distribution_and_no_opponent_is_named() -> None:
    for answer in ([0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0], [[0.5, 0.5]]):
        answers = [np.array(answer)] * 12
        with pytest.raises(ArgumentError, match="allowed: 2 probabilities of at least 0 that sum to 1"):
            evaluate(KUHN, lambda texts, legal, answers=answers: answers)
    with pytest.raises(ArgumentError, match="0 answers were given, allowed: 12"):
        evaluate(KUHN, lambda texts, legal: [])
    with pytest.raises(ArgumentError, match="opponent: 'mcts' was given, allowed: 'random', 'first'"):
        evaluate(KUHN, uniform, opponent="mcts")


# -- AIVAT: unbiased to the last digit, whatever is known, and with less variance ----------------------------


@pytest.fixture(scope="module")
def trees() -> dict[str, GameTree]:
    return {"kuhn": build_tree(KUHN, rules=False), "leduc": build_tree(LEDUC_POKER, rules=False)}


def draw_table(tree: GameTree, seed: int) -> list[list[float]]:
    """Returns a policy that was drawn at random."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(len(state.legal))).tolist() for state in tree.states]


def find_score(tree: GameTree, tables: Sequence[Table], seat: int) -> float:
    """Returns a seat's exact expected score."""
    return float(tree.back_up(tree.edge_probabilities(tables), seat)[0])


def average_estimates(estimator: Estimator, tables: Sequence[Table]) -> tuple[float, float, float]:
    """Returns the exact mean and variance of an estimator, and the variance of the plain score.

    Args:
        estimator: The estimator.
        tables: The policies that really play, one per seat.
    """
    tree = estimator.tree
    ends = tree.movers == TERMINAL
    weights = tree.reach(tree.edge_probabilities(tables))[ends]
    estimates, scores = estimator.estimates[ends], tree.scores[ends, estimator.seat]
    mean, plain = float(weights @ estimates), float(weights @ scores)
    return mean, float(weights @ (estimates - mean) ** 2), float(weights @ (scores - plain) ** 2)


@pytest.mark.parametrize("game", ["kuhn", pytest.param("leduc", marks=MORE)])
def test_the_sum_over_all_histories_is_the_exact_value(trees: dict[str, GameTree], game: str) -> None:
    """Both seats, each policy known or not: probability times estimate sums to the exact value, to 1e-12."""
    tree = trees[game]
    tables = [draw_table(tree, 1), draw_table(tree, 2)]
    values = [find_score(tree, tables, seat) for seat in (0, 1)]
    for seat, blind, *known in itertools.product((0, 1), (False, True), (False, True), (False, True)):
        policies = [table if is_known else None for table, is_known in zip(tables, known, strict=True)]
        estimator = make_estimator(tree, seat, policies, blind=blind)
        mean, variance, plain = average_estimates(estimator, tables)
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
    policies = [table, None] if seat == 0 else [None, table]
    edges = tree.edge_probabilities(policies)
    drawn = np.where(np.isnan(edges), rng.uniform(size=len(edges)), 0)
    sums = np.bincount(tree.parents, weights=drawn)
    cheating = np.where(np.isnan(edges), drawn / np.maximum(sums[tree.parents], 1e-300), edges)
    value = tree.back_up(cheating, seat)[0]
    weights = tree.reach(cheating)
    means = {}
    for blind in (False, True):
        estimates = make_estimator(tree, seat, policies, blind=blind).estimates
        ends = ~np.isnan(estimates)
        means[blind] = weights[ends] @ estimates[ends]
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


@pytest.mark.parametrize("seat", [0, 1])
def test_a_best_response_is_estimated_without_variance(trees: dict[str, GameTree], seat: int) -> None:
    """An unknown seat that plays as the value function expects leaves no luck: one estimate for all games."""
    tree = trees["leduc"]
    known = draw_table(tree, 4)
    policies = [None, known] if seat == 0 else [known, None]
    tables = assume_policies(tree, policies)
    best = evaluate(tree.variant, uniform, rules=False).best  # against uniform play
    responding = assume_policies(tree, [None, tree.tabulate(uniform)])
    assert find_score(tree, responding, 0) == pytest.approx(best[0] / 26 + 1 / 2, abs=1e-12)
    mean, variance, plain = average_estimates(make_estimator(tree, seat, policies, blind=False), tables)
    assert mean == pytest.approx(find_score(tree, tables, seat), abs=1e-12)
    assert variance < 1e-20 < plain
