"""Oware: words against the game."""

from __future__ import annotations

import random
from typing import Any

from game_gym.games import find_game
from game_gym.games.oware import describe
from game_gym.spec import load_variant
from tests.game_gym.play import make


def test_a_description_in_full() -> None:
    state = load_variant(find_game("oware"), {}).game.new_initial_state()
    state.apply_action(5)  # F: one seed each into a, b, c and d
    assert describe(state, 1) == (
        "You captured: 0\nPlayer 0 captured: 0\n"
        "Your houses: a 5, b 5, c 5, d 5, e 4, f 4\n"
        "Player 0's houses: A 4, B 4, C 4, D 4, E 4, F 0"
    )
    assert [state.action_to_string(1, a) for a in state.legal_actions()] == list("abcdef")
    for action in (0, 2, 5, 1):  # B ends in a, which makes it 2: they are captured
        state.apply_action(action)
    assert describe(state, 0).split("\n")[:2] == ["You captured: 2", "Player 1 captured: 0"]


def test_variants_are_seeds_a_house() -> None:
    spec = find_game("oware")
    assert [spec.params(c)["num_seeds_per_house"] for c in range(4)] == [4, 3, 5, 4]


def test_a_game_that_never_ends_is_a_fault() -> None:
    """OpenSpiel refuses oware's 1001st move. Players who capture as little as they can get there."""
    env = make(game="oware", params={"num_seeds_per_house": 5}, opponent="open", rules=False)
    env.reset(seed=0)
    rng = random.Random(0)
    for _ in range(1000):
        children = [(env.state.child(action), action) for action in env.state.legal_actions()]
        going_on = [(child, action) for child, action in children if not child.is_terminal()]
        _, action = min(going_on, key=lambda pair: (captured(pair[0]), rng.random()))
        *_, terminated, truncated, info = env.step(action)
        assert not (terminated or truncated)
    text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated) == (0, False, True)
    assert (info["result"], info["score"], len(info["history"])) == ("fault", None, 1000)
    assert "Result: fault" in text


def captured(state: Any) -> int:
    return sum(int(count) for count in state.observation_string(0).split("|")[1].split())
