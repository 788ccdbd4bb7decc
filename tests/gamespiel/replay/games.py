"""Records of games that were played without a model."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import game_gym  # noqa: F401  (registers GameSpiel-v0)


def record(
    actions: list[int], seed: int = 0, params: dict[str, Any] | None = None, **where: Any
) -> dict[str, Any]:
    """Plays these actions, and the lowest legal ones after them; returns the record of the game."""
    env = gym.make("GameSpiel-v0", params=params, opponent="first", rules=False, **where)
    text, info = env.reset(seed=seed)
    turns, rest = [], list(actions)
    while "result" not in info:
        legal, names = info["legal_actions"], info["admissible_commands"]
        action = rest.pop(0) if rest else legal[0]
        before = text
        text, reward, _, _, info = env.step(action)
        turn = {"observation": before, "legal_actions": legal, "names": names, "answer": str(action)}
        turn |= {"action": action if action in legal else None, "reward": float(reward)}
        turns.append(turn | {"probabilities": [1 / len(legal)] * len(legal), "value": 0.5})
    address = ("task_id", "seed", "game", "seat", "opponent", "result", "score", "success")
    return {
        "player": "me",
        "env_type": "openspiel",
        "params": params or {},
        **{key: info[key] for key in (*address, "returns", "history")},
        "turns": turns,
        "final_observation": text,
    }
