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
from tests.game_gym.play import LEDUC

KUHN = find_variant(game="kuhn_poker")
LEDUC_POKER = find_variant(task_id=LEDUC)


def by_text(table: dict[tuple[str, str], float]) -> exact.Policy:
    """A kuhn policy from {(card, betting): probability of Bet}."""

    def policy(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[np.ndarray]:
        answers = []
        for text in texts:
            lines = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
            bet = table[lines["Your card"], lines["Betting"]]
            answers.append(np.array([1 - bet, bet]))
        return answers

    return policy


def equilibrium(alpha: float) -> exact.Policy:
    """Kuhn's family of equilibria, 0 <= alpha <= 1/3 (Kuhn 1950)."""
    return by_text(
        {
            # Seat 0 bets the jack with alpha and the king with 3 alpha, calls with the queen at alpha + 1/3.
            ("J", "none"): alpha,
            ("Q", "none"): 0,
            ("K", "none"): 3 * alpha,
            ("J", "you pass, Player 1 bet"): 0,
            ("Q", "you pass, Player 1 bet"): alpha + 1 / 3,
            ("K", "you pass, Player 1 bet"): 1,
            # Seat 1 bluffs the jack a third of the time, calls with the queen a third of the time.
            ("J", "Player 0 pass"): 1 / 3,
            ("Q", "Player 0 pass"): 0,
            ("K", "Player 0 pass"): 1,
            ("J", "Player 0 bet"): 0,
            ("Q", "Player 0 bet"): 1 / 3,
            ("K", "Player 0 bet"): 1,
        }
    )


@pytest.mark.parametrize("alpha", [0, 0.1, 1 / 3])
def test_kuhn_equilibria_are_worth_minus_an_eighteenth_and_cannot_be_exploited(alpha: float) -> None:
    result = evaluate(KUHN, equilibrium(alpha))
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
    bettings = ("none", "you pass, Player 1 bet", "Player 0 pass", "Player 0 bet")
    always_bet = by_text({key: 1.0 for key in itertools.product("JQK", bettings)})
    result = evaluate(KUHN, always_bet, opponent="first")
    assert result.values == pytest.approx((1, 1))
    assert result.best == pytest.approx((1, 1))
    assert result.share == pytest.approx(1)


def test_leduc_best_responses_to_uniform() -> None:
    result = evaluate(LEDUC_POKER, uniform, rules=False)
    assert result.best == pytest.approx((2.0875, 2.6597), abs=1e-4)
    # One seat wins what the other loses, if both play alike.
    assert result.values[0] == pytest.approx(-result.values[1], abs=1e-12)
    assert result.share == pytest.approx(0, abs=1e-12)
    assert result.self_value == pytest.approx(result.values[0], abs=1e-12)
    # NashConv against oneself is the sum of the best responses in a zero-sum game.
    assert result.exploitability == pytest.approx(sum(result.best) / 2)
    # 6 cards; round 1 has 6 decision points over both seats, round 2 as many after each of the 5 ways that
    # round 1 ends without a fold, with 5 public cards left: 6 * 6 + 6 * 5 * 5 * 6 = 936.
    assert result.information_states == 936


def test_information_states_are_the_environments_prompts() -> None:
    from tests.game_gym.play import episode, make

    for rules in (True, False):
        states = {(s.seat, s.text): s.legal for s in build_tree(LEDUC_POKER, rules).states}
        env = make(task_id=LEDUC, rules=rules)
        for seed in range(50):
            for step in episode(env, seed)[:-1]:
                info = step[-1]
                assert states[info["seat"], step[0]] == tuple(info["legal_actions"])


def test_histories_of_liars_dice_are_counted() -> None:
    """A die each: 36 deals after 1 + 6 nodes of chance.

    In a deal, each of the 2^12 ascending sequences of bids is a turn, and each but the empty one can be
    called a lie: 36 * (4096 + 4095) + 7 = 294,883 histories. A player knows one die and the bids, which makes
    6 * 4096 situations.
    """
    game = find_variant(game="liars_dice")
    assert len(build_tree(game, rules=False, most=294_883).states) == 6 * 4096


@pytest.mark.parametrize(
    ("name", "params"), [("leduc_poker", {}), ("connect_four", {"rows": 3, "columns": 3})]
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
    found = exact.evaluate_table(tree, table, "random")
    whole = nash_conv(game.game, theirs, return_only_nash_conv=False, use_cpp_br=False)
    assert found.exploitability == pytest.approx(whole.nash_conv / 2, abs=1e-12)
    gains = [
        best - value
        for best, value in zip(exact.find_best_values(tree, table), whole.player_improvements, strict=True)
    ]
    assert gains == pytest.approx([found.self_value, -found.self_value], abs=1e-12)


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
    assert tree.find([4, 0, 8]) == tree.find([8, 0, 4]) != tree.find([0, 4, 8])
    with pytest.raises(KeyError):
        tree.find([4, 4])
    check_size(game, 5478)
    result = evaluate(game, uniform, rules=False)
    assert result.self_value == pytest.approx(737 / 1260 - 121 / 420, abs=1e-12)
    assert tree.reach(tree.uniform_edges())[tree.movers == TERMINAL].sum() == pytest.approx(1.0, abs=1e-12)
    assert evaluate(game, uniform, "first", rules=False).best == (1.0, 1.0)


def test_estimates_refuse_no_game_that_is_small_enough() -> None:
    """The limits at which the counted numbers of histories are just allowed, and one less."""
    for name, histories in {"kuhn_poker": 58, "leduc_poker": 9457, "liars_dice": 294_883}.items():
        variant = find_variant(game=name)
        check_size(variant, histories)
        with pytest.raises(SizeError, match=f"more than {histories - 1:,} histories"):
            check_size(variant, histories - 1)


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


@pytest.mark.parametrize("answer", [[0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1.0], [[0.5, 0.5]]])
def test_what_is_no_distribution_is_named(answer: list[float]) -> None:
    with pytest.raises(ArgumentError, match="allowed: 2 probabilities of at least 0 that sum to 1"):
        evaluate(KUHN, lambda texts, legal: [np.array(answer) for _ in texts])


def test_other_arguments_are_named() -> None:
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


def test_a_tree_has_every_history_and_its_values(trees: dict[str, GameTree]) -> None:
    assert {name: len(tree.movers) for name, tree in trees.items()} == {"kuhn": 58, "leduc": 9457}
    for tree, scale in ((trees["kuhn"], 4), (trees["leduc"], 26)):
        own, other = tree.tabulate(greedy(uniform)), tree.tabulate(uniform)
        found = tree.score_policies([own, other])[0], tree.score_policies([other, own])[1]
        # Returns are -2 … 2 in kuhn and -13 … 13 in leduc; scores are their places in it.
        values = evaluate(tree.variant, greedy(uniform), rules=False).values
        assert found == pytest.approx([value / scale + 1 / 2 for value in values], abs=1e-12)
    # test_evaluation has it by hand: "first" scores 3/8 from both seats of kuhn.
    kuhn = trees["kuhn"]
    tables = [kuhn.tabulate(greedy(uniform)), kuhn.tabulate(uniform)]
    assert kuhn.score_policies(tables)[0] == pytest.approx(3 / 8, abs=1e-12)


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
    values = tree.score_policies(tables)
    for seat, blind, *known in itertools.product((0, 1), (False, True), (False, True), (False, True)):
        given = [table if own else None for table, own in zip(tables, known, strict=True)]
        estimator = make_estimator(tree, seat, given, blind=blind)
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
    given = [table, None] if seat == 0 else [None, table]
    edges = tree.edge_probabilities(given)
    drawn = np.where(np.isnan(edges), rng.uniform(size=len(edges)), 0)
    sums = np.bincount(tree.parents, weights=drawn)
    cheating = np.where(np.isnan(edges), drawn / np.maximum(sums[tree.parents], 1e-300), edges)
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
    and 5/4 against the queen, so 1 in the mean; -1/2 with the queen; and -5/12 in all, as above.
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
    assert tree.score_policies(responding)[0] == pytest.approx(best[0] / 26 + 1 / 2, abs=1e-12)
    mean, variance, plain = average_estimates(make_estimator(tree, seat, given, blind=False), tables)
    assert mean == pytest.approx(tree.score_policies(tables)[seat], abs=1e-12)
    assert variance < 1e-20 < plain
