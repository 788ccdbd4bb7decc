"""Freed memory goes back to the system. ``test_update.py`` tests what happens when memory runs out."""

from __future__ import annotations

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

ON_GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked")
PAGE = 4096


def resident() -> int:
    """Returns the bytes of memory that this process has."""
    return PAGE * int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


@pytest.mark.memory
@ON_GLIBC
def test_freed_blocks_between_others_go_back_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 MB in blocks of 100 kB, of which every hundredth is kept: glibc cannot give back from the end."""
    now = time.monotonic() + 1000
    for later, goes_back in ((0, True), (59.9, False), (60, True), (100, False), (120, True)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        blocks = [np.ones(100_000, dtype=np.int8) for _ in range(4000)]
        kept = blocks[99::100]
        full = resident()
        del blocks
        memory.give_back()
        assert len(kept) == 40 and (full - resident() > 300_000_000) == goes_back


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


@pytest.mark.memory
@ON_GLIBC
def test_kept_blocks_are_used_again() -> None:
    """20 times 40 MB, above the 32 MiB that glibc may keep by itself; a fault is of a page, or of 2 MiB."""
    found = subprocess.run([sys.executable, "-c", FAULTS], check=True, capture_output=True, text=True)
    given_back, kept = map(int, found.stdout.split())
    assert given_back >= 20 * 40_000_000 // (1 << 21) and kept < given_back / 10


@pytest.mark.parametrize(
    ("small", "device", "keeps"), [(10**9, "cpu", True), (1, "cpu", False), (10**9, "cuda", False)]
)
def test_small_models_on_the_cpu_keep_freed_memory(
    small: int, device: str, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded model has fewer parameters than 10⁹, and more than 1."""
    calls: list[int] = []
    monkeypatch.setattr(memory, "keep_freed", lambda: calls.append(1))
    monkeypatch.setattr(engines, "SMALL", small)
    with card():
        make_policy(device=device)
    assert bool(calls) == keeps


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
