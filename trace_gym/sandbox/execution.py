"""One program's execution on a worker: streams, clock and result."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import time
from collections.abc import Sequence

from task_gym.errors import SandboxError

from .jail.wire import CLEAN, ENDED, FAILED, Caps
from .shapes import Limits, Result, Status
from .worker import Worker, process_limit

GRACE_SECONDS = 5.0
"""Time for a worker to end a program, in seconds. After it, the worker is killed."""

SWEEP_SECONDS = 60.0
"""Time for a worker to remove the files of a program, in seconds. No program's clock runs meanwhile."""

_CHUNK = 1 << 16


def _seal(name: str, text: str) -> int:
    """Returns a file in memory with this text, which nobody can change."""
    import fcntl  # here, because the rest of this package also imports on systems other than Linux

    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    data = memoryview(text.encode("utf-8", "surrogatepass"))
    while data:
        data = data[os.write(file, data) :]
    os.lseek(file, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return file


class Execution:
    """A program that was handed to a worker.

    Attributes:
        deadline: The time of the next ``check_clock``, by ``time.perf_counter``.
        done: Whether the program has ended and its files are removed, or the worker is gone.
        lost: Whether the worker died before the program began.

    Raises:
        OSError: the worker is gone, and nothing ran.
    """

    def __init__(self, worker: Worker, program: str, stdin: str, limits: Limits) -> None:
        self.worker, self._limits = worker, limits
        caps = Caps(
            limits.cpu_seconds,
            limits.memory,
            limits.file_size,
            process_limit(worker.level, limits.processes),
            limits.open_files,
        )
        self._streams: dict[int, bytearray] = {}
        handed: list[int] = []
        try:
            handed.append(_seal("program", program))
            handed.append(_seal("stdin", stdin))
            for _ in range(2):
                here, there = os.pipe()
                self._streams[here] = bytearray()
                handed.append(there)
                os.set_blocking(here, False)
            self._open = set(self._streams)
            self._begun = time.perf_counter()
            worker.is_free = False
            worker.submit(caps, handed)
        except BaseException:
            self._close()
            raise
        finally:
            for file in handed:
                os.close(file)
        self.deadline = self._begun + limits.wall_seconds
        self._seconds = 0.0
        self._stopped: Status | None = None
        self._code: int | None = None
        self._failure = ""
        self._ended = False  # the program has; then its files are removed, and all is done
        self.done = False
        self.lost = False

    # -- while it runs -------------------------------------------------------------------------------------

    @property
    def waits_for(self) -> list[int]:
        """File descriptors to poll."""
        return [self.worker.fileno(), *self._open]

    def handle(self, file: int) -> None:
        """Handles an event on a file descriptor."""
        if self.done:
            return
        if file in self._open:
            self._read(file)
        elif file == self.worker.fileno():
            self._hear()

    def _hear(self) -> None:
        try:
            word, detail = self.worker.reply()
        except ConnectionError:
            word, detail = "", ""
        if self._ended:  # it is clean, or the worker is gone
            self.done, self.worker.is_free = True, word == CLEAN
            return
        if word == ENDED:
            code, cpu = detail.split()
            self._code = int(code)
            # A program can send itself this signal. The kernel counts in ticks: its second may be 0.8 here.
            least = {-signal.SIGXCPU: self._limits.cpu_seconds / 2, -signal.SIGKILL: self._limits.cpu_seconds}
            if float(cpu) > least.get(self._code, math.inf):
                self._stopped = self._stopped or "timeout"
        elif word == FAILED:
            self._failure = detail
        else:
            self.lost = not self.worker.begun() and self._stopped is None
        self._end()
        self.done = word not in (ENDED, FAILED)

    def check_clock(self) -> None:
        """Stops a program that runs for too long, and then a worker that does not end it."""
        if self.done or time.perf_counter() < self.deadline:
            return
        if self._stopped is None and not self._ended:
            self.stop("timeout")
        else:
            self.worker.kill()
            self._finish()

    def _read(self, file: int) -> None:
        stream = self._streams[file]
        room = self._limits.output - len(stream)
        try:
            chunk = os.read(file, min(_CHUNK, room + 1))
        except BlockingIOError:
            return
        stream += chunk[:room]
        if len(chunk) > room:
            self.stop("output_limit")
        if not chunk or len(chunk) > room:
            self._open.discard(file)

    def stop(self, status: Status) -> None:
        """Ends the program with this status, and keeps the worker."""
        if self._stopped is None:
            self._stopped = status
            if not self._ended:
                self.deadline = time.perf_counter() + GRACE_SECONDS
                with contextlib.suppress(ConnectionError):  # the worker is gone, and its reply says so
                    self.worker.stop()

    # -- when it has ended ---------------------------------------------------------------------------------

    def _end(self) -> None:
        now = time.perf_counter()
        self._seconds, self.deadline = now - self._begun, now + SWEEP_SECONDS
        self._ended = True
        # Nothing writes any more. A process forked meanwhile may still have a copy of the pipe's other end,
        # so we do not wait for the end of the file.
        for file in list(self._open):
            before = -1
            while file in self._open and before != len(self._streams[file]):
                before = len(self._streams[file])
                self._read(file)
        self._close()

    def _close(self) -> None:
        for file in self._streams:
            os.close(file)
        self._open = set()

    def _finish(self) -> None:
        """Notes that the worker is gone."""
        if not self._ended:
            self._end()
        self.done = True

    def abandon(self) -> None:
        """Ends the program and its worker.

        The worker is asked first, because at level "limits" only it finds all of the program's processes.
        """
        if not self.done:
            self.worker.close()
            self._finish()

    def result(self) -> Result:
        """Returns how the program ended.

        Raises:
            SandboxError: the program could not begin with the level's protection in force.
        """
        if self.lost:
            raise SandboxError(f"a worker at level {self.worker.level!r} died before it could run a program")
        if self._failure:
            raise SandboxError(
                f"a program could not be locked up at level {self.worker.level!r}: {self._failure}"
            )
        status: Status
        if self._stopped is not None:
            status = self._stopped
        elif self._code is None or self._code < 0:
            status = "killed"
        else:
            status = "ok" if self._code == 0 else "error"
        stdout, stderr = (stream.decode("utf-8", "replace") for stream in self._streams.values())
        return Result(status, stdout, stderr, self._seconds, self.worker.level)


def wait(executions: Sequence[Execution]) -> None:
    """Drives these executions until at least one has ended."""
    while not any(execution.done for execution in executions):
        poll = select.poll()
        owners = {file: execution for execution in executions for file in execution.waits_for}
        for file in owners:
            poll.register(file, select.POLLIN)
        left = min(execution.deadline for execution in executions) - time.perf_counter()
        for file, _ in poll.poll(max(0, math.ceil(left * 1000))):
            owners[file].handle(file)
        for execution in executions:
            execution.check_clock()
