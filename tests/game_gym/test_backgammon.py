"""Backgammon: words against the game."""

from __future__ import annotations

from typing import Any

import pytest

from game_gym.games.backgammon import SPEC, describe
from game_gym.spec import load_variant


def open_with(roll: str) -> Any:
    """Returns the state after a first roll, as "X starts, (roll: 13)"."""
    state = load_variant(SPEC, {}).game.new_initial_state()
    state.apply_action(next(a for a in state.legal_actions() if roll in state.action_to_string(-1, a)))
    return state


def move(state: Any, name: str) -> None:
    seat = state.current_player()
    legal = state.legal_actions()
    state.apply_action(next(a for a in legal if state.action_to_string(seat, a).endswith(name)))


def test_a_description_in_full() -> None:
    # The first roll, 3 and 1, is X's; 8/5 6/5 makes the 5-point, the 20-point as Player 1 sees it.
    state = open_with("X starts, (roll: 13)")
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
    state = open_with("X starts, (roll: 12)")
    move(state, "13/11 6/5")  # leaves single checkers on 11 and 5
    state.apply_action(next(a for a in state.legal_actions() if "34" in state.action_to_string(-1, a)))
    move(state, "24/21 24/20*")  # O's 20 is X's 5
    own, other = "24:2 13:4 11:1 8:3 6:4 bar:1 off:0", "19:5 17:3 12:5 5:1 4:1 bar:0 off:0"
    assert describe(state, 0) == (f"Dice to play: none\nYour checkers: {own}\nPlayer 1's checkers: {other}")
    assert describe(state, 1).split("\n")[2].endswith("bar:1 off:0")


@pytest.mark.parametrize("scoring", ["enable_gammons", "full_scoring"])
def test_returns_by_scoring(scoring: str) -> None:
    # Random play until there was a gammon and a backgammon would be slow: the bounds say what pays.
    variant = load_variant(SPEC, {"scoring_type": scoring})
    assert variant.high == -variant.low == {"enable_gammons": 2, "full_scoring": 3}[scoring]
    assert "gammon" in variant.rules
