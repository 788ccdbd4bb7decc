"""What a search's move is estimated to cost, from names and budgets alone."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from game_gym.games import DECLARED, find_game
from game_gym.opponents import mcts_fast
from game_gym.opponents.costs import FAST_SHARES, estimate_move
from game_gym.spec import load_variant
from game_gym.wrappers import MixedOpponents
from task_gym import opponents
from tests.game_gym.play import make


@pytest.mark.parametrize(
    ("game", "params", "opponent", "seconds"),
    [
        ("othello", {}, "mcts", 3.8),
        ("othello", {}, "mcts:100x10", 0.19),  # 1,000 of 20,000 rollouts
        ("othello", {}, "mcts:9000x90", 3.8),  # no more than was measured
        ("othello", {}, "mcts-python:100x10", 0.19),
        ("othello", {}, "mcts-fast:100x10", 0.19 * 0.024),
        ("clobber", {}, "mcts-fast", 0.293),  # its rules are not compiled, which is no error here
        ("othello", {}, "random", 0.0),
        ("hex", {"board_size": 7}, "mcts", 0.464),
        ("hex", {"board_size": 8}, "mcts", 0.464),  # that of the next smaller board
        ("hex", {"board_size": 4}, "mcts", 0.0),  # smaller than all that were measured
        ("liars_dice", {"numdice": 2}, "mcts", 0.0019),
        ("goofspiel", {}, "mcts", 0.0),  # all move at once, and "random" plays
        ("solitaire", {}, "mcts", 0.0),  # nobody else plays
        ("breakthrough", {}, "mcts:100x10", 0.001),  # undeclared: 1,000 rollouts of a microsecond
    ],
)
def test_estimates(game: str, params: dict[str, Any], opponent: str, seconds: float) -> None:
    assert estimate_move(opponent, load_variant(find_game(game), params)) == pytest.approx(seconds)


def test_every_declared_search_was_measured() -> None:
    for name, spec in DECLARED.items():
        variant = load_variant(spec, spec.params(0))
        assert (spec.budget is None) == (estimate_move("mcts", variant) == 0.0), name


def test_shares_are_of_the_games_whose_rules_are_compiled() -> None:
    assert set(FAST_SHARES) == set(mcts_fast.GAMES)
    assert all(0 < share < 1 for share in FAST_SHARES.values())


def test_a_search_of_a_user_is_taken_to_be_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
    opponents.register_opponent("deep", opponents.find_opponent("first").factory, searches=True)
    assert make(game="chess", opponent="deep").search_seconds == inf


def test_a_mean_over_games_and_opponents() -> None:
    """Task ids 4 and 12 times 10^8 are othello and chess, 3.8 s and 5 s; a quarter is searched."""
    env = make(task_ids=[400000000, 1200000000])
    assert env.unwrapped.search_seconds == 0.0
    MixedOpponents(env, {"random": 3, "mcts": 1})
    assert env.unwrapped.search_seconds == pytest.approx((3.8 + 5.0) / 2 / 4)
