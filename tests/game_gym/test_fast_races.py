"""Compiled rules beside OpenSpiel's: quoridor and backgammon."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games import find_game
from game_gym.opponents.fast import backgammon, quoridor
from tests.game_gym.fast_rules import check_draws, check_game, follow, list_legal, walk

pytestmark = pytest.mark.numba

# -- quoridor ------------------------------------------------------------------------------------------------


def load(size: int, walls: int) -> Any:
    return pyspiel.load_game("quoridor", {"board_size": size, "wall_count": walls})


def play(game: Any, moves: str) -> tuple[Any, Any]:
    """Plays named moves by both rules, and returns both states."""

    def find(state: Any, move: str) -> int:
        return next(a for a in state.legal_actions() if state.action_to_string(a) == move)

    return follow(quoridor, game.new_initial_state(), moves, find, returns=False)


def count_refused(state: Any, compiled: Any) -> int:
    """Returns how many walls would overlap none, but cut a pawn off."""
    names = [state.action_to_string(action) for action in list_legal(quoridor, compiled)]
    free = sum(int(word).bit_count() for word in compiled[quoridor._FREE :][:2].view(np.uint64))
    return free - sum(name[-1] in "hv" for name in names)


def place_walls(game: Any, seed: int, moves: int) -> tuple[Any, Any]:
    """Plays random walls while there are any, by both rules."""
    rng, state = random.Random(seed), game.new_initial_state()
    compiled = quoridor.read(state)
    for _ in range(moves):
        legal = state.legal_actions()
        assert list_legal(quoridor, compiled) == legal, str(state)
        walls = [action for action in legal if state.action_to_string(action)[-1] in "hv"]
        action = rng.choice(walls or legal)
        state.apply_action(action)
        quoridor.apply(compiled, action)
        if state.is_terminal():
            break
    return state, compiled


SPEC = find_game("quoridor")
VARIANTS = [(SPEC.params(config)["board_size"], SPEC.params(config)["wall_count"]) for config in range(4)]
"""Board sizes and numbers of walls."""


@pytest.mark.parametrize(("size", "walls"), [*VARIANTS, (3, 4), (4, 2), (5, 12), (6, 6), (8, 12), (9, 12)])
def test_random_games_are_the_same(size: int, walls: int) -> None:
    for seed in range(6):
        check_game(quoridor, load(size, walls), seed)


@pytest.mark.parametrize("size", [7, 9])
def test_games_full_of_walls_are_the_same(size: int) -> None:
    # Every move is a wall while one is left, so most checks that a pawn keeps a way are made.
    for seed in range(12):
        _, compiled = place_walls(load(size, 12), seed, 40)
        assert 24 - compiled[quoridor._LEFT :][:2].sum() >= 8  # walls


def test_draws_are_uniform_at_the_opening_and_for_a_seat_without_walls() -> None:
    check_draws(quoridor, load(9, 10).new_initial_state(), 12_000)
    check_draws(quoridor, load(7, 8).new_initial_state(), 8_000)
    for moves in ("a1h c2", "c4 c2 c3 b3h a1h"):
        check_draws(quoridor, play(load(5, 1), moves)[0])


@pytest.mark.parametrize("size", [7, 9])
def test_draws_are_uniform_where_walls_are_refused(size: int) -> None:
    game = load(size, 10)
    positions = [place_walls(game, seed, 17) for seed in range(8)]
    state, compiled = max(positions, key=lambda position: count_refused(*position))
    assert count_refused(state, compiled) > 1
    check_draws(quoridor, state, 6_000)


@pytest.mark.parametrize("last", ["b1", "c3"])
def test_the_move_limit_draws_even_if_the_last_move_arrives(last: str) -> None:
    # On 3 columns the limit is 36 moves. Player 1 makes the last, at will one to row 3.
    moves = 8 * "a3 c1 b3 b1 " + "a3 b2 b3 "
    assert play(load(3, 4), moves)[0].current_player() == 1
    state, _ = play(load(3, 4), moves + last)
    assert state.is_terminal() and state.returns()[0] == 0.0


def test_uncovered_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="3 to 9, not 11"):
        quoridor.read(load(11, 8).new_initial_state())


# -- backgammon ----------------------------------------------------------------------------------------------


FULL = pyspiel.load_game("backgammon", {"scoring_type": "full_scoring"})
GAMMONS = pyspiel.load_game("backgammon", {"scoring_type": "enable_gammons"})
PLAIN = pyspiel.load_game("backgammon")
SEEDS = range(18)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_games_are_openspiels(seed: int) -> None:
    assert check_game(backgammon, FULL, seed) > 50


@pytest.mark.parametrize(("game", "value"), [(PLAIN, 1.0), (GAMMONS, 2.0)])
def test_a_backgammon_is_worth_what_the_scoring_says(game: Any, value: float) -> None:
    seed = next(seed for seed in SEEDS if [*walk(FULL, seed)][-1].returns()[0] == 3.0)
    assert [*walk(game, seed)][-1].returns()[0] == value
    check_game(backgammon, game, seed)
    assert backgammon.utility(backgammon.read(game.new_initial_state())) == value == game.max_utility()
    assert backgammon.utility(backgammon.read(FULL.new_initial_state())) == 3.0 == FULL.max_utility()


@pytest.mark.parametrize("most", [0, 3, 20])
def test_a_game_ends_with_its_last_turn(most: int) -> None:
    game = pyspiel.load_game("backgammon", {"max_player_turns": most})
    in_half = 0
    for seed in range(12):
        check_game(backgammon, game, seed)
        *_, last = walk(game, seed)
        assert last.returns() == [0.0, 0.0]
        assert sum(move.player >= 0 for move in last.full_history()) >= most + 1
        in_half += "Extra turn: 1" in last.to_string()
    assert in_half > 0 or most == 0  # the first roll is no double


def test_draws_are_uniform() -> None:
    opening = FULL.new_initial_state()
    later = next(roll for roll in walk(FULL, 0) if roll.is_chance_node() and roll.move_number() > 0)
    for roll in (opening, opening.child(7), later):
        check_draws(backgammon, roll, 8000)
    # In these games there are turns in which no checker can move or only one, by the higher die, the lower or
    # half of a double; in which two are on the bar, or one to three outside; and with more than 120 actions.
    for seed in (1, 6):
        for state in walk(FULL, seed):
            if state.current_player() >= 0:
                check_draws(backgammon, state, 1000 * len(state.legal_actions()))
