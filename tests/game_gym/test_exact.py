"""Exact values against what can be worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from game_gym import exact
from game_gym.exact import check_size, evaluate, find_variant, greedy, information_states, uniform
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
    always_bet = by_text({key: 1.0 for key in _kuhn_keys()})
    result = evaluate(KUHN, always_bet, opponent="first")
    assert result.values == pytest.approx((1, 1))
    assert result.best == pytest.approx((1, 1))
    assert result.share == pytest.approx(1)


def _kuhn_keys() -> list[tuple[str, str]]:
    bettings = ["none", "you pass, Player 1 bet", "Player 0 pass", "Player 0 bet"]
    return [(card, betting) for card in "JQK" for betting in bettings]


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
        states = {(s.seat, s.text): s.legal for s in information_states(LEDUC_POKER, rules)}
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
    assert len(information_states(game, rules=False, most=294_883)) == 6 * 4096
    with pytest.raises(SizeError, match="more than 294,882 histories"):
        information_states(game, rules=False, most=294_882)


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
        ({"game": "chess"}, "chess was given, which has more than 300,000 histories"),
        ({"game": "connect_four"}, "connect_four was given, which has more than 300,000 histories"),
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
