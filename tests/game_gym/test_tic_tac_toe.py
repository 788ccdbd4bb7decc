"""Tic-tac-toe: words against the game."""

from game_gym.games import find_game
from game_gym.games.tic_tac_toe import describe
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    state = load_variant(find_game("tic_tac_toe"), {}).game.new_initial_state()
    for action in (4, 2):  # the centre, then row 0 column 2
        state.apply_action(action)
    assert describe(state, 0) == "Your mark: x\n..o\n.x.\n..."
    state.apply_action(6)
    assert describe(state, 1) == "Your mark: o\n..o\n.x.\nx.."
    assert state.action_to_string(1, 5) == "o(1,2)"  # row 1, column 2, as the rules count
