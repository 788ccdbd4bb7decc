"""Freed memory goes back to the system. ``test_update.py`` tests what happens when memory runs out."""

from __future__ import annotations

import ctypes
import gc
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gamespiel.agents import engines
from gamespiel.agents.models import memory
from tests.agents.cards import card
from tests.agents.toys import make_policy

PAGE = 4096


def resident() -> int:
    """Returns the bytes of memory that this process has."""
    return PAGE * int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory, and can be asked"
)
def test_freed_blocks_between_others_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 MB in blocks of 100 kB, of which every hundredth is kept: glibc cannot give back from the end."""
    blocks = [np.ones(100_000, dtype=np.int8) for _ in range(4000)]
    kept = blocks[99::100]
    full = resident()
    del blocks
    monkeypatch.setattr(memory, "_given_back", time.monotonic() - memory.GIVEN_BACK_EVERY)
    memory.give_back()
    assert len(kept) == 40 and full - resident() > 300_000_000


def test_it_is_done_once_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = iter([1000.0, 1059.9, 1060.0, 1100.0, 1120.0]), []
    monkeypatch.setattr(memory, "_given_back", 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(memory, "_trim", lambda: calls.append(None))
    counts = []
    for _ in range(5):
        memory.give_back()
        counts.append(len(calls))
    assert counts == [1, 1, 2, 2, 3]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: asked.append(name) or object())
    memory.release()
    assert asked == ([None] if sys.platform == "linux" else [])


FAULTS = """
import resource
import numpy as np
from gamespiel.agents.models import memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(40_000_000, dtype=np.int8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
given_back = faults()
memory.keep_freed()
np.ones(40_000_000, dtype=np.int8)
print(given_back, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep freed memory")
def test_kept_blocks_are_used_again() -> None:
    """20 times 40 MB, above the 32 MiB that glibc may keep by itself; a fault is of a page, or of 2 MiB."""
    found = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True)
    given_back, kept = map(int, found.stdout.split())
    assert given_back >= 20 * 40_000_000 // (1 << 21) and kept < given_back / 10


@pytest.mark.parametrize(("parameters", "keeps"), [(10**9, True), (1, False)])
def test_small_models_on_the_cpu_keep_freed_memory(
    parameters: int, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded model has fewer parameters than 10⁹, and more than 1."""
    calls: list[int] = []
    monkeypatch.setattr(memory, "keep_freed", lambda: calls.append(1))
    monkeypatch.setattr(engines, "SMALL", parameters)
    make_policy()
    assert bool(calls) == keeps


def test_on_a_gpu_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(memory, "keep_freed", lambda: calls.append(1))
    with card():
        make_policy(device="cuda")
    assert not calls


@pytest.mark.parametrize("given", [False, True])
def test_objects_that_are_set_aside(given: bool) -> None:
    """Collections skip the objects from before the context, and find new ones. A caller's own stay aside."""
    gc.unfreeze()
    try:
        if given:
            gc.freeze()
        before, kept = gc.get_freeze_count(), [[] for _ in range(1000)]
        with memory.setting_aside():
            assert gc.get_freeze_count() >= before + len(kept)
            ring: list[Any] = []
            ring.append(ring)
            del ring
            assert gc.collect() >= 1
        assert (gc.get_freeze_count() > 0) is given
    finally:
        gc.freeze()  # as the tests' own configuration does
