"""Solitaire: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.solitaire import describe
from game_gym.spec import load_variant


def test_descriptions_in_full() -> None:
    # Cards 1 … 52 are A♠ … K♠, then ♥, ♣, ♦; the seven columns are turned up first, then the waste.
    state = load_variant(find_game("solitaire"), {}).game.new_initial_state()
    for card in range(1, 32):
        state.apply_action(card)
    assert describe(state, 0) == (
        "Actions: 31\nPoints: 0\n"
        "Waste: 8♠ 9♠ T♠ J♠ Q♠ K♠ A♥ 2♥ 3♥ 4♥ 5♥ 6♥ 7♥ 8♥ 9♥ T♥ J♥ Q♥ K♥ A♣ 2♣ 3♣ 4♣ 5♣\n"
        "Foundations: ♠ ♥ ♣ ♦\n"
        "Columns:\nA♠\n# 2♠\n# # 3♠\n# # # 4♠\n# # # # 5♠\n# # # # # 6♠\n# # # # # # 7♠"
    )
    for move in ("♠ ← A♠", "♥ ← A♥"):  # from the first column, and from the waste
        legal = {state.action_to_string(0, action): action for action in state.legal_actions()}
        state.apply_action(legal[move])
    assert describe(state, 0) == (
        "Actions: 33\nPoints: 220\n"
        "Waste: 8♠ 9♠ T♠ J♠ Q♠ K♠ 2♥ 3♥ 4♥ 5♥ 6♥ 7♥ 8♥ 9♥ T♥ J♥ Q♥ K♥ A♣ 2♣ 3♣ 4♣ 5♣\n"
        "Foundations: A♠ A♥ ♣ ♦\n"
        "Columns:\n# 2♠\n# # 3♠\n# # # 4♠\n# # # # 5♠\n# # # # # 6♠\n# # # # # # 7♠"
    )
