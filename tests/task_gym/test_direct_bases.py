"""Gymnasium's classes are direct bases of ours: skrl looks at nothing else to recognise an environment."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import gymnasium as gym
import pytest

import game_gym
import task_gym
import trace_gym


def classes() -> Iterator[type]:
    """Yields the environments and wrappers that the environments' rooms define, but for vectors."""
    rooms: list[ModuleType] = [task_gym, game_gym, trace_gym]
    for room in rooms:
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            try:
                module = importlib.import_module(found.name)
            except ImportError:  # of a library that is not installed
                continue
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == found.name and issubclass(value, gym.Env):
                    yield value


@pytest.mark.parametrize("made", sorted(set(classes()), key=lambda made: made.__qualname__))
def test_gymnasiums_class_is_a_direct_base(made: type) -> None:
    assert (gym.Wrapper if issubclass(made, gym.Wrapper) else gym.Env) in made.__bases__
