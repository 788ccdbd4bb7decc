"""A seccomp filter: the system calls that a program may make, as the kernel's instructions.

The filter is a list of what is allowed: the calls that programs were measured to make (see
``scripts/measure_system_calls.py``), their variants in other C libraries and on other architectures, and
calls of the standard library that reach only a program's own files, pipes, memory, threads, signals and
clocks. All exist since Linux 5.3, so a program finds the same calls on every kernel:

- Other calls fail with ENOSYS, as on a kernel without them. So a C library falls back from newer calls to
  those on the list.
- Calls that the standard library makes when a program asks for them, as ``os.fork`` does, fail with EPERM,
  which Python raises as PermissionError.
- Calls of another architecture (``int 0x80`` on x86-64) kill the process, as a kernel without that
  architecture does. Those of x32, which have a number with bit 30, fail with ENOSYS, as on a kernel without
  x32.

A filter cannot follow pointers, so it cannot decide which file may be opened: the mount namespace does.
"""

from __future__ import annotations

import errno
import struct

from . import kernel

PROGRAM = 2
"""The program's process id in its namespace; the keeper has 1."""

Numbers = tuple["int | None", "int | None"]
"""A call's number on x86-64, and in the table that newer architectures share; None if there is none."""

ALLOWED: dict[str, Numbers] = {
    # Files that are open.
    "read": (0, 63), "readv": (19, 65), "pread64": (17, 67), "preadv": (295, 69),
    "write": (1, 64), "writev": (20, 66), "pwrite64": (18, 68), "pwritev": (296, 70),
    "lseek": (8, 62), "close": (3, 57), "fstat": (5, 80), "ftruncate": (77, 46),
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    # Files by name. Only those of the program's own file system exist.
    "open": (2, None), "openat": (257, 56), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "access": (21, None), "faccessat": (269, 48), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents": (78, None), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49),
    "fchdir": (81, 50), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None),
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None),
    "symlinkat": (266, 36), "umask": (95, 166),
    # Memory.
    "brk": (12, 214), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216),
    # Threads.
    "rseq": (334, 293), "set_robust_list": (273, 99), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "gettid": (186, 178), "exit": (60, 93), "exit_group": (231, 94),
    # Signals to itself.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128), "pause": (34, None), "alarm": (37, None),
    "getitimer": (36, 102), "setitimer": (38, 103),
    # Time.
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None),
    "getrusage": (98, 165),
    # Waiting.
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21),
    "epoll_wait": (232, None), "epoll_pwait": (281, 22), "eventfd2": (290, 19), "wait4": (61, 260),
    # Facts about itself, and random bytes.
    "getpid": (39, 172), "getppid": (110, 173), "getpgrp": (111, None), "getpgid": (121, 155),
    "getsid": (124, 156), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getresuid": (118, 148), "getresgid": (120, 150), "getgroups": (115, 158),
    "getrlimit": (97, 163), "setrlimit": (160, 164), "uname": (63, 160), "getrandom": (318, 278),
    # Pairs of sockets, which can reach nothing else.
    "recvfrom": (45, 207), "recvmsg": (47, 212), "shutdown": (48, 210), "getsockname": (51, 204),
    "getpeername": (52, 205), "getsockopt": (55, 209),
}  # fmt: skip
"""Calls that are allowed with any arguments."""

REFUSED: dict[str, Numbers] = {
    # Processes and programs. A thread is a clone with CLONE_THREAD: see JUDGED.
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    # Sockets.
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "sendmsg": (46, 211), "sendmmsg": (307, 269), "setsockopt": (54, 208),
    # Other processes.
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "ptrace": (101, 117), "setpriority": (141, 140), "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "unshare": (272, 97),
    "setns": (308, 268), "chroot": (161, 51),
    # Memory that its limit does not count: the program's own pages in pipes, and files without a name.
    "splice": (275, 76), "tee": (276, 77), "vmsplice": (278, 75), "sendfile": (40, 71),
    "memfd_create": (319, 279),
    # The ticks since the machine started, in every time namespace: see clocks.
    "times": (100, 153),
    # A file's mode, owner, attributes and times, truncation by name, special files, locks that other
    # programs and the machine would see, and facts about the machine's disks.
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, None), "utimes": (235, None), "utimensat": (280, 88), "futimesat": (261, None),
    "truncate": (76, 45), "mknod": (133, None), "mknodat": (259, 33), "flock": (73, 32),
    "statfs": (137, 43), "fstatfs": (138, 44),
}  # fmt: skip
"""Calls that fail with EPERM, because the standard library makes them when a program asks for them."""

