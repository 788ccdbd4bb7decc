"""Blackjack: the game plays by the rules in its text."""

from __future__ import annotations

import random

from game_gym.games import find_game
from game_gym.games.blackjack import count, describe
from game_gym.spec import load_variant

GAME = load_variant(find_game("blackjack"), {}).game


def test_a_description_in_full() -> None:
    # A♣ and 9♣ to the player, K♥ hidden, T♠ open; a hit gives 5♦: 1 + 9 + 5 = 15, since 25 would be too much.
    state = GAME.new_initial_state()
    for action in (0, 8, 38, 48):
        state.apply_action(action)
    assert describe(state, 0) == "Your cards: A♣ 9♣\nYour total: 20 (soft)\nDealer's open card: T♠"
    for action in (0, 17):
        state.apply_action(action)
    assert describe(state, 0) == "Your cards: A♣ 9♣ 5♦\nYour total: 15 (hard)\nDealer's open card: T♠"


def test_the_rules_told_are_the_rules_played() -> None:
    rng = random.Random(0)
    for _ in range(800):
        state = GAME.new_initial_state()
        own, dealer = [], []
        for hand in (own, own, dealer, dealer):
            hand.append(rng.choice(state.legal_actions()))
            state.apply_action(hand[-1])
        stood = False
        while count(own)[0] <= 21 and not stood:
            assert state.current_player() == 0 and state.legal_actions() == [0, 1]
            assert f"Your total: {count(own)[0]} (" in describe(state, 0)
            stood = rng.random() < 0.4
            state.apply_action(int(stood))
            if not stood:
                own.append(rng.choice(state.legal_actions()))
                state.apply_action(own[-1])
        while stood and count(dealer)[0] < 17:
            dealer.append(rng.choice(state.legal_actions()))
            state.apply_action(dealer[-1])
        assert state.is_terminal()
        mine, theirs = count(own)[0], count(dealer)[0]
        beaten = mine > 21 or mine < theirs <= 21
        assert state.returns() == [-1.0 if beaten else 0.0 if mine == theirs else 1.0]
