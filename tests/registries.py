"""A fixture for what adds games, opponents and rewards: they are gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import game_gym.opponents  # noqa: F401  (registers them, before the registry is copied)
from game_gym.games import DECLARED
from task_gym import opponents, rewards


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
    monkeypatch.setattr(rewards, "_REGISTRY", {})
    declared = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(declared)
