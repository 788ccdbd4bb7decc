"""Variables that PyTorch reads when it is imported; results do not depend on them.

**Threads.** A small model's forward is thousands of short products, between which its threads wait for
microseconds. To be woken takes them longer than that. Threads that spin instead are ready at once, and take
the time of whatever else runs. So they spin for a moment if the machine has cores for them at the start.

**Pages.** The kernel clears the memory of each tensor of a larger model page by page: large pages are fewer.
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


def prepare_torch(environ: MutableMapping[str, str]) -> None:
    """Sets in an environment how PyTorch's threads wait and that it uses large pages, unless the user has."""
    environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if "OMP_WAIT_POLICY" in environ or "GOMP_SPINCOUNT" in environ:
        return
    environ["OMP_WAIT_POLICY"] = "PASSIVE"
    others = count_running()
    if others is not None and others + count_cores() < (os.cpu_count() or 1) + 0.5:
        environ["GOMP_SPINCOUNT"] = str(SPINS)  # this counts for libgomp, whatever the policy


def count_running(path: Path = Path("/proc/loadavg")) -> float | None:
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
