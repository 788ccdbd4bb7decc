"""What the two sides say to each other, over a socket that keeps messages apart.

The worker trusts what it is told, so that may be in Python's own `marshal`, of which both sides have the same
version. The host reads replies as plain words.
"""

from __future__ import annotations

import marshal

MAPPED = b"mapped"
"""From the host: your user ids are set."""

STOP = b"stop"
"""From the host: end the program that is running. Between programs it means nothing: it came too late."""

UNSHARED, READY, ENDED, FAILED = "unshared", "ready", "ended", "failed"
"""From the worker, the first word of a reply. One of the last two answers each program.

That it has begun with a program is counted on an eventfd instead, which wakes nobody.
"""

LARGEST = 1 << 17
"""Bytes in a message at most."""


class Setting:
    """How a worker locks its programs up: the first message it gets.

    level: one of `trace_gym.sandbox.LEVELS`.
    roots, files: what `survey` found.
    base: the directory below which programs work; "" at level "namespaces".
    user: whom a program is turned into; None: it stays who the worker is.
    """

    def __init__(
        self, level: str, roots: dict[str, str], files: dict[str, str], base: str, user: int | None
    ) -> None:
        self.level, self.roots, self.files, self.base, self.user = level, roots, files, base, user

    def pack(self) -> bytes:
        return marshal.dumps(vars(self))

    @classmethod
    def unpack(cls, message: bytes) -> Setting:
        return cls(**marshal.loads(message))


class Caps:
    """One program's limits: the message that comes with its text and its three standard files.

    Seconds, bytes, bytes, a number of processes and threads (None: not limited), a number of files.
    """

    def __init__(self, cpu: int, memory: int, file_size: int, processes: int | None, open_files: int) -> None:
        self.cpu, self.memory, self.file_size = cpu, memory, file_size
        self.processes, self.open_files = processes, open_files

    def pack(self) -> bytes:
        return marshal.dumps(vars(self))

    @classmethod
    def unpack(cls, message: bytes) -> Caps:
        return cls(**marshal.loads(message))
