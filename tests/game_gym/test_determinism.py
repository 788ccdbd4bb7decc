"""An address is one game to the last byte, in any process, whatever else uses random numbers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_gym.games import DECLARED as GAMES
from tests.game_gym.play import DECLARED, LEDUC, episode, make

ROOT = Path(__file__).parent.parent.parent

#: As in test_conformance.py.
COMMON = ("leduc_poker", "clobber", "goofspiel", "2048")

VARIANTS = [(name, config) for name, spec in GAMES.items() for config in range(spec.variants)]

SEARCHED = [name for name, spec in GAMES.items() if spec.budget is not None]

#: Turns of the longer games that are looked at.
TURNS = 10


def build(name: str, config: int, **arguments: Any) -> Any:
    return make(game=name, params=GAMES[name].params(config), **arguments)


def digests() -> dict[str, str]:
    """A hash for every variant of every game, and one for games of every kind."""
    return {f"{name} {config}": digest(openings(name, config)) for name, config in VARIANTS} | {
        "every kind": digest(small_games())
    }


def digest(played: Any) -> str:
    return hashlib.sha256(json.dumps(played).encode()).hexdigest()


def openings(name: str, config: int) -> list[Any]:
    """First turns: against a random opponent by both protocols, in the first variant also in other ways.

    Not so in bridge, which solves every deal.
    """
    kinds = [("openenv", "random"), ("evaluate", "random")]
    if config == 0 and name != "bridge":
        kinds.append(("openenv", "open"))
        kinds += [("evaluate", search) for search in ("mcts:2x1", "mcts-python:2x1") if name in SEARCHED]
    return [
        episode(build(name, config, seeding=seeding, opponent=opponent), seed, longest=TURNS)
        for seed, (seeding, opponent) in enumerate(kinds, start=config)
    ]


def small_games() -> list[Any]:
    """Whole games of the small ones, and draws from a set of tasks."""
    played: list[Any] = [
        episode(make(game=game, seeding=seeding, opponent=opponent), seed)
        for game in DECLARED
        for seeding in ("openenv", "evaluate")
        for opponent in ("random", "mcts:30x2", "mcts-python:10x2", "open")
        for seed in (0, 5)
    ]
    played += [
        episode(make(game=game, params=params, seeding="evaluate", opponent="ismcts:20x2"), 2**32 - 201)
        for game, params in (("leduc_poker", {}), ("kuhn_poker", {"players": 3}), ("bargaining", {}))
    ]
    env = make(task_ids=[(LEDUC, LEDUC + 999)])
    env.reset(seed=7)
    return played + [env.reset()[0] for _ in range(5)]


@pytest.mark.launch
def test_two_processes_play_the_same_bytes() -> None:
    script = "import json; from tests.game_gym.test_determinism import digests; print(json.dumps(digests()))"
    # Another order of sets and dictionaries of strings than here.
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    child = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs, ours = json.loads(child.stdout), digests()
    assert theirs == ours
    assert len(set(ours.values())) == len(VARIANTS) + 1  # no two play the same


STRAY = [
    *[("leduc_poker", 0, opponent, None) for opponent in ("mcts:30x2", "mcts-python:10x2", "ismcts:10")],
    *[
        pytest.param(*case, marks=[] if case[0] in COMMON and case[1] == 0 else pytest.mark.families)
        for case in [
            *[(name, config, "random", TURNS) for name, config in VARIANTS],
            *[(name, 0, opponent, 4) for name in SEARCHED for opponent in ("mcts:2x1", "mcts-python:2x1")],
        ]
    ],
]


@pytest.mark.parametrize(("name", "config", "opponent", "longest"), STRAY)
def test_stray_random_numbers_change_nothing(
    name: str, config: int, opponent: str, longest: int | None
) -> None:
    def play(scatter: Any) -> list[Any]:
        env = build(name, config, opponent=opponent)
        real = env.step

        def step(action: int) -> Any:
            scatter()
            return real(action)

        env.step = step
        seeds = range(1 if name == "bridge" else 3)
        return [(scatter(), episode(env, seed, longest=longest)) for seed in seeds]

    def scatter() -> None:
        np.random.seed(random.randrange(9))
        np.random.rand(3)
        random.random()
        random.seed(5)

    assert play(scatter) == play(lambda: None)


def test_an_episode_does_not_depend_on_those_before_it() -> None:
    used = make(task_ids=[(LEDUC, LEDUC + 9)])
    for seed in range(10):
        used.reset(seed=seed, options={"opponent": ("first", "mcts:5x1", "open", "random")[seed % 4]})
        used.step(2)
    fresh = make(task_ids=[(LEDUC, LEDUC + 9)])
    assert episode(used, 77) == episode(fresh, 77)