JUDGED: dict[str, Numbers] = {
    "clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261),
    "prctl": (157, 167), "sendto": (44, 206), "socketpair": (53, 199), "ioctl": (16, 29), "fcntl": (72, 25),
    "futex": (202, 98), "madvise": (28, 233), "mmap": (9, 222), "fsync": (74, 82), "fdatasync": (75, 83),
    "msync": (26, 227),
}  # fmt: skip
"""Calls with verdicts of their own, most by their arguments; see ``_judgements``."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}

_CLONE_THREAD = 0x00010000
_NO_THREAD = ~0x017D0F00 & 0xFFFFFFFF  # every flag but those with which C libraries start a thread
_AF_UNIX = 1
# The standard library's ioctls: whether a file is a terminal, its size, the bytes to read, and the flags for
# inheritance and blocking.
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Copies of a descriptor, its flags, the file's flags, and a pipe's size. So no locks, leases, watches and
# signals when a file is ready, and no larger pipes.
_FCNTLS = (0, 1, 2, 3, 4, 1030, 1032)
# Wait, wake and requeue, none with priorities. Only waits may be shared, as for a thread's end, which the
# kernel tells: a shared wake in a page of a library would reach other programs.
_PRIVATE, _BY_WALL_CLOCK = 128, 256
_FUTEXES = (0, 9, *(_PRIVATE | operation for operation in (0, 1, 3, 4, 5, 9, 10)))
_ADVICE = (0, 1, 2, 3, 4, 8)  # order of access, and pages that are no longer needed
_NAMES = (15, 16)  # PR_SET_NAME and PR_GET_NAME, for a thread's name
_MAP_HUGETLB = 0x40000  # pages of a pool that all processes share
_SHARED_ANONYMOUS = 0x21  # pages of a file in memory, which stay beyond the limit when the mapping shrinks

_LOAD, _AND, _JUMP, _EQUAL, _NOT_LESS, _ANY_BIT, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def _instruction(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _error(code: int) -> bytes:
    return _instruction(_RETURN, _ERROR | code)


_PASS = _instruction(_RETURN, _ALLOW)
_REFUSE = _error(errno.EPERM)
_UNKNOWN = _error(errno.ENOSYS)


def _argument(index: int, high: bool = False) -> bytes:
    """Loads one half of an argument, by default the lower one. All the tables' machines are little-endian."""
    return _instruction(_LOAD, 16 + 8 * index + 4 * high)


def _only(index: int, values: tuple[int, ...], otherwise: bytes = _REFUSE, ignoring: int = 0) -> bytes:
    """Allows the call if an argument, without the bits of ``ignoring``, is one of these."""
    mask = _instruction(_AND, ~ignoring & 0xFFFFFFFF) if ignoring else b""
    tests = b"".join(_instruction(_EQUAL, value, false=1) + _PASS for value in values)
    return _argument(index) + mask + tests + otherwise


def _judgements() -> dict[str, bytes]:
    """Returns the instructions for each call of ``JUDGED``."""
    # A program's own files are in memory, where these three do nothing. For the standard library's files they
    # would make the machine write its disk.
    done = _error(0)
    return {
        "fsync": done,
        "fdatasync": done,
        "msync": done,
        "clone": _argument(0) + _instruction(_ANY_BIT, _NO_THREAD, false=1) + _REFUSE
        + _instruction(_ANY_BIT, _CLONE_THREAD, false=1) + _PASS + _REFUSE,
        "kill": _only(0, (PROGRAM, 0)),  # 0: its process group, which has no other process
        "tgkill": _only(0, (PROGRAM,)),
        "prlimit64": _only(0, (0, PROGRAM)),
        "prctl": _only(0, _NAMES, _error(errno.EINVAL)),
        "sendto": _argument(4) + _instruction(_EQUAL, 0, true=1) + _REFUSE  # without an address
        + _argument(4, high=True) + _instruction(_EQUAL, 0, true=1) + _REFUSE + _PASS,
        "socketpair": _only(0, (_AF_UNIX,)),
        "ioctl": _only(1, _IOCTLS, _error(errno.ENOTTY)),
        "fcntl": _only(1, _FCNTLS),
        "futex": _only(1, _FUTEXES, _UNKNOWN, ignoring=_BY_WALL_CLOCK),
        "madvise": _only(2, _ADVICE, _error(errno.EINVAL)),
        "mmap": _argument(3) + _instruction(_ANY_BIT, _MAP_HUGETLB, false=1) + _error(errno.ENOMEM)
        + _instruction(_AND, _SHARED_ANONYMOUS) + _instruction(_EQUAL, _SHARED_ANONYMOUS, false=1)
        + _REFUSE + _PASS,
    }  # fmt: skip


def _search(leaves: list[tuple[int, bytes]]) -> bytes:
    """Returns a binary search for the loaded number; each leaf has its first number and its instructions.

    The kernel runs a new filter once for every number, so a search is faster than a list of comparisons.
    """
    if len(leaves) == 1:
        return leaves[0][1]
    middle = len(leaves) // 2
    low, high = _search(leaves[:middle]), _search(leaves[middle:])
    jump = _instruction(_JUMP, len(low) // 8)
    return _instruction(_NOT_LESS, leaves[middle][0], false=1) + jump + low + high


def make_filter() -> bytes:
    """Returns the filter's instructions, eight bytes each.

    Raises:
        OSError: the tables lack this machine's system calls.
    """
    column, machine = kernel.table(), kernel.machine()
    if column is None:
        raise OSError(f"seccomp filter: no table of system calls for the machine {machine!r}")
    blocks = dict.fromkeys(ALLOWED, _PASS) | dict.fromkeys(REFUSED, _REFUSE) | _judgements()
    numbers = {**ALLOWED, **REFUSED, **JUDGED}
    by_number = {
        number: block for name, block in blocks.items() if (number := numbers[name][column]) is not None
    }
    leaves = [(0, by_number.get(0, _UNKNOWN))]
    for number in sorted({*by_number, *(number + 1 for number in by_number)} - {0}):
        block = by_number.get(number, _UNKNOWN)
        if block != leaves[-1][1]:
            leaves.append((number, block))
    return b"".join(
        [
            _instruction(_LOAD, 4),
            _instruction(_EQUAL, _AUDIT_ARCH[machine], true=1),
            _instruction(_RETURN, _KILL),
            _instruction(_LOAD, 0),
            _search(leaves),
        ]
    )
