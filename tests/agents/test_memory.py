"""Freed memory goes back to the system. ``test_update.py`` tests what happens when memory runs out."""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gamespiel.agents.models import memory

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
