"""The locks that a program's process puts on itself just before the program runs.

One of them is Landlock, a second wall around a program's file system (Linux 5.13 on). The mount namespace
already shows a program only its own files. Landlock bars it from all other files even if it reaches one, as
through an open directory. A program behaves in the same way without Landlock, so a kernel that lacks it still
has the level "namespaces".
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct

from . import filter, kernel
from .wire import Caps, Setting

DEVICES = ("/dev/null", "/dev/urandom")
"""The only devices that a program needs."""

_MOST_FILES = 256  # far more than a worker ever has open
_MOST_SIGNALS = 16  # queued at a time; the kernel counts them by user, across the machine

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_VERSION, _PATH_BENEATH = 1, 1

# Rights by Landlock's version: thirteen at first, then moves between directories, truncation by name, and
# commands to devices. Everything is allowed below the program's root but to execute.
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_EXECUTE = 1


def landlock_version() -> int:
    """Returns Landlock's version; 0 without Landlock.

    Raises:
        OSError: Landlock is there, but refuses.
    """
    try:
        return kernel.syscall("landlock", _CREATE, None, ctypes.c_ulong(0), ctypes.c_ulong(_VERSION))
    except OSError as error:
        # It is not built, is off, or a container's rule forbids it.
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def make_ruleset() -> int | None:
    """Returns a ruleset for the files below the root, as a file descriptor; None without Landlock.

    Raises:
        OSError: Landlock is there, but refuses.
    """
    zero, version = ctypes.c_ulong(0), landlock_version()
    if version == 0:
        return None
    handled = sum(right for since, right in _RIGHTS.items() if since <= version)
    attributes = struct.pack("=Q", handled)
    ruleset = kernel.syscall("landlock ruleset", _CREATE, attributes, ctypes.c_ulong(len(attributes)), zero)
    os.set_inheritable(ruleset, False)
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", handled & ~_EXECUTE, root)
        kernel.syscall("landlock rule", _ADD_RULE, ruleset, _PATH_BENEATH, rule, zero)
    finally:
        os.close(root)
    return ruleset


def close_all_but(*files: int) -> None:
    """Closes every file but the standard ones and these."""
    low = 3
    for file in sorted(files):
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
    """The restrictions of level "namespaces" beside its namespaces, prepared once for all programs.

    Attributes:
        filter: The instructions of the system call filter; None at level "limits".
        ruleset: Landlock's ruleset; None at level "limits", and where the kernel has no Landlock.

    Raises:
        OSError: this machine has no filter.
    """

    def __init__(self, setting: Setting) -> None:
        confined = setting.level == "namespaces"
        self.filter = filter.make_filter() if confined else None
        self.ruleset = make_ruleset() if confined else None


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
        kernel.syscall("landlock", _RESTRICT_SELF, locks.ruleset, ctypes.c_ulong(0))
    close_all_but()
    _limits(caps)  # almost last, because a limit may be too tight for the steps above
    if locks.filter is not None:
        kernel.install_filter(locks.filter)
