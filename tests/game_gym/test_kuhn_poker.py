"""Kuhn poker: words against the game."""

import random

import pytest

from game_gym.games import find_game
from game_gym.games.kuhn_poker import describe
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    # Cards 2 (K) and 0 (J), pass, bet: one ante each and one bet make 3.
    state = load_variant(find_game("kuhn_poker"), {"players": 2}).game.new_initial_state()
    for action in (2, 0, 0, 1):
        state.apply_action(action)
    assert describe(state, 0) == "Your card: K\nBetting: you pass, Player 1 bet\nPot: 3"


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_rules_told_are_the_rules_played(players: int) -> None:
    game = load_variant(find_game("kuhn_poker"), {"players": players}).game
    rng = random.Random(players)
    for _ in range(500):
        cards = rng.sample(range(players + 1), players)
        state = game.new_initial_state()
        for card in cards:
            state.apply_action(card)
        paid, moves = [1] * players, []
        # Up to the first bet everyone may speak once; after it everyone else once more.
        while len(moves) < players if 1 not in moves else len(moves) < moves.index(1) + players:
            seat = len(moves) % players
            assert state.current_player() == seat
            assert describe(state, seat).endswith(f"Pot: {sum(paid)}")
            move = rng.choice(state.legal_actions())
            state.apply_action(move)
            moves.append(move)
            paid[seat] += move
        assert state.is_terminal()
        winner = max((seat for seat in range(players) if paid[seat] == max(paid)), key=lambda s: cards[s])
        expected = [sum(paid) * (seat == winner) - paid[seat] for seat in range(players)]
        assert state.returns() == expected
