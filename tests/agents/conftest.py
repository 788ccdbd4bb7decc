"""One thread per test, and property tests that draw the same examples each time: machines are shared."""

from __future__ import annotations

import pytest
from hypothesis import settings

from gamespiel.agents.models.weights import from_wheel
from tests.agents.served import make_server, plug
from tests.agents.smollm2 import NAME
from tests.threads import one_thread

__all__ = ["make_server", "one_thread", "plug"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def smollm2() -> str:
    """Returns the name of SmolLM2-135M-Instruct, or skips the test; see ``tests/agents/smollm2.py``."""
    if from_wheel(NAME) is None:
        pytest.skip("the weights of SmolLM2-135M-Instruct are not installed: make smollm2")
    return NAME
