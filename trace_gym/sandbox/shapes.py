"""What goes into the sandbox and what comes out of it, as small data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

from task_gym.errors import ArgumentError

LEVELS = ("namespaces", "landlock", "seccomp", "rlimits")
"""From the strongest to the weakest; the package's docstring says what each promises."""

Status = Literal["ok", "error", "timeout", "killed", "output_limit"]

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    cpu_seconds: processor time, whole seconds, and one more for who ignores SIGXCPU. Past it: `timeout`.
    wall_seconds: time by the clock, starting with the program. Past it: `timeout`.
    memory: bytes of address space, the interpreter's own (some 30 MiB) included. Past it: MemoryError.
    output: bytes of standard output, and as many of standard error. Past it: `output_limit`.
    file_size: bytes in a file; at level "namespaces" also in all of its files together. Past it: OSError.
    processes: processes and threads at a time. Past it: "can't start new thread", or OSError.
    open_files: file descriptors at a time. Past it: OSError.
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
    """A program to run, what it reads, and the hash seed to run it under (None: the sandbox's first)."""

    program: str
    stdin: str = ""
    hash_seed: int | None = None


@dataclass(frozen=True)
class Result:
    """How a program ended.

    status: `ok` (exit code 0), `error` (another exit code: an exception, a syntax error, MemoryError,
        sys.exit), `timeout` (by the clock or by processor time), `killed` (by a signal: the interpreter
        crashed, or the program saw to it) or `output_limit` (wrote more than allowed, on either stream).
    stdout, stderr: what it wrote, at most `Limits.output` bytes of each, as UTF-8; what is none is U+FFFD.
    seconds: by the clock.
    level: the protection that was in force, one of LEVELS.
    """

    status: Status
    stdout: str
    stderr: str
    seconds: float
    level: str
