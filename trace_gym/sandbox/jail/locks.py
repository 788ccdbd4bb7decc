"""The locks that a program's process puts on itself just before the program runs."""

from __future__ import annotations

import os
import resource

from . import filter, kernel, landlock
from .wire import Caps, Setting

DEVICES = ("/dev/null", "/dev/urandom")
"""The only devices that a program needs."""

_MOST_FILES = 256  # far more than a worker ever has open
_MOST_SIGNALS = 16  # queued at a time; the kernel counts them by user, across the machine


def close_all_but(*kept: int) -> None:
    """Closes every file but the standard ones and these."""
    low = 3
    for file in sorted(kept):
        os.closerange(low, file)
        low = file + 1
    os.closerange(low, _MOST_FILES)


def _limit(what: int, value: int, grace: int = 0) -> None:
    """Sets a limit that can only be raised by ``grace``. A lower limit stays if there is one."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
        grace = min(grace, hard - value)
    resource.setrlimit(what, (value, value + grace))


def _limits(caps: Caps) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(resource.RLIMIT_MSGQUEUE, 0)
    _limit(resource.RLIMIT_SIGPENDING, _MOST_SIGNALS)
    # SIGXCPU at the limit shows why the process ended. SIGKILL follows a second later, if it was ignored.
    _limit(resource.RLIMIT_CPU, caps.cpu, grace=1)
    _limit(resource.RLIMIT_AS, caps.memory)
    _limit(resource.RLIMIT_FSIZE, caps.file_size)
    _limit(resource.RLIMIT_NPROC, caps.processes)
    _limit(resource.RLIMIT_NOFILE, caps.open_files)


def _become(user: int, setting: Setting) -> None:
    """Changes to another user without capabilities, except to read the standard library if it is private."""
    kernel.keep_capabilities()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    hidden = setting.level != "namespaces" and not all(
        os.access(os.path.join(root, "os.py"), os.R_OK) for root in setting.roots.values()
    )
    kernel.set_capabilities(*([kernel.CAP_DAC_READ_SEARCH] if hidden else []))


class Locks:
    """What level "namespaces" adds to its namespaces, prepared once for all programs.

    Attributes:
        filter: The instructions of the system call filter; None at level "limits".
        ruleset: Landlock's ruleset; None at level "limits", and where the kernel has no Landlock.

    Raises:
        OSError: this machine has no filter.
    """

    def __init__(self, setting: Setting) -> None:
        confined = setting.level == "namespaces"
        self.filter = filter.make_filter() if confined else None
        self.ruleset = landlock.make_ruleset() if confined else None


def lock(setting: Setting, locks: Locks, caps: Caps) -> None:
    """Puts all of the level's protection on this process, and closes all but the standard files.

    Raises:
        OSError: a part of the protection fails.
    """
    os.setsid()
    if setting.user is not None:
        _become(setting.user, setting)
    else:
        kernel.set_capabilities()
    kernel.no_new_privileges()
    kernel.not_dumpable()
    if setting.level != "namespaces":
        kernel.die_with_parent()
    if locks.ruleset is not None:
        landlock.restrict(locks.ruleset)
    close_all_but()
    _limits(caps)  # almost last, because a limit may be too tight for the steps above
    if locks.filter is not None:
        kernel.install_filter(locks.filter)
