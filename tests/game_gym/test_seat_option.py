"""The reset option ``seat``: one deal from every seat."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import pytest

from task_gym.errors import OptionError


def make(game: str, **arguments: Any) -> gym.Env[Any, Any]:
    return gym.make("game_gym:GameSpiel-v0", game=game, **arguments)


@pytest.mark.parametrize("seeding", ["openenv", "evaluate"])
def test_a_deal_is_the_same_from_both_seats(seeding: str) -> None:
    """And a copy plays from the same seat."""
    local: Any = make("leduc_poker", seeding=seeding, opponent="first").unwrapped
    dealt = set()
    for seat in (0, 1):
        info = local.reset(seed=5, options={"seat": seat})[1]
        assert info["seat"] == seat
        dealt.add(tuple(local.state.history()[:2]))
        copy = pickle.loads(pickle.dumps(local))
        assert copy.seat == seat and copy.state.history() == local.state.history()
    assert len(dealt) == 1  # the private cards


def test_the_seat_of_the_seed_changes_nothing() -> None:
    env = make("leduc_poker")
    text, info = env.reset(seed=7)  # openenv: 7 modulo 2
    again, same = env.reset(seed=7, options={"seat": 1})
    assert (text, info["seat"]) == (again, 1) and info["legal_actions"] == same["legal_actions"]
    assert env.reset(seed=8)[1]["seat"] == 0  # an option is for one episode


def test_the_opponents_noise_is_that_of_the_seed() -> None:
    """Two seats: upstream's bot has one root, whichever seat it plays."""
    env = make("kuhn_poker")
    local: Any = env.unwrapped
    made = []
    for seat in (0, 1):
        env.reset(seed=11, options={"seat": seat})
        while not local.state.is_terminal():
            env.step(0)
        pairs = [(pair.player, pair.action) for pair in local.state.full_history()]
        made.append(next(action for player, action in pairs if player == 1 - seat))
    assert made[0] == made[1]  # its first choice between two actions


@pytest.mark.parametrize(
    ("seat", "arguments", "message"),
    [
        (2, {}, "'seat': 2 was given for 'kuhn_poker', allowed: 0 … 1"),
        (-1, {}, "'seat': -1 was given, allowed: whole numbers from 0"),
        ("0", {}, "'seat': '0' was given"),
        (True, {}, "'seat': True was given"),
        (0, {"opponent": "open"}, "leaves every seat to the caller"),
    ],
)
def test_other_seats_are_refused(seat: Any, arguments: dict[str, Any], message: str) -> None:
    env = make("kuhn_poker", **arguments)
    with pytest.raises(OptionError, match=message):
        env.reset(seed=1, options={"seat": seat})
