"""An address is one game to the last byte: in copies, and whatever else uses random numbers."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED as GAMES
from task_gym.errors import PickleError
from task_gym.opponents import register_opponent
from tests.game_gym.play import DECLARED, LEDUC, Fixed, episode, finish, make
from tests.game_gym.test_conformance import COMMON, build

STRAY = [
    *[("leduc_poker", 0, opponent, None) for opponent in ("mcts:30x2", "mcts-python:10x2", "ismcts:10")],
    *[
        pytest.param(*case, marks=[] if case[0] in COMMON and case[1] == 0 else pytest.mark.families)
        for name, spec in GAMES.items()
        for case in [
            *[(name, config, "random", 10) for config in range(spec.variants)],
            *[(name, 0, search, 4) for search in ("mcts:2x1", "mcts-python:2x1") if spec.budget is not None],
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


# -- a copy made in mid-game goes on as the original would ---------------------------------------------------


@pytest.mark.parametrize(
    ("game", "opponent"),
    [
        *itertools.product(DECLARED, ["random", "first", "open", "mcts:20x1", "mcts-python:8x1"]),
        ("leduc_poker", "ismcts:10x2"),
    ],
)
def test_a_copy_continues_identically(game: str, opponent: str) -> None:
    env = make(game=game, opponent=opponent, seeding="evaluate", max_turns=4)
    for seed in range(6):
        clone = copy.deepcopy if seed in (2, 3) else (lambda env: pickle.loads(pickle.dumps(env)))
        _, info = env.reset(seed=seed)
        env.step(99)  # a strike is carried too
        _, _, over, _, info = env.step(info["legal_actions"][-1])
        twin = clone(env)
        assert twin.state.history() == env.state.history()
        if not over:
            assert twin.step(99)[-1]["error"] == env.step(99)[-1]["error"]
            twin = clone(twin)
            assert finish(twin, info["legal_actions"]) == finish(env, info["legal_actions"])
        # Later episodes too: the generator is carried.
        assert twin.reset()[1]["seed"] == env.reset()[1]["seed"]


def test_a_copy_is_made_of_what_was_given_and_not_of_what_became_of_it() -> None:
    """A sweep may change one mapping from environment to environment."""
    params = {"players": 2}
    env = GameSpielEnv(game="kuhn_poker", params=params)
    params["players"] = 3
    env.reset(seed=3)
    assert copy.deepcopy(env).seats == 2


def test_text_environments_too() -> None:
    env: Any = gym.make("GameSpielText-v0", task_id=LEDUC, parse="last").unwrapped
    env.reset(seed=8)
    env.step("I fold")
    twin = pickle.loads(pickle.dumps(env))
    assert [twin.step("or call: 1")[0], twin.step("no")[0]] == [env.step("or call: 1")[0], env.step("no")[0]]


class Moody(Fixed):
    """Plays by a count that outlives the episode: not what an address may depend on."""

    calls = 0

    def act(self, view: Any) -> int:
        Moody.calls += 1
        legal = view.legal_actions()
        return legal[Moody.calls % len(legal)]


def test_an_opponent_may_say_why_it_cannot_be_carried(registries: None) -> None:
    register_opponent("moody", Moody, why_not_replayable="it answers from elsewhere")
    env = make(game="tic_tac_toe", opponent="moody")
    pickle.dumps(env)  # nothing is being played yet
    env.reset(seed=0)
    with pytest.raises(PickleError, match="'moody' cannot be carried in mid-game: it answers from elsewhere"):
        pickle.dumps(env)
    for _ in range(3):
        env.step(99)
    assert pickle.loads(pickle.dumps(env)).reset(seed=0)  # it is over, so nothing has to be replayed


def test_a_replay_that_went_another_way_is_noticed(registries: None) -> None:
    register_opponent("moody", Moody)
    env = make(game="tic_tac_toe", opponent="moody")
    env.reset(seed=1)
    carried = pickle.dumps(env)
    Moody.calls += 1
    with pytest.raises(PickleError, match="played other moves when the episode was replayed"):
        pickle.loads(carried)
