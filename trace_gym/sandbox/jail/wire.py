"""The messages between host and worker, over a socket that keeps messages apart.

The worker trusts the host's messages, so these use ``marshal``; both sides have the same version of it. The
host reads replies as plain words.
"""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

MAPPED = b"mapped"
"""From the host: the worker's user ids are set."""

STOP = b"stop"
"""From the host: end the running program. Between programs the message came too late and means nothing."""

UNSHARED, READY, ENDED, FAILED, CLEAN = "unshared", "ready", "ended", "failed", "clean"
"""From the worker: the first word of a reply. ENDED or FAILED answers each program. CLEAN follows when
nothing of the program is left.

An eventfd counts the programs that the worker has begun, because that wakes nobody.
"""

SHORT = "short"
"""From the worker, in place of READY: the machine is short of something, and may not be later."""

LARGEST = 1 << 17
"""Bytes per message, at most."""


class _Message:
    """A message with named values, those of its class's constructor."""

    def pack(self) -> bytes:
        return marshal.dumps(vars(self))

    @classmethod
    def unpack(cls, message: bytes) -> Self:
        return cls(**marshal.loads(message))


class Setting(_Message):
    """A worker's setting: the first message to it.

    Attributes:
        level: One of ``trace_gym.sandbox.LEVELS``.
        roots: The roots found by ``survey``.
        files: The files found by ``survey``.
        base: The directory above the programs' working directory; "" at level "namespaces".
        user: The programs' user id; None for the worker's own.
    """

    def __init__(
        self, level: str, roots: dict[str, str], files: dict[str, str], base: str, user: int | None
    ) -> None:
        self.level, self.roots, self.files, self.base, self.user = level, roots, files, base, user


class Caps(_Message):
    """One program's limits: the message that comes with its text and its three standard files.

    Attributes:
        cpu: Processor time in seconds.
        memory: Bytes of address space.
        file_size: Bytes per file.
        processes: Number of processes and threads.
        open_files: Number of open files.
    """

    def __init__(self, cpu: int, memory: int, file_size: int, processes: int, open_files: int) -> None:
        self.cpu, self.memory, self.file_size = cpu, memory, file_size
        self.processes, self.open_files = processes, open_files
