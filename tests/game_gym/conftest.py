"""Property tests draw the same examples each time, and are not timed: machines are shared."""

import pytest
from hypothesis import settings

from task_gym import opponents

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opponents that a test registers are forgotten after it."""
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
