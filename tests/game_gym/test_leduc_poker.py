"""Leduc poker: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.leduc_poker import describe, rules
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    # Cards 0 (J♠) and 3 (Q♥), then raise, call, and the public card 5 (K♥), then a check: pot 1 + 1 + 2 + 2.
    state = load_variant(find_game("leduc_poker"), {"players": 2}).game.new_initial_state()
    for action in (0, 3, 2, 1, 5, 1):
        state.apply_action(action)
    assert describe(state, 1) == (
        "Your card: Q♥\nPublic card: K♥\nRound 1: Player 0 raise, you call\nRound 2: Player 0 call\nPot: 6"
    )


def test_turns_pass_over_those_who_folded() -> None:
    state = load_variant(find_game("leduc_poker"), {"players": 3}).game.new_initial_state()
    # Cards J♠, Q♥ and K♠. Player 0 raises, Player 1 folds; the public card is A♥.
    for action in (0, 3, 4, 2, 0, 1, 7, 1):
        state.apply_action(action)
    assert describe(state, 2) == (
        "Your card: K♠\nPublic card: A♥\nRound 1: Player 0 raise, Player 1 fold, you call\n"
        "Round 2: Player 0 call\nPot: 7"
    )


def test_rules_follow_the_number_of_players() -> None:
    assert "8 cards: ranks J < Q < K < A" in rules({"players": 3})
