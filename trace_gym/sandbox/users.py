"""User ids of programs: if the caller is root, a user id that no other process has."""

from __future__ import annotations

import os
from pathlib import Path

from task_gym.errors import SandboxError

INSIDE = 1000
"""The user id that a program at level "namespaces" sees."""


def _own_ids() -> str:
    """Returns the user ids of this process's user namespace: lines of first, first outside, number."""
    return Path("/proc/self/uid_map").read_text()


def stranger(pid: int) -> int:
    """Returns a user id for the worker ``pid`` and its programs, without a name, files or other processes.

    Raises:
        SandboxError: this user namespace has no such id.
    """
    ranges = [(int(first), int(count)) for first, _, count in map(str.split, _own_ids().splitlines())]
    # Above all ids that distributions and containers hand out, or at least above ordinary users.
    for wanted in (0x70000000 + pid, 50_000 + pid % 10_000):
        if any(first <= wanted < first + count for first, count in ranges):
            return wanted
    raise SandboxError("running as root, and no user id is to be had for programs: allowed: one above 50000")


def map_user(pid: int) -> None:
    """Sets the user ids of the user namespace that the process ``pid`` has just made.

    If the caller is root, root stays root for the worker, and a program's user gets an unused id outside.
    Otherwise the namespace has only the caller's id.

    Raises:
        SandboxError: the kernel refuses.
    """
    if os.geteuid() == 0:
        other = stranger(pid)
        maps = {name: f"0 0 1\n{INSIDE} {other} 1\n" for name in ("uid_map", "gid_map")}
    else:
        maps = {
            "setgroups": "deny",
            "uid_map": f"{INSIDE} {os.geteuid()} 1\n",
            "gid_map": f"{INSIDE} {os.getegid()} 1\n",
        }
    for name, content in maps.items():
        try:
            Path(f"/proc/{pid}/{name}").write_text(content)
        except OSError as error:
            raise SandboxError(f"user ids of a namespace could not be set: {name}: {error}") from error


def turned_into(level: str, pid: int) -> int | None:
    """Returns the user id that the worker ``pid`` gives a program; None if the program keeps its own."""
    if os.geteuid() != 0:
        return None
    return INSIDE if level == "namespaces" else stranger(pid)


def _tasks() -> int:
    """Returns how many processes and threads this user has."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            text = path.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(values["Uid"].split()[0]) == os.getuid():
            total += int(values["Threads"])
    return total


def process_limit(level: str, processes: int) -> int:
    """Returns the RLIMIT_NPROC that gives a program ``processes``: the kernel counts by user."""
    if os.geteuid() == 0:
        return processes
    release = tuple(
        int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2]
    )
    if level == "namespaces" and release >= (5, 14):  # which count each user namespace by itself
        return processes + 2  # the worker and the keeper
    return _tasks() + 2 + processes
