"""The processor's cores, and the threads that share them."""

from __future__ import annotations

import os
from threading import local


def count_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_thread = local()


def share_cores() -> None:
    """Says that this thread is one of several that compute at once: the initializer of a pool of threads."""
    _thread.shares = True


def shares_cores() -> bool:
    """Returns whether this thread is one of several that compute at once.

    What computes in Python then does better in a process of its own, because the threads share Python's lock.
    """
    return getattr(_thread, "shares", False)
