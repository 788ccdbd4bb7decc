"""What makes thousands of tests faster: one thread per process, and no search for garbage in what stays.

Tests and their libraries are millions of objects, each of which every full collection would visit.
"""

from __future__ import annotations

import gc
import os

# Read when PyTorch is imported, here and in the processes that tests start. Each worker has a core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # where a test asks for two, they do not spin

gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
