"""A game's moves with their players and names, from its recorded actions."""

from __future__ import annotations

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.games import DECLARED, TABLE
from game_gym.task import encode
from game_gym.transcript import CHANCE, Move, moves, positions


def test_players_and_names() -> None:
    env = gym.make("GameSpiel-v0", game="kuhn_poker")
    # Deal K (2) to Player 0 and Q (1) to Player 1; a bet, and a pass.
    found = moves(env.unwrapped.variant, [2, 1, 1, 0])  # type: ignore[attr-defined]
    assert [(move.player, move.action) for move in found] == [(CHANCE, 2), (CHANCE, 1), (0, 1), (1, 0)]
    assert [move.name for move in found[2:]] == ["Bet", "Pass"]


def test_simultaneous_moves_come_together() -> None:
    env = gym.make("GameSpiel-v0", game="goofspiel", params={"num_cards": 8})
    variant = env.unwrapped.variant  # type: ignore[attr-defined]
    # A prize card, and each player's bid: actions are cards less 1.
    made = [found for _, found in positions(variant, [3, 0, 7])]
    assert made == [
        [Move(CHANCE, 3, "Deal 4")],
        [Move(0, 0, "[P0]Bid: 1"), Move(1, 7, "[P1]Bid: 8")],
        [],
    ]


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_game_is_played_again_from_its_history(name: str) -> None:
    where = {"task_id": encode(name, 1)} if name in TABLE else {"game": name}
    env = gym.make("GameSpiel-v0", opponent="first", max_turns=40, **where)
    env.action_space.seed(1)
    _, info = env.reset(seed=2)
    while "result" not in info:
        *_, info = env.step(env.action_space.sample(info["action_mask"]))
    local = env.unwrapped
    *_, (state, rest) = positions(local.variant, info["history"])  # type: ignore[attr-defined]
    assert rest == [] and str(state) == str(local.state)  # type: ignore[attr-defined]
