"""System calls that Python 3.11 has no function for. Each raises OSError with the name of the failed call."""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
# The same library with the interpreter's lock held during calls, for clone_process.
_locked = ctypes.PyDLL(None, use_errno=True)

CLONE_NEWTIME = 0x00000080
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC = 1024, 2048, 4096, 16384
MS_PRIVATE, MS_RELATIME = 1 << 18, 1 << 21
MNT_DETACH = 2

CAP_DAC_READ_SEARCH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS = 1, 4, 8
_PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 22, 36, 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_SIGCHLD, _SIGKILL = 17, 9

# name: (x86_64, the table that newer architectures share)
_NUMBERS = {"pivot_root": (155, 41), "clone": (56, 220)}
_MACHINES = {"x86_64": 0, "aarch64": 1, "riscv64": 1}


def machine() -> str:
    """Returns the kernel's name of the architecture."""
    return os.uname().machine


def table() -> int | None:
    """Returns this machine's column in the tables of system call numbers; None if there is none."""
    if sys.maxsize < 2**32 or sys.byteorder != "little":
        return None
    return _MACHINES.get(machine())


def _number(name: str) -> int:
    column = table()
    if column is None:
        raise OSError(f"{name}: no table of system calls for the machine {machine()!r}")
    return _NUMBERS[name][column]


def _check(name: str, result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(name: str, number: int, *arguments: Any) -> int:
    """Makes a system call by its number and returns its result."""
    return _check(name, int(_libc.syscall(ctypes.c_long(number), *arguments)))


def clone_process(flags: int) -> int:
    """Forks into new namespaces. Returns 0 in the child and the child's id in the parent, as ``os.fork``.

    The C library does not know of the child, so the child must only fork and wait. ``unshare`` and a fork are
    no alternative: a process may change its children's process namespace only once.
    """
    number = _number("clone")
    zero = ctypes.c_long(0)
    ctypes.pythonapi.PyOS_BeforeFork()
    try:
        pid = int(
            _locked.syscall(ctypes.c_long(number), ctypes.c_long(flags | _SIGCHLD), zero, zero, zero, zero)
        )
        code = ctypes.get_errno()
    finally:
        # os.fork() makes the same calls in the parent and in the child.
        (ctypes.pythonapi.PyOS_AfterFork_Parent if pid else ctypes.pythonapi.PyOS_AfterFork_Child)()
    if pid < 0:
        raise OSError(code, f"clone: {os.strerror(code)}")
    return pid


def unshare(flags: int) -> None:
    _check("unshare", _libc.unshare(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _check(f"mount on {target}", result)


def unmount(target: str) -> None:
    """Detaches a mount and all mounts below it."""
    _check(f"umount {target}", _libc.umount2(os.fsencode(target), MNT_DETACH))


def pivot_root(new: str, old: str) -> None:
    syscall("pivot_root", _number("pivot_root"), os.fsencode(new), os.fsencode(old))


def set_host_name(name: str) -> None:
    _check("sethostname", _libc.sethostname(name.encode(), ctypes.c_size_t(len(name))))


def _prctl(name: str, option: int, *arguments: Any) -> None:
    padded = [*arguments, *[ctypes.c_ulong(0)] * (4 - len(arguments))]
    _check(name, _libc.prctl(option, *padded))


def no_new_privileges() -> None:
    """Bars this process, and programs that it executes, from new privileges."""
    _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))


def not_dumpable() -> None:
    """Bars core files, and bars the user's other processes from tracing this one or reading its memory."""
    _prctl("dumpable", _PR_SET_DUMPABLE, ctypes.c_ulong(0))


def die_with_parent() -> None:
    _prctl("parent death signal", _PR_SET_PDEATHSIG, ctypes.c_ulong(_SIGKILL))


def adopt_orphans() -> None:
    """Makes orphaned descendants children of this process, not of init."""
    _prctl("child subreaper", _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def keep_capabilities() -> None:
    """Keeps the permitted capabilities at the next change of user id."""
    _prctl("keepcaps", _PR_SET_KEEPCAPS, ctypes.c_ulong(1))


# Made once: a new array type costs more than the call.
_Header, _Data = ctypes.c_uint32 * 2, ctypes.c_uint32 * 6


def set_capabilities(*capabilities: int) -> None:
    """Sets the effective and permitted capabilities to only these."""
    mask = sum(1 << capability for capability in capabilities)
    header = _Header(_CAPABILITY_VERSION_3, 0)
    data = _Data(mask, mask, 0, 0, 0, 0)
    _check("capset", _libc.capset(ctypes.byref(header), ctypes.byref(data)))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(instructions: bytes) -> None:
    """Puts a seccomp filter on this thread, for good. ``filter.make_filter`` returns the instructions."""
    program = _Program(len(instructions) // 8, instructions)
    mode = ctypes.c_ulong(_SECCOMP_MODE_FILTER)
    _prctl("seccomp filter", _PR_SET_SECCOMP, mode, ctypes.byref(program))
