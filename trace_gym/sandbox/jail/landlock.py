"""Landlock: rules that a process sets for itself, for good, on the files it may open (Linux 5.13 on).

Landlock covers opening, reading, writing, making, renaming and removing files. It does not cover ``stat``,
``access`` and ``chdir``, so a program can find out that a file exists and how large it is.
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_VERSION, _PATH_BENEATH = 1, 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Rights by Landlock's version: thirteen at first, then moves between directories, truncation by name, and
# commands to devices.
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}

HIDDEN = ("site-packages", "dist-packages")
"""Directories below the standard library that may be listed, but not read."""


def _add(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:  # a dangling link
        return
    try:
        rule = struct.pack("=Qi", rights, file)
        zero = ctypes.c_ulong(0)
        kernel.syscall(f"landlock rule for {path}", _ADD_RULE, ruleset, _PATH_BENEATH, rule, zero)
    finally:
        os.close(file)


def make_ruleset(roots: Iterable[str], files: Iterable[str], devices: Iterable[str], own: str) -> int:
    """Returns a ruleset as a file descriptor.

    The ruleset lets a program read ``files`` and everything below ``roots``, read and write ``devices``, and
    do anything below the directory ``own``.

    Raises:
        OSError: the kernel has no Landlock, or Landlock is off.
    """
    zero = ctypes.c_ulong(0)
    version = kernel.syscall("landlock", _CREATE, None, zero, ctypes.c_ulong(_VERSION))
    handled = sum(right for since, right in _RIGHTS.items() if since <= version)
    attributes = struct.pack("=Q", handled)
    ruleset = kernel.syscall("landlock ruleset", _CREATE, attributes, ctypes.c_ulong(len(attributes)), zero)
    os.set_inheritable(ruleset, False)
    for root in roots:
        if os.path.isdir(root):
            # A right covers everything below, so entries get it one by one, to leave some out.
            _add(ruleset, root, _READ_DIR)
            with os.scandir(root) as entries:
                for entry in entries:
                    if entry.name not in HIDDEN:
                        _add(ruleset, entry.path, _READ_FILE | (_READ_DIR if entry.is_dir() else 0))
        else:
            _add(ruleset, root, _READ_FILE)
    for path in files:
        _add(ruleset, path, _READ_FILE)
    for path in devices:
        _add(ruleset, path, _READ_FILE | _WRITE_FILE)
    _add(ruleset, own, handled)
    return ruleset


def restrict(ruleset: int) -> None:
    """Puts a ruleset on this process and its descendants. ``no_new_privileges`` must come first."""
    kernel.syscall("landlock", _RESTRICT_SELF, ruleset, ctypes.c_ulong(0))
