"""2048: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.game_2048 import describe
from game_gym.spec import load_variant

GAME = load_variant(find_game("2048"), {"max_tile": 64}).game


def test_a_description_in_full() -> None:
    state = GAME.new_initial_state()
    for action in (0, 2, 1, 4):  # a 2 in each of the first two cells, Right, a 2 in the third cell
        state.apply_action(action)
    assert describe(state, 0) == (
        "Points: 4\nBoard:\n"
        "    0    0    2    4\n"
        "    0    0    0    0\n"
        "    0    0    0    0\n"
        "    0    0    0    0"
    )
    assert state.legal_actions() == [2, 3]  # Down and Left


def test_rules_follow_the_parameters() -> None:
    rules = find_game("2048").rules
    assert "reaches 2048" in rules({"max_tile": 2048}) and "8192 moves" in rules({"max_tile": 2048})
    assert GAME.max_game_length() == 256 and "256 moves" in rules({"max_tile": 64})
