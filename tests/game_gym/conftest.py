"""Opponents of a test."""

import pytest

from task_gym import opponents


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opponents that a test registers are forgotten after it."""
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
