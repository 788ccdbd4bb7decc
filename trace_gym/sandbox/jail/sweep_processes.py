"""The end of all processes that a program left running."""

from __future__ import annotations

import os
import resource

SIGKILL = 9


def _children() -> list[int]:
    """Returns the ids of this process's children."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name, in parentheses, may contain anything.
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == os.getpid():
                found.append(int(name))
    return found


def end_children(user: int | None) -> None:
    """Kills and reaps all children, and their children as they become this process's own.

    Args:
        user: The children's user id, if no other process has it. Then one signal reaches all of them at once,
            even if they fork meanwhile. If None, each child is first forbidden to fork.
    """
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            continue
        if user is not None:
            helper = os.fork()
            if helper == 0:
                try:
                    os.setresuid(user, user, user)
                    os.kill(-1, SIGKILL)
                finally:
                    os._exit(0)
            os.waitpid(helper, 0)
        else:
            for child in _children():
                try:
                    resource.prlimit(child, resource.RLIMIT_NPROC, (0, 0))
                    os.kill(child, SIGKILL)
                except ProcessLookupError:
                    continue
        os.waitpid(-1, 0)
