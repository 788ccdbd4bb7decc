"""Euchre: words against the game."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.euchre import SPEC, describe
from game_gym.spec import load_variant


@pytest.mark.parametrize("config", range(4))
def test_the_taker_of_a_trick_leads_the_next(config: int) -> None:
    """OpenSpiel says who leads; who took the trick is worked out from trumps and jacks."""
    variant = load_variant(find_game("euchre"), SPEC.params(config))
    rng, tricks = random.Random(config), 0
    for _ in range(60):
        state = variant.game.new_initial_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            if not state.is_chance_node():
                lines = describe(state, state.current_player()).split("\n")
                done = [line for line in lines if line.startswith("Trick ")]
                if done and "Current trick: none" in lines:
                    assert done[-1].endswith("; taken by you")
                    tricks += 1
            state.apply_action(rng.choice(legal))
    assert tricks > 100


def test_a_description_in_full() -> None:
    # Dealer 3, so cards go to 3, 0, 1, 2 in turn: Player 0 gets 1, 5, 9, 13, 17 (the diamonds 9 to K). The
    # upcard is 20 (the ace of clubs). All pass; Player 0 names diamonds and plays with the partner.
    state = load_variant(find_game("euchre"), {}).game.new_initial_state()
    for action in (3, *range(20), 20, 24, 24, 24, 24, 26, 30, 9):
        state.apply_action(action)
    # Player 1 holds the hearts 9 to K, of which the jack is a trump and has to follow.
    assert state.legal_actions() == [10]
    assert describe(state, 1) == (
        "Your partner: P3\n"
        "Dealer: P3\n"
        "Upcard: CA\n"
        "Bids: P0 pass, you pass, P2 pass, P3 pass, P0 diamonds\n"
        "Trump: diamonds\n"
        "Alone: P0 no\n"
        "Your hand: HK HQ HJ HT H9\n"
        "Current trick: P0 DJ\n"
        "Tricks taken: your side 0, the other side 0"
    )


def test_a_lone_maker_against_a_lone_defender() -> None:
    # The same deal. Player 0 makes clubs trump and plays alone, and so does the dealer, who discards C9.
    state = load_variant(find_game("euchre"), {"allow_lone_defender": True}).game.new_initial_state()
    for action in (3, *range(20), 20, 25):
        state.apply_action(action)
    told = describe(state, 3).split("\n")
    assert told[4:8] == [
        "Trump: clubs",
        "Alone (maker, then defenders): none",
        "You discarded: none",
        "Your hand: CA CK CQ CJ CT C9",
    ]
    for action in (0, 29, 30, 29, 1, 4, 8, 5, 12):
        state.apply_action(action)
    assert describe(state, 3) == (
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
    assert "You discarded" not in describe(state, 0)
    assert describe(state, 0).endswith("Tricks taken: your side 0, the other side 2")
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    assert state.returns() == [-4, 4, -4, 4]
