"""Tests that the environments of a process share their backend."""

from __future__ import annotations

import gc
import pickle
import weakref

import gymnasium as gym

import trace_gym  # noqa: F401 (registers the environments)
from trace_gym.backends import make_backend


def test_the_same_arguments_share_a_backend() -> None:
    one = make_backend("builtin", "safe", True)
    assert make_backend("builtin", "safe", True) is one
    others = [make_backend("builtin", *rest) for rest in (("safe", False), ("affine", True))]
    assert len({id(one), *map(id, others)}) == 3


def test_a_trace_is_made_once() -> None:
    first, second = (gym.make("CodeTrace-v0", task_id=7) for _ in range(2))
    first.reset(seed=0)
    second.reset(seed=1)
    assert second.unwrapped.trace is first.unwrapped.trace  # type: ignore[attr-defined]


def test_closing_one_leaves_the_other_at_work() -> None:
    first, second = (gym.make("CodeTraceChoice-v0", task_ids=[(0, 319)], level=1) for _ in range(2))
    first.reset(seed=0)
    first.close()
    text, _ = second.reset(seed=1, options={"task_id": 160})
    copy = pickle.loads(pickle.dumps(second))
    assert copy.reset(seed=1, options={"task_id": 160})[0] == text
    second.close()


def test_a_backend_ends_with_its_last_environment() -> None:
    made = weakref.ref(make_backend("builtin", "affine", False))
    gc.collect()
    assert made() is None
