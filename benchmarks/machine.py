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
