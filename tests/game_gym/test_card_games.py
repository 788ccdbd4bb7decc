"""Games of cards and dice: words against the game, and the game against the rules in its text."""

from __future__ import annotations

import pytest

from game_gym.games import DECLARED
from tests.game_gym.play import load, reach, turns

# Dealer 3, so cards go to 3, 0, 1, 2 in turn: Player 0 gets 1, 5, 9, 13, 17 (the diamonds 9 to K). The
# upcard is 20 (the ace of clubs).
EUCHRE_DEAL = (3, *range(20), 20)


def test_leduc_poker_in_full() -> None:
    """Cards J♠, Q♥ and K♠. Player 0 raises, Player 1 folds and is passed over; the public card is A♥."""
    variant = load("leduc_poker", players=3)
    assert variant.spec.describe(reach(variant, (0, 3, 4, 2, 0, 1, 7, 1)), 2) == (
        "Your card: K♠\nPublic card: A♥\nRound 1: Player 0 raise, Player 1 fold, you call\n"
        "Round 2: Player 0 call\nPot: 7"
    )


# -- games that play by the rules in their texts -------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "config", "games"),
    [*(("hearts", config, 12) for config in (1, 7)), *(("euchre", config, 60) for config in (0, 3))],
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


def bid(moves: list[int | list[int]]) -> str:
    """Returns the text that seat 1 sees after prizes and secret bids."""
    variant = load("goofspiel", num_cards=8, points_order="random", imp_info=True)
    state = variant.game.new_initial_state()
    for move in moves:
        state.apply_actions(move) if isinstance(move, list) else state.apply_action(move)
    return variant.spec.describe(state, 1)


def test_secret_bids_of_goofspiel_are_not_told() -> None:
    """Prizes 3, 8, 1; bids 2 against 5, then 4 against 4; then the third prize is up."""
    assert bid([2, [1, 4], 7, [3, 3], 0]) == (
        "Prize: 1\nPrizes left: 2 4 5 6 7\nPrizes won: 3 you, 8 nobody\nPoints: Player 0 0, you 3\n"
        "Your hand: 1 2 3 6 7 8\nYour bids: 5 4"
    )
    # With 1 for the 3 instead of 2, Player 0 lost it as well.
    assert bid([2, [0, 4], 7, [3, 3], 0]) == bid([2, [1, 4], 7, [3, 3], 0])
