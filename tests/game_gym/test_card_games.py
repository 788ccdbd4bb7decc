"""Games of cards and dice: words against the game, and the game against the rules in its text."""

from __future__ import annotations

import random
from typing import Any

import pytest

from game_gym.games import DECLARED
from tests.game_gym.play import load, reach, turns

# East deals and passes, South bids 1NT, West doubles.
BRIDGE = {"dealer_vul": False, "non_dealer_vul": True, "dealer": 1}
DEAL = random.Random(5).sample(range(52), 52)

# Dealer 3, so cards go to 3, 0, 1, 2 in turn: Player 0 gets 1, 5, 9, 13, 17 (the diamonds 9 to K). The
# upcard is 20 (the ace of clubs).
EUCHRE_DEAL = (3, *range(20), 20)

# In goofspiel, prizes 3, 8, 1; bids 2 against 5, then 4 against 4; then the third prize is up.
GOOFSPIEL = {"num_cards": 8, "points_order": "random"}
BIDS: list[int | list[int]] = [2, [1, 4], 7, [3, 3], 0]

# The parameters, the actions, the seat that looks, and what it sees.
DESCRIPTIONS: list[tuple[str, dict[str, Any], tuple[int | str, ...], int, str]] = [
    # Cards J♠, Q♥ and K♠. Player 0 raises, Player 1 folds and is passed over; the public card is A♥.
    (
        "leduc_poker", {"players": 3}, (0, 3, 4, 2, 0, 1, 7, 1), 2,
        "Your card: K♠\nPublic card: A♥\nRound 1: Player 0 raise, Player 1 fold, you call\n"
        "Round 2: Player 0 call\nPot: 7",
    ),
    # A♣ and 9♣ to the player, K♥ hidden, T♠ open. A hit gives 5♦: 1 + 9 + 5 = 15, since 25 would be too much.
    (
        "blackjack", {}, (0, 8, 38, 48, 0, 17), 0,
        "Your cards: A♣ 9♣ 5♦\nYour total: 15 (hard)\nDealer's open card: T♠",
    ),
    # Cards are dealt in order, so Player 0 has the clubs, 1 the diamonds, 2 the hearts, 3 the spades. Each
    # passes the three lowest to the left; then 2C, now Player 1's, is led: a first trick, and two cards more.
    (
        "hearts", {}, (1, *range(52), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0, 9, 51, 48, 44, 8), 2,
        "Pass: left, you give to P3 and receive from P1\n"
        "You passed: 2H 3H 4H\n"
        "You received: 2D 3D 4D\n"
        "Your hand: AH KH QH JH TH 9H 8H 7H 6H 5H 3D 2D\n"
        "Trick 1: P1 2C, you 4D, P3 AS, P0 AC; taken by P0\n"
        "Current trick: P0 KC, P1 4C\n"
        "Points: P0 0, P1 0, you 0, P3 0",
    ),
    # All pass; Player 0 names diamonds and plays with the partner.
    (
        "euchre", {}, (*EUCHRE_DEAL, 24, 24, 24, 24, 26, 30, 9), 1,
        "Your partner: P3\n"
        "Dealer: P3\n"
        "Upcard: CA\n"
        "Bids: P0 pass, you pass, P2 pass, P3 pass, P0 diamonds\n"
        "Trump: diamonds\n"
        "Alone: P0 no\n"
        "Your hand: HK HQ HJ HT H9\n"
        "Current trick: P0 DJ\n"
        "Tricks taken: your side 0, the other side 0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("game", "params", "actions", "seat", "text"), DESCRIPTIONS, ids=[case[0] for case in DESCRIPTIONS]
)
def test_descriptions_in_full(
    game: str, params: dict[str, Any], actions: tuple[int | str, ...], seat: int, text: str
) -> None:
    variant = load(game, **params)
    assert variant.spec.describe(reach(variant, actions), seat) == text


def test_bridge_in_full() -> None:
    """Deals take long to solve: one is enough."""
    variant = load("bridge", **BRIDGE)
    state = reach(variant, DEAL)
    assert variant.spec.describe(state, 0).split("\n")[-1] == "Auction: none"
    for call in (52, 59, 53):
        state.apply_action(call)
    lines = variant.spec.describe(state, 0).split("\n")
    assert lines[:3] == ["You: North, partner South", "Dealer: East", "Vulnerable: North-South"]
    assert lines[7] == "Auction: East Pass, South 1NT, West Dbl"
    # The hand is the one that OpenSpiel shows.
    shown = state.information_state_string(0).split("you hold:\n")[1].split("\n")[:4]
    assert lines[3:7] == shown
    assert sum(len(line.split()) - 1 for line in shown if not line.endswith("none")) == 13


# -- games that play by the rules in their texts -------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "config", "games"),
    [*(("hearts", config, 12) for config in (1, 7)), *(("euchre", config, 60) for config in range(4))],
)
def test_the_taker_of_a_trick_leads_the_next(game: str, config: int, games: int) -> None:
    """OpenSpiel says who leads; who took the trick is worked out from suits and ranks, trumps and jacks."""
    spec = DECLARED[game]
    variant = load(game, **spec.params(config))
    taken, firsts = 0, set()
    for state in turns(variant.game, games):
        lines = spec.describe(state, state.current_player()).split("\n")
        firsts.add(lines[0].split(",")[0])
        tricks = [line for line in lines if line.startswith("Trick ")]
        if tricks and "Current trick: none" in lines:
            assert tricks[-1].endswith("; taken by you")
            taken += 1
    assert taken > 100
    assert game == "euchre" or firsts == {"Pass: none", "Pass: left", "Pass: across", "Pass: right"}


