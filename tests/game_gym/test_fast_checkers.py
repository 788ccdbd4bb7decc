"""Checkers, compiled: OpenSpiel's games, move for move."""

from __future__ import annotations

import random
from typing import Any

import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games.checkers import SPEC
from game_gym.opponents.fast import checkers as rules
from game_gym.opponents.fast.rules import ENDED, list_legal
from tests.game_gym.fast_rules import check_draws, check_game

pytestmark = pytest.mark.numba

SIZES = [(rows, columns) for rows in SPEC.allowed["rows"] for columns in SPEC.allowed["columns"]]

# On 8 rows and 6 columns: first a game of 47 moves, the last of which is a capture.
CAPTURES = (
    "a3b4 b6a5 b4c5 d6b4 e3d4 b4a3 d4e5 f6d4 c3e5 e7f6 e5d6 c7e5 b2c3 d8e7 c3b4 a5c3 d2b4 e5f4 f2e3 f4d2 "
    "c1e3 a7b6 e1f2 b8a7 e3d4 e7d6 d4e5 f6d4 f2e3 d4f2 b4a5 f8e7 a5c7 a7b6 a1b2 a3c1 c7b8 b6a5 b8c7 a5b4 "
    "c7e5 c1d2 e5d4 d2e1 d4c5 e7f6 c5a3 "
)
# Then both sides' kings move there and back as often as one likes, before the first seat shuts in the second.
REPETITION = "e1d2 a3b4 d2e1 b4a3 "
BLOCK = "f6e5 a3b4 e5d4 b4a3 d4e3 a3b2 e1d2 b2a1 d2e1 a1b2 e3d2 b2c1"


def make_game(rows: int = 8, columns: int = 6) -> Any:
    return pyspiel.load_game("checkers", {"rows": rows, "columns": columns})


def play(moves: str) -> tuple[Any, Any]:
    """Plays moves on 8 rows and 6 columns by both rules; returns OpenSpiel's state and the compiled one."""
    state = make_game().new_initial_state()
    compiled = rules.read(state)
    for move in moves.split():
        assert list_legal(rules, compiled) == state.legal_actions(), str(state)
        action = state.string_to_action(move)
        state.apply_action(action)
        rules.apply(compiled, action)
        assert compiled.tolist() == rules.read(state).tolist(), str(state)
        assert int(rules.player(compiled)) == state.current_player(), str(state)
        assert rules.result(compiled) == state.returns()[0], str(state)
    return state, compiled


def name_legal(state: Any, compiled: Any) -> list[str]:
    return [state.action_to_string(action) for action in list_legal(rules, compiled)]


def name_end(game: Any, seed: int) -> str:
    """Plays the random game that ``check_game`` plays; returns how it ends, and for which seat."""
    generator, state = random.Random(seed), game.new_initial_state()
    while not state.is_terminal():
        state.apply_action(generator.choice(state.legal_actions()))
    if state.returns()[0] == 0:
        return "draw"
    loser = 0 if state.returns()[0] < 0 else 1
    pieces = rules.read(state)[loser]
    return f"seat {loser} {'cannot move' if pieces else 'has no pieces'}"


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_random_games_are_openspiels(rows: int, columns: int) -> None:
    game = make_game(rows, columns)
    for seed in range(20):
        assert check_game(rules, game, seed) > 10


def test_each_end_is_reached() -> None:
    game, seeds = make_game(), dict[str, int]()
    for seed in range(400):
        seeds.setdefault(name_end(game, seed), seed)
    losses = ("cannot move", "has no pieces")
    assert set(seeds) == {"draw", *(f"seat {seat} {loss}" for seat in (0, 1) for loss in losses)}
    for seed in seeds.values():
        check_game(rules, game, seed)


def test_drawn_actions_are_uniform() -> None:
    for rows, columns in ((8, 8), (12, 6)):
        generator, state = random.Random(2), make_game(rows, columns).new_initial_state()
        for ply in range(60):
            if ply in (0, 15, 30, 45):
                check_draws(rules, state)
            state.apply_action(generator.choice(state.legal_actions()))


def test_kings_are_drawn_uniformly() -> None:
    state, compiled = play(CAPTURES + "e1d2 a3b4")
    assert {"d2c1", "d2e1", "d2c3", "d2e3"} < set(name_legal(state, compiled))
    check_draws(rules, state)


def test_capturing_is_forced() -> None:
    state, compiled = play("e3d4 f6e5")
    assert name_legal(state, compiled) == ["d4f6"]
    check_draws(rules, state, draws=100)


def test_a_piece_goes_on_capturing_alone() -> None:
    # Another man could capture too: the one on f4.
    state, compiled = play("e3f4 f6e5 f2e3 b6c5 e3d4 c5e3 e1f2 d6c5 f2d4")
    assert int(rules.player(compiled)) == 0
    assert name_legal(state, compiled) == ["d4b6", "d4f6"]
    check_draws(rules, state)


def test_forty_moves_without_a_capture_draw() -> None:
    state, compiled = play(CAPTURES + 9 * REPETITION + "e1d2 a3b4 d2e1")
    assert not state.is_terminal() and int(rules.player(compiled)) != ENDED
    state, compiled = play(CAPTURES + 10 * REPETITION)
    assert state.is_terminal() and int(rules.player(compiled)) == ENDED and rules.result(compiled) == 0
    assert list_legal(rules, compiled) == []


def test_a_draw_comes_before_a_loss() -> None:
    _, compiled = play(CAPTURES + 6 * REPETITION + BLOCK)
    assert int(rules.player(compiled)) == ENDED and rules.result(compiled) == 1
    _, compiled = play(CAPTURES + 7 * REPETITION + BLOCK)
    assert int(rules.player(compiled)) == ENDED and rules.result(compiled) == 0


def test_a_capture_starts_the_count_again() -> None:
    # The last move captures after 39 moves without a capture.
    state, compiled = play(
        "c3d4 d6e5 b2c3 e5f4 c3b4 f6e5 d4f6 b6a5 a1b2 a5c3 c3a1 c1b2 a1c3 d2b4 f4d2 e1c3 c7b6 c3d4 b6a5 b4c5 "
        "a7b6 c5a7 d8c7 f6d8 a5b4 a3c5 c7d6 c5e7 f8d6 d4c5 d6b4 d8e7 b4a3 e7f6 b8c7 f2e3 a3b2 f6e5 c7b6 e5f4 "
        "b6a5 f4e5 a5b4 e5f4 b4a3 a7b8 b2c1 b8a7 c1b2 f4e5 b2c1 a7b6 c1b2 e5d4 b2c1 b6a5 c1b2 e3f4 b2a1 d4e3 "
        "a3b2 a5b4 b2c1 e3d4 a1b2 d4e5 b2a1 b4c3 c1b2 e5f6 b2d4"
    )
    assert all(action % 2 == 0 for action in state.history()[-40:-1]) and state.history()[-1] % 2
    assert not state.is_terminal() and int(rules.player(compiled)) != ENDED


def test_other_sizes_are_refused() -> None:
    state = make_game(rows=8, columns=10).new_initial_state()
    with pytest.raises(ValueError, match="8 rows and 10 columns"):
        rules.read(state)
