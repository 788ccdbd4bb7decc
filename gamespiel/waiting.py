"""How OpenMP's threads wait for one another: it has to be said before PyTorch is imported.

A small model's forward is thousands of short products, between which its threads wait for microseconds. To be
woken takes them longer than that. Threads that spin instead are ready at once, and take the time of whatever
else runs. So they spin for a moment if the machine has cores for them when the command begins. Results do
not depend on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import MutableMapping
from pathlib import Path

from task_gym.processes import count_cores

SPINS = 20_000
"""Turns of libgomp's waiting loop before a thread sleeps: tens of microseconds."""

SAMPLES, PAUSE = 5, 0.004
"""How often the machine's running threads are counted, and the seconds between: one count is luck."""

LOADAVG = Path("/proc/loadavg")


def prepare_threads(environ: MutableMapping[str, str]) -> None:
    """Sets how threads wait in an environment, unless the user has."""
    if "OMP_WAIT_POLICY" in environ or "GOMP_SPINCOUNT" in environ:
        return
    environ["OMP_WAIT_POLICY"] = "PASSIVE"
    others = count_running()
    if others is not None and others + count_cores() < (os.cpu_count() or 1) + 0.5:
        environ["GOMP_SPINCOUNT"] = str(SPINS)  # this counts for libgomp, whatever the policy


def count_running(path: Path = LOADAVG) -> float | None:
    """Returns the mean number of other threads that run on this machine, None where no file tells it."""
    counts = []
    for sample in range(SAMPLES):
        if sample:
            time.sleep(PAUSE)
        try:
            running, _, _ = path.read_text(encoding="ascii").split()[3].partition("/")
            counts.append(int(running) - 1)  # this thread reads the file
        except (OSError, ValueError, IndexError):
            return None
    return sum(counts) / len(counts)
