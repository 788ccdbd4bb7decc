"""The host's side of a worker: starts it, hands it programs, ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import weakref

from task_gym.errors import SandboxError

from . import cgroups, interpreter, users
from .jail.sweep_files import empty
from .jail.wire import FAILED, LARGEST, MAPPED, READY, SHORT, STOP, UNSHARED, Caps, Setting

_START_SECONDS = 30.0
_END_SECONDS = 5.0

_CODE = "import sys; sys.path.insert(0, {path!r}); from jail.worker import main; del sys.path[0]; main()"


def _end(
    owner: int,
    process: subprocess.Popen[bytes],
    control: socket.socket,
    begun: int,
    base: str,
    groups: list[cgroups.Group],
) -> None:
    """Ends a worker. It exits when its socket closes; otherwise it is killed."""
    control.close()
    os.close(begun)
    if os.getpid() != owner:
        process.returncode = 0  # another process's child: no wait and no warning
        return
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stderr is not None:
        process.stderr.close()
    for group in groups:
        group.close()
    if base and os.path.exists(base):  # the worker was killed
        with contextlib.suppress(OSError):  # a program may have put something else there
            empty(base)
            os.rmdir(base)


class BusyError(SandboxError):
    """A worker that did not start because the machine is busy, which says nothing about its levels."""


class Worker:
    """A process that runs programs one at a time, at one level and under one hash seed.

    Attributes:
        is_free: Whether it is ready for a program: the last one has ended, and nothing of it is left.

    Raises:
        SandboxError: the process does not start.
        BusyError: it was not ready in time, was killed, or the machine is short of something.
    """

    def __init__(self, level: str, hash_seed: int) -> None:
        self.level, self.hash_seed = level, hash_seed
        self.is_free = True
        found = interpreter.survey()
        code = _CODE.format(path=str(interpreter.JAIL.parent))
        with contextlib.ExitStack() as undo:
            self._control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.callback(self._control.close)
            self._begun = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            undo.callback(os.close, self._begun)
            base = ""
            if level != "namespaces":
                base = tempfile.mkdtemp(prefix="trace-")
                undo.callback(os.rmdir, base)
            with there:
                handed = (there.fileno(), self._begun)
                self._process = subprocess.Popen(
                    [interpreter.executable(), *interpreter.FLAGS, "-c", code, *map(str, handed)],
                    env={"PYTHONHASHSEED": str(hash_seed)},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=handed,
                    start_new_session=True,
                )
            undo.pop_all()
        self._groups: list[cgroups.Group] = []
        self._finalizer = weakref.finalize(
            self, _end, os.getpid(), self._process, self._control, self._begun, base, self._groups
        )
        try:
            if level == "namespaces":
                with contextlib.suppress(OSError):  # no part of the level's promise: see cgroups
                    self._groups.append(cgroups.Group(self._process.pid))
            user = users.turned_into(level, self._process.pid)
            if base and user is not None:
                os.chmod(base, 0o711)  # the program's directory is below it
            self._begin(Setting(level, found["roots"], found["files"], base, user))
        except BaseException:
            self.close()
            raise

    def _begin(self, setting: Setting) -> None:
        try:
            self._control.settimeout(_START_SECONDS)
            self._control.send(setting.pack())
            word, detail = self.reply()
            if word == UNSHARED:
                users.map_user(self._process.pid)
                self._control.send(MAPPED)
                word, detail = self.reply()
        except OSError as error:
            word, detail = SHORT, f"{type(error).__name__}: {error}"
        if word != READY:
            detail = detail if word else self._last_words()
            kind = SandboxError if word == FAILED else BusyError
            raise kind(f"a worker at level {self.level!r} did not start: {detail}")
        self._control.settimeout(None)
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _last_words(self) -> str:
        """Returns the last line of a failed worker's standard error."""
        self._control.close()
        try:
            _, errors = self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it did not answer"
        return (errors.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]

    def fileno(self) -> int:
        """Returns the file descriptor to poll for replies."""
        return self._control.fileno()

    @property
    def alive(self) -> bool:
        return self._finalizer.alive and self._process.poll() is None

    def submit(self, caps: Caps, files: list[int]) -> None:
        """Runs a program. ``files`` are its text and its three standard files. One reply follows."""
        self.begun()
        for group in self._groups:
            group.limit(caps.memory, caps.processes)
        socket.send_fds(self._control, [caps.pack()], files)

    def begun(self) -> bool:
        """Returns whether the worker has begun with the last program."""
        try:
            return os.eventfd_read(self._begun) > 0
        except BlockingIOError:
            return False

    def stop(self) -> None:
        """Ends the running program, if there is one. Its reply follows."""
        self._control.send(STOP)

    def reply(self) -> tuple[str, str]:
        """Returns the next reply as its first word and the rest; ("", "") if the worker is gone."""
        word, _, detail = self._control.recv(LARGEST).decode(errors="replace").partition(" ")
        return word, detail

    def close(self) -> None:
        """Ends the worker and its program. It may be called again."""
        self._finalizer()

    def kill(self) -> None:
        """Kills the worker."""
        if self._finalizer.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self.close()
