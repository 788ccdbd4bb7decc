"""The keeper, a process between the worker and a program: it waits for the program and cleans up.

At level "namespaces" the keeper is the first process of its own namespace, and all others in there die with
it. At other levels orphans become its children, and it ends them.
"""

from __future__ import annotations

import os
import select

from . import kernel, mounts, sweep
from .locks import Locks, close_all_but, lock
from .wire import ENDED, FAILED, Caps, Setting

WORK = "work"
"""A program's directory below the worker's, at levels below "namespaces"."""

NAMESPACES = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS
"""A program's own; it shares the worker's others, in which it can leave nothing."""


def _watch(pid: int, life: int) -> str:
    """Waits for the program, or until the other end of ``life`` closes. Returns the report of its end."""
    program = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(program, select.POLLIN)
    poll.register(life, 0)  # poll always reports a hang-up
    ready = [file for file, _ in poll.poll()]
    if program not in ready:
        os.kill(pid, sweep.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return f"{ENDED} {os.waitstatus_to_exitcode(status)} {usage.ru_utime + usage.ru_stime:.6f}"


def keep(setting: Setting, locks: Locks, caps: Caps, files: list[int], life: int, report: int) -> bytes:
    """Runs the keeper. Returns only in the program's process, with the program's text.

    Args:
        setting: The worker's setting.
        locks: The locks for the program.
        caps: The program's limits.
        files: The text and the program's standard input, output and error.
        life: A pipe that closes to end the program.
        report: A pipe for one line about the program's end.
    """
    try:
        text, *standard = files
        for number, file in enumerate(standard):
            os.dup2(file, number)
        close_all_but(text, life, report, *([] if locks.ruleset is None else [locks.ruleset]))
        os.umask(0o022)
        if setting.level == "namespaces":
            mounts.fresh_work(caps.file_size, os.getuid() if setting.user is None else setting.user)
            os.chdir(mounts.WORK)
        else:
            kernel.adopt_orphans()
            os.chdir(os.path.join(setting.base, WORK))
        pid = os.fork()
        if pid == 0:
            with open(text, "rb") as sent:
                program = sent.read()
            lock(setting, locks, caps)
            return program
        for file in (0, 1, 2, text):
            os.close(file)
        line = _watch(pid, life)
        if setting.level != "namespaces":
            sweep.end_children(setting.user)
    except Exception as error:
        line = f"{FAILED} {error}"
    os.write(report, line.encode(errors="replace")[:500] + b"\n")
    os._exit(0)
