"""Games of cards and dice: words against the game, and the game against the rules in its text."""

from __future__ import annotations

import pytest

from game_gym.games import DECLARED
from tests.game_gym.play import load, reach, turns

# Dealer 3, so cards go to 3, 0, 1, 2 in turn: Player 0 gets 1, 5, 9, 13, 17 (the diamonds 9 to K). The
# upcard is 20 (the ace of clubs).
EUCHRE_DEAL = (3, *range(20), 20)


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
