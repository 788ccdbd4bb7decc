"""Games of gin rummy that get somewhere: between uniform moves, hardly one in ten ends with a knock."""

from __future__ import annotations

import random
from typing import Any

from game_gym.games.gin_rummy import RANKS, SUITS

UPCARD, STOCK, PASS, KNOCK = 52, 53, 54, 55

HANDS = ("5s 6s 7s Ac Ad Ah Ks", "8s 9s Ts 4d 6h 9h Kd", "2c")
"""Hands of seven cards and the upcard, with which seat 0 can knock."""


def number(name: str) -> int:
    return SUITS.index(name[1]) * 13 + RANKS.index(name[0])


def act(state: Any, *names: str) -> None:
    """Applies actions by what they show: cards that chance deals, or moves as "Draw upcard"."""
    for name in names:
        seat = state.current_player()
        legal = state.legal_actions()
        if state.is_chance_node():
            state.apply_action(number(name))
        else:
            moves = [action for action in legal if state.action_to_string(seat, action).endswith(f": {name}")]
            state.apply_action(moves[0])


def choose_melds(state: Any, rng: random.Random) -> int:
    """Returns a move of players who mostly keep what melds, knock and lay where they may; or chance's."""
    legal: list[int] = state.legal_actions()
    if state.is_chance_node():
        return rng.choice(legal)
    laying = [action for action in legal if action > KNOCK]
    if KNOCK in legal and rng.random() < 0.7:
        return KNOCK
    if legal != [PASS] and laying and rng.random() < 0.8:
        return rng.choice(laying)
    if STOCK in legal and rng.random() < 0.6:
        return STOCK
    if legal[0] < UPCARD and PASS not in legal and rng.random() < 0.85:
        seat = state.current_player()
        return min(legal, key=lambda action: int(state.child(action).deadwood()[seat]))
    return rng.choice(legal)


def deal(game: Any, *cards: str) -> Any:
    """Returns a state with the hands of seat 0 and seat 1, then the upcard."""
    state = game.new_initial_state()
    for name in " ".join(cards).split():
        state.apply_action(number(name))
    return state


def three_melds_of_three(game: Any) -> Any:
    """Returns a state in which seat 0 may knock with nine cards that are three melds of three.

    The hands have eight cards. After the knock, no discard keeps the deadwood at 0.
    """
    state = deal(game, "Ks Kc Kd Qs Qc Qd Js Jc", "As 2s 4s 5d 6c 8d 9c Ah", "Jd")
    act(state, "Draw upcard")
    return state
