"""RawReturns: the game's own return at the end."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers the environments)
from game_gym.wrappers import RawReturns
from task_gym.errors import ArgumentError
from tests.game_gym.play import episode, make


def build(**arguments: Any) -> RawReturns:
    return RawReturns(gym.make("GameSpiel-v0", **arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"game": "leduc_poker"},
        {"game": "kuhn_poker", "opponent": "open"},
        {"game": "2048", "reward": "upstream"},  # pays move by move
        {"game": "hearts", "rules": False},
        {"game": "blackjack"},
    ],
)
def test_an_episodes_return_is_the_games(arguments: dict[str, Any]) -> None:
    for seed in range(1 if arguments["game"] == "2048" else 6):
        record = episode(build(**arguments), seed)
        *_, info = record[-1]
        rewards = [entry[1] for entry in record[1:]]
        assert rewards == [0.0] * (len(rewards) - 1) + [info["returns"][info["seat"]]]
        assert all(isinstance(reward, float) for reward in rewards)
        # Nothing else differs.
        plain = episode(make(**arguments), seed)
        assert [(*entry[:1], *entry[2:]) for entry in record] == [(*e[:1], *e[2:]) for e in plain]


def test_an_illegal_action_costs_and_the_third_gives_the_game_up() -> None:
    env = build(game="leduc_poker")
    env.reset(seed=8)
    assert [env.step(0)[1] for _ in range(2)] == [-0.01, -0.01]
    # The least return of leduc for two is 1 + 2 * 2 + 2 * 4 = 13 chips lost.
    _, reward, terminated, _, info = env.step(0)
    assert terminated and reward == pytest.approx(-13.01) and info["returns"] == [-13, 13]


def test_the_seat_that_moved_last_is_paid() -> None:
    env = build(game="kuhn_poker", opponent="open", illegal="forfeit")
    env.reset(seed=0)
    assert env.step(0)[1] == 0
    _, reward, *_, info = env.step(9)  # seat 1 gives the game up: 2 chips are the most that can be lost
    assert info["seat"] == 1 and reward == pytest.approx(-2.01)


def test_a_cut_pays_nothing() -> None:
    record = episode(build(game="2048", max_turns=9, reward="upstream"), 0)
    *_, info = record[-1]
    assert info["result"] == "cut" and info["returns"][0] > 0
    assert [entry[1] for entry in record[1:]] == [0.0] * 9


def test_a_fault_pays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    env = build(game="kuhn_poker")
    _, info = env.reset(seed=0)
    backend = env.unwrapped._backend
    monkeypatch.setattr(backend, "play", lambda action: backend._stuck())
    _, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
    assert (reward, terminated, truncated, info["result"]) == (0.0, False, True, "fault")


def test_other_environments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"RawReturns: .*CartPole.* was given, allowed: GameSpiel-v0 and"):
        RawReturns(gym.make("CartPole-v1"))
