"""The program that plays an episode of every environment id, each made by its module and id.

``scripts.check_package`` passes its text to an interpreter that has the wheel and no repository.
"""

from typing import Any

import gymnasium as gym

import game_gym  # noqa: F401  (registers its environments)
import trace_gym  # noqa: F401  (as game_gym)

TASKS: dict[str, dict[str, Any]] = {"game_gym": {"game": "leduc_poker"}, "trace_gym": {"task_id": 1}}

entries = [(name, str(spec.entry_point).partition(".")[0]) for name, spec in gym.registry.items()]
names = [(name, room) for name, room in entries if room in TASKS]
assert len(names) == 5, names
for name, room in names:
    env = gym.make(f"{room}:{name}", **TASKS[room])
    _, info = env.reset(seed=7)
    steps, over = 0, False
    while not over:
        discrete = isinstance(env.action_space, gym.spaces.Discrete)
        action = info["legal_actions"][0] if discrete else str(info.get("legal_actions", [""])[0])
        _, _, terminated, truncated, info = env.step(action)
        steps, over = steps + 1, terminated or truncated
    env.close()
    assert 0 <= info["score"] <= 1 and info["result"] in ("win", "draw", "loss"), (name, info)
    print(f"{name}: {steps} steps, {info['result']}")