def test_a_player_of_hearts_who_takes_all_26_points() -> None:
    # Cards are dealt in order, so Player 0 has all the clubs and takes every trick, and JD too: 26 - 26 - 10
    # points for Player 0, 26 for everyone else, and no bonus for taking no trick.
    variant = load("hearts", jd_bonus=True, avoid_all_tricks_bonus=True)
    state = reach(variant, (0, *range(52)))
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
        if len(state.history()) == 53 + 11 * 4:  # eleven hearts, QS for 13 and JD for -10
            assert variant.spec.describe(state, 1).endswith("\nPoints: P0 14, you 0, P2 0, P3 0")
    assert state.returns() == [36, 0, 0, 0]


# -- euchre --------------------------------------------------------------------------------------------------


def test_a_lone_maker_against_a_lone_defender() -> None:
    # Player 0 makes clubs trump and plays alone, and so does the dealer, who discards C9.
    variant = load("euchre", allow_lone_defender=True)
    state = reach(variant, (*EUCHRE_DEAL, 25))
    assert "You discarded: none\nYour hand: CA CK CQ CJ CT C9\n" in variant.spec.describe(state, 3)
    for action in (0, 29, 30, 29, 1, 4, 8, 5, 12):
        state.apply_action(action)
    assert variant.spec.describe(state, 3) == (
        "Your partner: P1\n"
        "Dealer: you\n"
        "Upcard: CA\n"
        "Bids: P0 clubs\n"
        "Trump: clubs\n"
        "Alone (maker, then defenders): P0 yes, P1 no, you yes\n"
        "You discarded: C9\n"
        "Your hand: CA CK\n"
        "Trick 1: P0 D9, you CT; taken by you\n"
        "Trick 2: you CJ, P0 DT; taken by you\n"
        "Current trick: you CQ\n"
        "Tricks taken: your side 2, the other side 0"
    )
    shown = variant.spec.describe(state, 0)
    assert "You discarded" not in shown and shown.endswith("Tricks taken: your side 0, the other side 2")
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    assert state.returns() == [-4, 4, -4, 4]


# -- goofspiel -----------------------------------------------------------------------------------------------


def bid(moves: list[int | list[int]], **params: Any) -> str:
    """Returns the text that seat 1 sees after prizes and bids."""
    variant = load("goofspiel", **GOOFSPIEL, **params)
    state = variant.game.new_initial_state()
    for move in moves:
        state.apply_actions(move) if isinstance(move, list) else state.apply_action(move)
    return variant.spec.describe(state, 1)


def test_bids_of_goofspiel_are_shown_or_secret() -> None:
    head = (
        "Prize: 1\nPrizes left: 2 4 5 6 7\nPrizes won: 3 you, 8 nobody\nPoints: Player 0 0, you 3\n"
        "Your hand: 1 2 3 6 7 8\n"
    )
    assert bid(BIDS) == f"{head}Player 0's hand: 1 3 5 6 7 8"
    assert bid(BIDS, imp_info=True) == f"{head}Your bids: 5 4"
    # With 1 for the 3 instead of 2, Player 0 lost it as well.
    assert bid([2, [0, 4], *BIDS[2:]], imp_info=True) == bid(BIDS, imp_info=True)


# -- backgammon ----------------------------------------------------------------------------------------------


def open_with(roll: str) -> Any:
    """Returns the state after a first roll, as "X starts, (roll: 13)"."""
    state = load("backgammon").game.new_initial_state()
    state.apply_action(next(a for a in state.legal_actions() if roll in state.action_to_string(-1, a)))
    return state


def move(state: Any, name: str) -> None:
    seat = state.current_player()
    legal = state.legal_actions()
    state.apply_action(next(a for a in legal if state.action_to_string(seat, a).endswith(name)))


def test_backgammon_in_full() -> None:
    # The first roll, 3 and 1, is X's; 8/5 6/5 makes the 5-point, the 20-point as Player 1 sees it.
    describe, state = DECLARED["backgammon"].describe, open_with("X starts, (roll: 13)")
    assert state.current_player() == 0
    move(state, "8/5 6/5")
    assert describe(state, 0).split("\n")[0] == "Dice to play: none"  # not rolled yet
    state.apply_action(35)  # two sixes
    assert describe(state, 1) == (
        "Dice to play: 6 6 6 6\n"
        "Your checkers: 24:2 13:5 8:3 6:5 bar:0 off:0\n"
        "Player 0's checkers: 20:2 19:4 17:2 12:5 1:2 bar:0 off:0"
    )
    assert describe(state, 0).split("\n")[1] == "Your checkers: 24:2 13:5 8:2 6:4 5:2 bar:0 off:0"
    move(state, "24/18(2)")
    # The second half of the double is the same seat's.
    assert describe(state, 1).split("\n")[:2] == [
        "Dice to play: 6 6",
        "Your checkers: 18:2 13:5 8:3 6:5 bar:0 off:0",
    ]


def test_a_checker_on_the_bar_is_described() -> None:
    describe, state = DECLARED["backgammon"].describe, open_with("X starts, (roll: 12)")
    move(state, "13/11 6/5")  # leaves single checkers on 11 and 5
    state.apply_action(next(a for a in state.legal_actions() if "34" in state.action_to_string(-1, a)))
    move(state, "24/21 24/20*")  # O's 20 is X's 5
    own, other = "24:2 13:4 11:1 8:3 6:4 bar:1 off:0", "19:5 17:3 12:5 5:1 4:1 bar:0 off:0"
    assert describe(state, 0) == (f"Dice to play: none\nYour checkers: {own}\nPlayer 1's checkers: {other}")
    assert describe(state, 1).split("\n")[2].endswith("bar:1 off:0")
