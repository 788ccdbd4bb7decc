"""The interface between the environments and a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

OBSERVATION_LENGTH = 1 << 20
"""The most characters that an observation may have."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A program to trace, with what it prints.

    Attributes:
        code: The program as it is shown, debug prints included.
        stdin: Its standard input.
        truth: Its standard output.
        family: The kind of builtin program; None if the source has no families.
        level: The level of a builtin program; None if the source has no levels.
        row: The row of the data set; None if there are no rows.
        replaced: Number of programs tried before this one and not admitted.
        sandbox: The protection in force when programs were run.
        false: False outputs, if they were asked for.
        mutation: If a mutant is shown in place of the source's program, its kind, one of
            ``trace_gym.mutants.mutate.KINDS``; else "".
    """

    code: str
    stdin: str
    truth: str
    family: str | None
    level: int | None
    row: int | None
    replaced: int
    sandbox: str
    false: tuple[str, ...] = ()
    mutation: str = ""


class TraceBackend(Protocol):
    """Turns task ids into traces.

    Environments share a backend. The same task id must give the same trace, because a copy of an environment
    plays its episode again.
    """

    @property
    def source(self) -> str:
        """The name that means the same programs everywhere, such as "hub@COMMIT". Copies use it."""

    def load(self, task_id: int) -> Trace:
        """Returns the trace of a task id.

        Raises:
            AdmissionError: no sound question can be asked about the task's programs.
            SourceError: the programs are not available.
            SandboxError: this machine does not have the protection that they need.
        """

    def close(self) -> None:
        """Ends the processes that run programs; they start again when needed."""
