"""Memory that runs out, and what keeps it: freed blocks go back."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from task_gym.errors import TaskGymError


class MemoryLimitError(TaskGymError):
    """A device without the memory for even one turn."""


UNNAMED = ("can't allocate memory", "error: out of memory", "_STATUS_ALLOC_FAILED")
"""Parts of messages of ``RuntimeError`` if the memory that is missing is not that of a GPU tensor.

The first is a CPU's. The others are of what CUDA and cuBLAS allocate past torch's allocator: a kernel's code
when it is first run, and the workspace of a thread, such as the one of the first backward pass.
"""


def is_out_of_memory(error: Exception) -> bool:
    """Returns whether torch or NumPy found no memory, on a GPU or on the CPU."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(part in str(error) for part in UNNAMED)


def release() -> None:
    """Gives back what a failed attempt still holds."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    _trim()


GIVEN_BACK_EVERY = 60.0
"""Seconds between two calls that give memory back: each takes up to one."""

_given_back = time.monotonic()


def give_back() -> None:
    """Gives the CPU's memory that was freed back to the system, once a minute at most.

    glibc keeps freed blocks between others for itself. Turns differ in length from step to step, so blocks of
    other sizes are kept each time: a run of SmolLM2 that needs 3.5 GiB had 10 of them after an hour.
    """
    global _given_back
    now = time.monotonic()
    if now - _given_back >= GIVEN_BACK_EVERY:
        _given_back = now
        _trim()


@contextmanager
def setting_aside() -> Iterator[None]:
    """Leaves the objects that exist out of Python's garbage collections within the context.

    A trainer has some 200,000 of them once its libraries are imported, and a full collection looks at each:
    some 0.3 s, every few steps. What a caller has set aside before stays so afterwards.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


KEPT = 1 << 30
"""Bytes up to which ``keep_freed`` keeps a block, and the end of the heap."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's ``malloc.h``."""


def keep_freed() -> None:
    """Makes the C library keep large blocks that are freed, for the next ones, in this whole process.

    glibc gives each back at once, and the system clears its pages again for the next one: an eighth of a
    small model's time. Larger models would need several times their memory. ``give_back`` works as before.
    """
    mallopt = _find_in_libc("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT)
        mallopt(M_TRIM_THRESHOLD, KEPT)


def used_memory(device: torch.device) -> float:
    """Returns the bytes in use: on a GPU the most that tensors had so far, else those of this process now.

    Systems without ``/proc`` tell the most that the process had; those that do not, NaN.
    """
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)


def _trim() -> None:
    """Gives back the pages of freed blocks, if the C library is one that can."""
    trim = _find_in_libc("malloc_trim")
    if trim is not None:
        trim(0)


def _find_in_libc(name: str) -> Callable[..., int] | None:
    """Returns a function of Linux's C library; None if it is another system, or another library."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
