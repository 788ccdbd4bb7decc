"""A game's moves with their players and names, from its recorded actions."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.exact import find_variant
from game_gym.games import DECLARED, TABLE
from game_gym.task import encode
from game_gym.transcript import CHANCE, Move, moves, positions, show


def test_players_and_names() -> None:
    env = gym.make("GameSpiel-v0", game="kuhn_poker")
    # Deal K (2) to Player 0 and Q (1) to Player 1; a bet, and a pass.
    found = moves(env.unwrapped.variant, [2, 1, 1, 0])  # type: ignore[attr-defined]
    assert [(move.player, move.action) for move in found] == [(CHANCE, 2), (CHANCE, 1), (0, 1), (1, 0)]
    assert [move.name for move in found] == ["K", "Q", "Bet", "Pass"]


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


def test_chance_may_draw_what_openspiel_does_not_call_legal() -> None:
    """Hearts without passing: four directions have a quarter each, and only the first is a legal action."""
    variant = gym.make("GameSpiel-v0", task_id=encode("hearts", 0)).unwrapped.variant  # type: ignore[attr-defined]
    assert variant.game.new_initial_state().legal_actions() == [0]
    assert [move.action for move in moves(variant, [2])] == [2]


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_game_is_played_again_from_its_history(name: str) -> None:
    """No name or text is OpenSpiel's placeholder, as "Chance outcome:2" or -10000."""
    where = {"task_id": encode(name, 1)} if name in TABLE else {"game": name}
    env = gym.make("GameSpiel-v0", opponent="first", max_turns=40, **where)
    env.action_space.seed(1)
    _, info = env.reset(seed=2)
    while "result" not in info:
        *_, info = env.step(env.action_space.sample(info["action_mask"]))
    local: Any = env.unwrapped
    for state, made in positions(local.variant, info["history"]):
        text = show(local.variant, state)
        assert "-10000" not in text and "-1 " not in text
        assert [move.name for move in made if "chance outcome" in move.name.lower()] == []
    assert made == [] and str(state) == str(local.state)


@pytest.mark.parametrize(
    ("game", "outcome", "name"),
    [
        ("leduc_poker", 5, "K♥"),  # two of each rank, ♠ first
        ("kuhn_poker", 0, "J"),
        ("liars_dice", 0, "Roll 1"),
        ("gin_rummy", 0, "As"),
        ("backgammon", 0, "X starts, roll 12"),
    ],
)
def test_chance_speaks_the_games_words(game: str, outcome: int, name: str) -> None:
    variant = find_variant(game=game)
    assert moves(variant, [outcome])[0] == Move(CHANCE, outcome, name)


def test_rolls_after_the_first_start_nothing() -> None:
    """In backgammon the first roll says who starts; the others are only dice."""
    env = gym.make("GameSpiel-v0", game="backgammon", opponent="first", max_turns=4)
    _, info = env.reset(seed=0)
    while "result" not in info:
        *_, info = env.step(info["legal_actions"][0])
    made = moves(env.unwrapped.variant, info["history"])  # type: ignore[attr-defined]
    first, *later = [move.name for move in made if move.player == CHANCE]
    assert re.fullmatch(r"[XO] starts, roll [1-6]{2}", first)
    assert len(later) > 2 and all(re.fullmatch(r"roll [1-6]{2}", name) for name in later)


@pytest.mark.parametrize(
    ("game", "history", "text"),
    [
        (
            "leduc_poker",
            [1, 5, 1, 2],  # J♥ and K♥ are dealt; call, raise: 1 chip each, and 2 more
            "Player 0: J♥\nPlayer 1: K♥\nPublic card: none\nRound 1: Player 0 call, Player 1 raise\n"
            "Round 2: none\nPot: 4",
        ),
        ("kuhn_poker", [2], "Player 0: K\nPlayer 1: no card yet\nBetting: none\nPot: 2"),
        (
            "kuhn_poker",
            [2, 0, 0, 1],
            "Player 0: K\nPlayer 1: J\nBetting: Player 0 pass, Player 1 bet\nPot: 3",
        ),
        ("liars_dice", [3], "Player 0: 4\nPlayer 1: no dice yet\nBids: none"),
    ],
)
def test_a_spectator_sees_all_cards(game: str, history: list[int], text: str) -> None:
    variant = find_variant(game=game)
    *_, (state, _) = positions(variant, history)
    assert show(variant, state) == text
