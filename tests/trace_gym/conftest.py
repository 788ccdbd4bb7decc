"""Environments that are closed after a test, and a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import gymnasium as gym
import pytest

from tests.trace_gym.play import Make
from trace_gym.admission.admit import LIMITS
from trace_gym.admission.worlds import HASH_SEEDS
from trace_gym.backends import LocalBackend, local, make_backend
from trace_gym.sandbox import Sandbox


@pytest.fixture
def make_env() -> Iterator[Make]:
    """Returns a function that makes environments, which are closed after the test."""
    with ExitStack() as stack:

        def make(name: str = "CodeTrace-v0", **arguments: Any) -> Any:
            env = gym.make(name, **arguments).unwrapped
            stack.callback(env.close)
            return env

        yield make


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Returns a sandbox as admission has it."""
    with Sandbox(HASH_SEEDS, limits=LIMITS) as runner:
        yield runner


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalBackend]:
    """Returns the backend of choices. It keeps the traces of a module's tests, which take long to make."""
    local_backend = make_backend("builtin", "safe", True)
    yield local_backend
    local_backend.close()


@pytest.fixture
def warm(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives all backends the module's sandbox, for its twenty workers take a second to start."""
    monkeypatch.setattr(local, "Sandbox", lambda seeds, **settings: sandbox)
    monkeypatch.setattr(sandbox, "close", lambda: None)
