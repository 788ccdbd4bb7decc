"""One thread per test, and property tests that draw the same examples each time: machines are shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from gamespiel.agents.weights import from_wheel
from tests.threads import one_thread

__all__ = ["one_thread"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """Returns the GGUF file of SmolLM2-135M-Instruct, which takes some ten seconds to load."""
    path = from_wheel("HuggingFaceTB/SmolLM2-135M-Instruct")
    if path is None:
        pytest.skip("the weights of SmolLM2-135M-Instruct are not installed: make smollm2")
    return path
