"""Settings that make thousands of tests faster: one thread per process, and fewer searches for garbage.

Tests and their libraries are millions of objects, each of which every full collection of garbage would visit.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from typing import Any

import pytest

# Read when PyTorch is imported, here and in the processes that tests start. Each worker has a core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # where a test asks for two, they do not spin


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
