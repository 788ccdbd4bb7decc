"""Control groups: the kernel's limits on all memory and all processes of a worker and its programs together.

A program at level "namespaces" has its limits without them: it is one process, whose address space is
limited, and the filter refuses what allocates elsewhere. A control group is a second wall. It counts the
kernel's own memory for the program too, and a program that finds a way around the filter meets it.

Groups can be made by root, or where systemd or a container delegates them. Version 2 is used if it has the
controllers, else version 1.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

PREFIX = "gamespiel-"

_ROOM = 64 << 20
"""Bytes above a program's own limit: for the worker, the keeper, files, pipes and page tables."""

_HELPERS = 4
"""Processes above a program's own limit: the worker, the keeper, and one of each that is just ending."""

_END_SECONDS = 5.0


class Place(NamedTuple):
    """A group below which workers get theirs.

    Attributes:
        parent: Its directory.
        memory: The name of the file with the limit of memory; "" if this hierarchy does not count memory.
        processes: The name of the file with the limit of processes; "" if it does not count them.
    """

    parent: Path
    memory: str
    processes: str


def _hierarchies() -> dict[str, tuple[Path, Path]]:
    """Returns this process's group in each hierarchy, and the highest group that is visible here.

    The key is "" for version 2, else the controller.
    """
    mounts: dict[str, tuple[str, Path]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(maxsplit=2)
        if kind in ("cgroup", "cgroup2"):
            for name in options.split(",") if kind == "cgroup" else [""]:
                mounts.setdefault(name, (root, Path(point)))
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else [""]:
            above, mount = mounts.get(name, ("", Path()))
            if above and f"{path}/".startswith(f"{above.rstrip('/')}/"):
                groups[name] = mount / path.removeprefix(above).lstrip("/"), mount
    return groups


def find_unified(group: Path, top: Path) -> Place:
    """Returns the nearest group of version 2 that passes on both controllers.

    A group that has processes cannot, so this is seldom the process's own.

    Raises:
        OSError: there is none, or none that this user may use.
    """
    for parent in [group, *group.parents]:
        passed = (parent / "cgroup.subtree_control").read_text().split()
        if {"memory", "pids"} <= set(passed) and os.access(parent, os.W_OK):
            return Place(parent, "memory.max", "pids.max")
        if parent == top:
            break
    raise OSError(f"no group from {group} up passes on the controllers memory and pids and may be written to")


def find_places() -> list[Place]:
    """Returns where groups for workers are made.

    Raises:
        OSError: nowhere, and why.
    """
    hierarchies = _hierarchies()
    reasons = []
    if "" in hierarchies:
        try:
            return [find_unified(*hierarchies[""])]
        except OSError as error:
            reasons.append(f"version 2: {error}")
    old = [
        Place(hierarchies[name][0], memory, processes)
        for name, memory, processes in (("memory", "memory.limit_in_bytes", ""), ("pids", "", "pids.max"))
        if name in hierarchies and os.access(hierarchies[name][0], os.W_OK)
    ]
    if len(old) == 2:
        return old
    reasons.append("version 1: no group for memory and processes that may be written to")
    raise OSError("; ".join(reasons))


class Group:
    """The control group of one worker.

    Args:
        pid: The worker, which enters the group. Its children follow.

    Raises:
        OSError: there are no groups here for this user, and why.
    """

    def __init__(self, pid: int) -> None:
        self._groups: list[tuple[Path, Place]] = []
        self._limits: tuple[int, int] | None = None
        try:
            for place in find_places():
                _sweep(place.parent)
                path = place.parent / f"{PREFIX}{os.getpid()}-{pid}"
                path.mkdir()
                self._groups.append((path, place))
                (path / "cgroup.procs").write_text(str(pid))
        except BaseException:
            self.close()
            raise

    def limit(self, memory: int, processes: int) -> None:
        """Sets the limits for a program of so many bytes and processes."""
        if self._limits == (memory, processes):
            return
        for path, place in self._groups:
            if place.memory:
                (path / place.memory).write_text(str(memory + _ROOM))
                with contextlib.suppress(OSError):  # a kernel without swap, which has no such file
                    if place.memory == "memory.max":
                        (path / "memory.swap.max").write_text("0")
            if place.processes:
                (path / place.processes).write_text(str(processes + _HELPERS))
        self._limits = memory, processes

    def close(self) -> None:
        """Removes the group, whose processes have ended or are ending."""
        until = time.monotonic() + _END_SECONDS
        for path, _ in self._groups:
            while path.exists():
                try:
                    path.rmdir()
                except OSError:  # a process is still ending
                    if time.monotonic() > until:
                        break
                    time.sleep(0.002)
        self._groups = []


def _sweep(parent: Path) -> None:
    """Removes groups of callers that were killed."""
    for path in parent.glob(f"{PREFIX}*-*"):
        if not Path(f"/proc/{path.name.removeprefix(PREFIX).partition('-')[0]}").exists():
            with contextlib.suppress(OSError):
                path.rmdir()


def trouble() -> str | None:
    """Returns why workers get no control groups here; None if they do."""
    try:
        find_places()
    except OSError as error:
        return str(error)
    return None
