"""Keys of ``info`` that games and traces share have the same meaning in both."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import gamespiel  # noqa: F401  (registers the environments)


def ending(name: str, action: Any, **arguments: Any) -> dict[str, Any]:
    env = gym.make(name, **arguments)
    env.reset(seed=3)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    env.close()
    return info


def test_a_key_means_one_thing() -> None:
    # Three illegal actions in a row give the game up.
    game = ending("GameSpiel-v0", -1, game="kuhn_poker")
    trace = ending("CodeTrace-v0", "", level=1)
    shared = game.keys() & trace.keys()
    assert shared == {
        *("task_id", "seed", "game", "seat", "opponent", "turn"),
        *("score", "success", "returns", "result", "history", "upstream_reward"),
    }
    kinds = {key: (type(game[key]), type(trace[key])) for key in shared - {"task_id"}}
    assert all(one is other for one, other in kinds.values()), kinds
    # A game chosen by name has no task id.
    assert game["task_id"] is None and isinstance(trace["task_id"], int)
    assert isinstance(game["scores"], list) and isinstance(trace["by_scoring"], dict)
