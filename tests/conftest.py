"""Settings that make thousands of tests faster: one thread per process, and fewer searches for garbage.

Tests and their libraries are millions of objects, each of which every full collection of garbage would visit.

Signals are as at a terminal: a shell that starts the tests in the background has them ignore Ctrl-C, and
``nohup`` a lost terminal, which the tests send.

Property tests draw the same examples each time, and are not timed: machines are shared.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

# Read when PyTorch is imported, here and in the processes that tests start. Each worker has a core, and more
# threads would add numbers in another order.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # where a test asks for two, they do not spin

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


if find_spec("hypothesis"):  # the tests of pages in a browser have none
    from hypothesis import settings

    settings.register_profile("steady", deadline=None, derandomize=True)
    settings.load_profile("steady")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests marked ``weights("smollm2")`` or ``weights("vocabulary")`` if these are not installed."""
    for name in (name for marker in item.iter_markers("weights") for name in marker.args):
        if not INSTALLED[name]():
            pytest.skip(f"not installed: make {name}")


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Games, opponents and rewards that a test adds are gone afterwards."""
    import game_gym.opponents  # noqa: F401  (registers them, before the registry is copied)
    from game_gym.games import DECLARED
    from task_gym import opponents, rewards

    monkeypatch.setattr(opponents, "REGISTRY", dict(opponents.REGISTRY))
    monkeypatch.setattr(rewards, "REGISTRY", {})
    declared = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(declared)


def has_vocabulary() -> bool:
    from scripts.fetch_qwen_vocabulary import PLACE

    return PLACE.is_file()


@cache
def has_smollm2() -> bool:
    from gamespiel.agents.models.weights import from_wheel
    from tests.agents.smollm2 import NAME

    return from_wheel(NAME) is not None


INSTALLED = {"vocabulary": has_vocabulary, "smollm2": has_smollm2}
"""Whether what ``make NAME`` installs is there, by its name."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
