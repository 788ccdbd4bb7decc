"""Sandboxes for tests, and the protection of their levels."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trace_gym.sandbox import Limits, Result, Sandbox, run, trouble

AS_ROOT = os.geteuid() == 0
PROTECTS = "namespaces"

LIMITS = Limits(cpu_seconds=2, wall_seconds=5.0, memory=128 << 20, output=4096, file_size=1 << 20)
"""Limits of these sandboxes: enough for any honest program, even on a busy machine."""

SHORT = Limits(cpu_seconds=1, wall_seconds=1.0, memory=128 << 20, output=4096, file_size=1 << 20)
"""Limits for programs that would never end: enough time to begin on a busy machine."""


def need(level: str) -> None:
    """Skips the test if this machine does not have a level, and says why."""
    reason = trouble(level)
    if reason is not None:
        pytest.skip(f"no level {level!r} here: {reason}")


class Box:
    """A sandbox of one level that runs each program in new or in warm workers."""

    def __init__(self, level: str, warm: bool) -> None:
        self.level, self.warm = level, warm
        self._sandboxes: dict[Limits, Sandbox] = {}

    def __call__(self, program: str, stdin: str = "", limits: Limits = LIMITS) -> Result:
        if not self.warm:
            result = run(program, stdin, limits=limits, level=self.level, require=self.level)
        else:
            if limits not in self._sandboxes:
                self._sandboxes[limits] = Sandbox(limits=limits, level=self.level, require=self.level)
            result = self._sandboxes[limits].run(program, stdin)
        assert result.level == self.level
        return result

    def workers(self) -> set[int]:
        """Returns the processes of the warm workers."""
        return {w._process.pid for box in self._sandboxes.values() for w in box._workers.values()}

    def close(self) -> None:
        for sandbox in self._sandboxes.values():
            sandbox.close()


def running(pid: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in (b"Z", b"X")


def descendants(ancestor: int) -> set[int]:
    """Returns the descendants of a process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_bytes().rpartition(b")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    pids: set[int] = set()
    waiting = [ancestor]
    while waiting:
        for child in children.get(waiting.pop(), []):
            pids.add(child)
            waiting.append(child)
    return pids
