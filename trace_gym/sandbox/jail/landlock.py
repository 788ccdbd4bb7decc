"""Landlock: a second wall around a program's file system (Linux 5.13 on).

The mount namespace already shows a program only its own files. Landlock bars it from all other files even if
it reaches one, as through an open directory. A program behaves in the same way without Landlock, so a kernel
that lacks it still has the level "namespaces".
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import kernel

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_VERSION, _PATH_BENEATH = 1, 1

# Rights by Landlock's version: thirteen at first, then moves between directories, truncation by name, and
# commands to devices. Everything is allowed below the program's root but to execute.
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_EXECUTE = 1


def _version() -> int:
    """Returns Landlock's version; 0 without Landlock.

    Raises:
        OSError: Landlock is there, but refuses.
    """
    try:
        return kernel.syscall("landlock", _CREATE, None, ctypes.c_ulong(0), ctypes.c_ulong(_VERSION))
    except OSError as error:
        if error.errno in (
            errno.ENOSYS,
            errno.EOPNOTSUPP,
            errno.EPERM,
        ):  # not built, off, or a container's rule
            return 0
        raise


def is_there() -> bool:
    """Returns whether the kernel has Landlock."""
    return _version() > 0


def make_ruleset() -> int | None:
    """Returns a ruleset for the files below the root, as a file descriptor; None without Landlock.

    Raises:
        OSError: Landlock is there, but refuses.
    """
    zero, version = ctypes.c_ulong(0), _version()
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


def restrict(ruleset: int) -> None:
    """Puts a ruleset on this process and its descendants. ``no_new_privileges`` must come first."""
    kernel.syscall("landlock", _RESTRICT_SELF, ruleset, ctypes.c_ulong(0))
