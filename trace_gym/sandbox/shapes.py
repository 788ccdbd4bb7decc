"""The data that go into the sandbox and come out of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from task_gym.errors import ArgumentError

LEVELS = ("namespaces", "limits")
"""The level that protects, and the one that does not; the package's docstring describes them."""

Status = Literal["ok", "error", "timeout", "killed", "output_limit"]

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The limits of one program.

    Attributes:
        cpu_seconds: Processor time in whole seconds; one more if the program ignores SIGXCPU. Then:
            "timeout".
        wall_seconds: Wall time in seconds, from the program's start. Then: "timeout".
        memory: Bytes of address space, with the interpreter's own (some 30 MiB). Then: MemoryError. In a
            control group the kernel's memory for the program counts too, 64 MiB above this. Then: "killed".
        output: Bytes of standard output, and as many of standard error. Then: "output_limit".
        file_size: Bytes per file; at level "namespaces" also of all files together. Then: OSError.
        processes: Processes and threads at a time. Then: "can't start new thread", or OSError.
        open_files: File descriptors at a time. Then: OSError.
    """

    cpu_seconds: int = 5
    wall_seconds: float = 10.0
    memory: int = 512 * MIB
    output: int = 64 * 1024
    file_size: int = 4 * MIB
    processes: int = 8
    open_files: int = 32

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds = (int, float) if field.name == "wall_seconds" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < 2**62:
                wanted = "a positive number" if float in kinds else "a positive integer"
                raise ArgumentError(f"Limits: {field.name}={value!r} was given, allowed: {wanted}")


class Job(NamedTuple):
    """A program to run, its standard input, and its hash seed (None: the sandbox's first)."""

    program: str
    stdin: str = ""
    hash_seed: int | None = None


@dataclass(frozen=True)
class Result:
    """The result of a program.

    Attributes:
        status: "ok" (exit code 0), "error" (another exit code: an exception, a syntax error, MemoryError,
            sys.exit), "timeout" (wall or processor time), "killed" (by a signal: the interpreter crashed, or
            the program caused it) or "output_limit" (too much on either stream).
        stdout: Standard output, at most ``Limits.output`` bytes, read as UTF-8. Other bytes become U+FFFD.
        stderr: Standard error, in the same way.
        seconds: Wall time in seconds.
        level: The protection in force, one of ``LEVELS``.
    """

    status: Status
    stdout: str
    stderr: str
    seconds: float
    level: str
