"""A seccomp filter: the system calls that a program may not make, as the kernel's instructions.

A filter cannot follow pointers, so it cannot decide which file may be opened: namespaces and Landlock do.
The filter keeps a program to one process and isolates this process. It refuses child processes, other
programs, sockets, signals to other processes, access to other processes, memory outside the limits, and
changes of a file's owner, mode or times. A refused call fails with EPERM, which Python raises as
PermissionError.
"""

from __future__ import annotations

import errno
import struct

from . import kernel

# name: (x86_64, the table that newer architectures share), None where a table has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # Processes. A thread is a clone with CLONE_THREAD: see below.
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    # Sockets. socketpair stays possible: such a pair can reach nothing else.
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # Other processes: signals, tracing, priorities. For kill and tgkill to oneself, see below.
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Objects that outlive a process, and memory that its limit does not count.
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Landlock does not cover a file's mode, owner, attributes and times, its truncation by name, and watches.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "truncate": (76, 45),
    "open_by_handle_at": (304, 265),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    # The kernel's own machinery.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}

# These fail as unknown calls, so callers fall back to calls that a filter can read.
_UNKNOWN = {"clone3": (435, 435), "openat2": (437, 437)}
# The last number of both tables when this was written. The filter refuses all newer calls, and those of x32,
# the second numbering of x86-64.
_LAST = 448

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}

_CLONE_THREAD = 0x00010000
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_AF_UNIX = 1
# The standard library's ioctls: whether a file is a terminal, its size, the bytes to read, and the flags for
# inheritance and blocking.
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# Signals to a process when a file is ready (F_SETOWN, F_SETSIG, F_SETOWN_EX), leases and directory watches.
_FCNTLS = (8, 10, 15, 1024, 1026)

_LOAD, _AND, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def _instruction(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _error(code: int) -> bytes:
    return _instruction(_RETURN, _ERROR | code)


_PASS = _instruction(_RETURN, _ALLOW)
_REFUSE = _error(errno.EPERM)


def _argument(index: int, high: bool = False) -> bytes:
    """Loads one half of an argument, by default the lower one. All the tables' machines are little-endian."""
    return _instruction(_LOAD, 16 + 8 * index + 4 * high)


def _only(index: int, values: tuple[int, ...], otherwise: bytes = _REFUSE) -> bytes:
    """Allows the call if an argument is one of these."""
    tests = b"".join(_instruction(_EQUAL, value, false=1) + _PASS for value in values)
    return _argument(index) + tests + otherwise


def _never(index: int, values: tuple[int, ...]) -> bytes:
    """Refuses the call if an argument is one of these."""
    tests = b"".join(_instruction(_EQUAL, value, false=1) + _REFUSE for value in values)
    return _argument(index) + tests + _PASS


def _no_truncation_when_reading(index: int) -> bytes:
    """Refuses O_TRUNC on a file opened for reading, which early versions of Landlock allow."""
    return (
        _argument(index)
        + _instruction(_ANY_BIT, _O_TRUNC, false=3)
        + _instruction(_AND, _O_ACCMODE)
        + _instruction(_EQUAL, 0, false=1)
        + _REFUSE
        + _PASS
    )


class Filter:
    """The filter's instructions, complete except for the program's process id.

    Raises:
        OSError: the tables lack this machine's system calls.
    """

    def __init__(self) -> None:
        column, machine = kernel.table(), kernel.machine()
        if column is None:
            raise OSError(f"seccomp filter: no table of system calls for the machine {machine!r}")
        self._column = column
        thread = _argument(0) + _instruction(_ANY_BIT, _CLONE_THREAD, false=1) + _PASS + _REFUSE
        nowhere = (
            _argument(4) + _instruction(_EQUAL, 0, true=1) + _REFUSE
            + _argument(4, high=True) + _instruction(_EQUAL, 0, true=1) + _REFUSE + _PASS
        )  # fmt: skip
        judged: dict[tuple[int | None, int | None], bytes] = {
            (56, 220): thread,  # clone
            (44, 206): nowhere,  # sendto, with an address
            (53, 199): _only(0, (_AF_UNIX,)),  # socketpair
            (16, 29): _only(1, _IOCTLS, _error(errno.ENOTTY)),  # ioctl
            (72, 25): _never(1, _FCNTLS),  # fcntl
            (257, 56): _no_truncation_when_reading(2),  # openat
            (2, None): _no_truncation_when_reading(1),  # open
        }
        judged.update(dict.fromkeys(_REFUSED.values(), _REFUSE))
        judged.update(dict.fromkeys(_UNKNOWN.values(), _error(errno.ENOSYS)))
        self._head = b"".join(
            [
                _instruction(_LOAD, 4),
                _instruction(_EQUAL, _AUDIT_ARCH[machine], true=1),
                _instruction(_RETURN, _KILL),  # another architecture's numbers
                _instruction(_LOAD, 0),
                _instruction(_GREATER, _LAST, false=1),
                _error(errno.ENOSYS),
                *(self._when(numbers, block) for numbers, block in judged.items()),
            ]
        )

    def _when(self, numbers: tuple[int | None, int | None], block: bytes) -> bytes:
        """Returns the block, guarded by the call's number."""
        number = numbers[self._column]
        return b"" if number is None else _instruction(_EQUAL, number, false=len(block) // 8) + block

    def instructions(self, pid: int) -> bytes:
        """Returns the instructions for the process ``pid``, eight bytes per instruction."""
        return b"".join(
            [
                self._head,
                self._when((62, 129), _only(0, (pid, 0))),  # kill
                self._when((234, 131), _only(0, (pid,))),  # tgkill
                self._when((302, 261), _only(0, (0, pid))),  # prlimit64
                _PASS,
            ]
        )
