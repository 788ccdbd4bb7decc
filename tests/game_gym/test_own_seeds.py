"""``seeds="affine"``: a task's own seed, as affinetes' competition drew it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from game_gym.protocols import own_seed
from task_gym.errors import ArgumentError
from tests.game_gym.play import LEDUC, make

POOL = [(0, 499_999_999), (600_000_000, 799_999_999)]


def test_seeds_by_hand() -> None:
    """``printf game:0 | sha256sum`` begins 0b475dd10efa76f5, of which the last four bytes count."""
    assert own_seed(0) == 0x0EFA76F5
    assert own_seed(200_000_000) == 0x5E31CDBF  # e5b2d8de5e31cdbf
    assert own_seed(799_999_999) == 0xACC8974C  # 1dd26795acc8974c


def test_a_task_is_the_same_game_whatever_the_seed() -> None:
    env = make(task_ids=POOL, seeds="affine", seeding="evaluate")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        task_id = info["task_id"]
        assert any(first <= task_id <= last for first, last in POOL)
        assert info["seed"] == own_seed(task_id)
        assert info["seat"] == own_seed(task_id) % 2
    own, drawn = make(task_id=LEDUC, seeds="affine"), make(task_id=LEDUC)
    theirs = drawn.reset(seed=own_seed(LEDUC))[0]
    for seed in (0, 5):
        assert own.reset(seed=seed)[0] == theirs
    for action in (1, 1):
        assert own.step(action)[0] == drawn.step(action)[0]


def test_a_copy_has_the_seeds_too() -> None:
    env: Any = make(task_ids=POOL, seeds="affine")
    env.reset(seed=3)
    copy = pickle.loads(pickle.dumps(env))
    assert copy.unwrapped.facts == env.unwrapped.facts
    assert copy.reset(seed=4)[1]["seed"] == env.reset(seed=4)[1]["seed"]


def test_seeds_follow_from_task_ids_only() -> None:
    with pytest.raises(ArgumentError, match=r"seeds: 'affine' was given with game 'hex', allowed: with task"):
        make(game="hex", seeds="affine")
    with pytest.raises(ArgumentError, match=r"seeds: 'affin' was given, .* did you mean 'affine'"):
        make(task_id=0, seeds="affin")
