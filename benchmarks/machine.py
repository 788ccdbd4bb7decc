"""The machine of a measurement."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path


def machine() -> dict[str, str | int | None]:
    """Returns processor, cores that this process may use, Python version and date, for a result."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    return {
        "cpu": names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def busy_seconds() -> float | None:
    """Returns the CPU seconds that all processes have spent since the machine started; None if unknown."""
    counts = Path("/proc/stat")
    if not counts.exists():
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal: a guest's steal is other machines' work.
    ticks = [int(count) for count in counts.read_text().partition("\n")[0].split()[1:9]]
    return float(sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
