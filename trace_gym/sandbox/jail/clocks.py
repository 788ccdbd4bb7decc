"""Clocks of a program that begin with its worker: a wall around the machine's uptime (Linux 5.6 on).

The promise does not rest on it: a processor's own counter shows the uptime, too, to machine code.
"""

from __future__ import annotations

import errno
import os
import posix
import resource
import time

from . import kernel

_OFFSETS = "/proc/self/timens_offsets"
_MOST = "/proc/sys/user/max_time_namespaces"
_CLOCKS = (("monotonic", time.CLOCK_MONOTONIC), ("boottime", time.CLOCK_BOOTTIME))
_NANOSECONDS = 10**9


def is_there() -> bool:
    """Returns whether the kernel has time namespaces, and allows them."""
    try:
        with open(_OFFSETS), open(_MOST) as most:
            return int(most.read()) > 0
    except OSError:
        return False


def replace_times() -> None:
    """Computes ``os.times`` without its system call, which counts from the machine's start.

    That call cannot fail: the C library takes any error for a time, and leaves the rest as it was in memory.
    """
    getrusage, monotonic = resource.getrusage, time.monotonic

    def times() -> os.times_result:
        """Return a collection containing process timing information."""
        process, children = getrusage(resource.RUSAGE_SELF), getrusage(resource.RUSAGE_CHILDREN)
        spent = (process.ru_utime, process.ru_stime, children.ru_utime, children.ru_stime)
        return os.times_result((*spent, monotonic()))

    times.__module__ = "posix"
    os.times = posix.times = times


def hide_uptime() -> None:
    """Has the clocks of later children begin at zero, if there are time namespaces: see ``is_there``.

    It needs a user namespace of the caller's own, and ``/proc``.

    Raises:
        OSError: the kernel makes the namespace, but refuses its clocks.
    """
    try:
        kernel.unshare(kernel.CLONE_NEWTIME)
    except OSError as error:
        # An unknown flag, the machine's limit of such namespaces, a container's rule.
        if error.errno in (errno.EINVAL, errno.ENOSPC, errno.EPERM):
            return
        raise
    lines = []
    for name, clock in _CLOCKS:
        seconds, nanoseconds = divmod(-time.clock_gettime_ns(clock), _NANOSECONDS)
        lines.append(f"{name} {seconds} {nanoseconds}\n")
    with open(_OFFSETS, "w") as file:
        file.write("".join(lines))
