"""Gymnasium's vector environments play what the environments play by themselves.

Sub-environments of a vector must have equal spaces, so each may draw every task of the table, and the games
are chosen at reset. The two games outside the table come in vectors of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.columns import mark_legal
from game_gym.games import DECLARED, TABLE
from game_gym.task import CONFIGS, encode
from tests.game_gym.play import make

WHOLE: dict[str, Any] = {"task_ids": [(0, len(TABLE) * CONFIGS - 1)], "rules": False, "max_turns": 6}
OUTSIDE = sorted(set(DECLARED) - set(TABLE))

#: Steps after each reset. Games end within them, or are cut, and new ones begin.
STEPS = 9

#: Arguments of the sub-environments, and the options of the resets, one after the other.
PLANS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (WHOLE, [{"task_id": encode(game, index)} for index, game in enumerate(TABLE)]),
    *(({"game": game}, [{}]) for game in OUTSIDE),
]

Make = Callable[[], Any]


def wrapped(**arguments: Any) -> Any:
    """An environment as users have it, in Gymnasium's wrappers."""
    return gym.make("game_gym:GameSpiel-v0", **arguments)


def choose(info: dict[str, Any], choice: int) -> int:
    """A legal action, or any where there is nothing to choose."""
    legal = info["legal_actions"]
    return legal[choice % len(legal)] if legal else 0


def check_info(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert given.keys() == expected.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            assert given[key].dtype == value.dtype and np.array_equal(given[key], value), key
        else:
            assert given[key] == value, key


def test_texts_are_not_shared_in_memory() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([lambda: make(game="leduc_poker")])


@pytest.mark.parametrize(("arguments", "resets"), PLANS)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(gym.vector.SyncVectorEnv, id="sync"),
        pytest.param(
            functools.partial(gym.vector.AsyncVectorEnv, shared_memory=False),
            marks=pytest.mark.launch,
            id="async",
        ),
    ],
)
def test_gymnasium(kind: Any, arguments: dict[str, Any], resets: list[dict[str, Any]]) -> None:
    make_one = functools.partial(wrapped, **arguments)
    pair = Pair(kind([make_one, make_one]), [make_one(), make_one()])
    try:
        for seed, options in enumerate(resets):
            # Not from an end: the step after the reset would be one more reset (AsyncVectorEnv without shared
            # memory, gymnasium 1.4.0).
            while any(pair.over):
                pair.step(0)
            pair.reset([seed, seed + 1001], options)
            for turn in range(STEPS):
                pair.step(7 * turn + seed)
    finally:
        pair.vector.close()
    assert pair.ends >= 2 * len(resets)


class Pair:
    """A Gymnasium vector beside its environments alone: every call is made to both, and compared."""

    def __init__(self, vector: Any, alone: list[Any]) -> None:
        self.vector, self.alone = vector, alone
        self.over = [False] * len(alone)
        self.infos: list[dict[str, Any]] = [{} for _ in alone]
        self.ends = 0

    def reset(self, seeds: list[int], options: dict[str, Any]) -> None:
        texts, infos = self.vector.reset(seed=seeds, options=options)
        for index, env in enumerate(self.alone):
            self._compare(index, texts, infos, *env.reset(seed=seeds[index], options=options))

    def step(self, choice: int) -> None:
        actions = [choose(info, choice) for info in self.infos]
        texts, rewards, terminated, truncated, infos = self.vector.step(np.array(actions))
        for index, env in enumerate(self.alone):
            outcome: tuple[Any, ...]
            if self.over[index]:  # the step after an end is a reset, and its action goes unused
                outcome = (0, False, False)
                self._compare(index, texts, infos, *env.reset())
            else:
                text, *outcome, info = env.step(actions[index])
                self._compare(index, texts, infos, text, info)
            assert (rewards[index], terminated[index], truncated[index]) == tuple(outcome)
            self.over[index] = outcome[1] or outcome[2]
            self.ends += self.over[index]

    def _compare(
        self, index: int, texts: Any, infos: dict[str, Any], text: str, info: dict[str, Any]
    ) -> None:
        assert texts[index] == text and text in self.vector.single_observation_space
        told = [key[1:] for key, there in infos.items() if key.startswith("_") and there[index]]
        check_info({key: infos[key][index] for key in told}, info)
        self.infos[index] = info


def test_a_game_that_is_over_at_its_reset_is_an_episode_of_one_step() -> None:
    seed = 12  # Player 0's partner goes alone before Player 0's first turn
    vector = gym.vector.SyncVectorEnv([functools.partial(wrapped, game="euchre")] * 2)
    _, infos = vector.reset(seed=[seed, seed])
    assert not infos["action_mask"].any()
    _, rewards, terminated, _, told = vector.step(np.array([0, 5]))
    assert terminated.all() and np.array_equal(rewards, infos["score"]) and (told["turn"] == 0).all()


@pytest.mark.parametrize(("legal", "actions"), [
    ([[0, 2], [], [3]], 4),  # few
    ([list(range(0, 200, 2)), [199], list(range(200))], 200),  # many, which fit into bytes
    ([list(range(300)), [299], []], 300),  # many, which do not
])  # fmt: skip
def test_masks_of_few_and_of_many_actions(legal: list[list[int]], actions: int) -> None:
    mask = mark_legal(legal, actions)
    assert mask.dtype == np.int8 and mask.shape == (3, actions) and mask.flags.writeable
    assert [row.nonzero()[0].tolist() for row in mask] == legal and mask.sum() == sum(map(len, legal))
