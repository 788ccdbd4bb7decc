"""The host's side of a worker: its interpreter, its programs' user ids, its start and its end."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from task_gym.errors import SandboxError

from . import cgroups
from .jail.sweep import empty
from .jail.wire import FAILED, LARGEST, MAPPED, READY, SHORT, STOP, UNSHARED, Caps, Setting

_START_SECONDS = 30.0
END_SECONDS = 5.0
"""Time for a worker to end, in seconds. After it, it is killed."""

_CODE = "import sys; sys.path.insert(0, {path!r}); from jail.worker import main; del sys.path[0]; main()"

FLAGS = ("-S", "-s", "-P", "-X", "utf8")
"""No packages, no user's packages, no script's path, UTF-8. ``-I`` and ``-E`` would ignore the hash seed."""

JAIL = Path(__file__).parent / "jail"

INSIDE = 1000
"""The user id that a program at level "namespaces" sees."""


def executable() -> str:
    """Returns the interpreter's path. In a virtual environment, it is the base interpreter's path.

    Raises:
        SandboxError: there is no such interpreter.
    """
    path: str = getattr(sys, "_base_executable", None) or sys.executable
    if not path or not os.access(path, os.X_OK):
        raise SandboxError(f"no interpreter to run programs with: {path!r} was found, allowed: its path")
    return os.path.realpath(path)


@functools.cache
def survey() -> dict[str, dict[str, str]]:
    """Returns the files that the interpreter needs: see ``jail/survey.py``, which runs in its own process."""
    command = [executable(), *FLAGS, str(JAIL / "survey.py")]
    done = subprocess.run(
        command, env={}, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60
    )
    if done.returncode != 0:
        raise SandboxError(f"the interpreter could not say which files it needs: {done.stderr.strip()}")
    needs: dict[str, dict[str, str]] = ast.literal_eval(done.stdout)
    return needs


def read_id_ranges() -> str:
    """Returns the user ids of this process's user namespace: lines of first, first outside, number."""
    return Path("/proc/self/uid_map").read_text()


def stranger(pid: int) -> int:
    """Returns a user id for the worker ``pid`` and its programs, without a name, files or other processes.

    Raises:
        SandboxError: this user namespace has no such id.
    """
    ranges = [(int(first), int(count)) for first, _, count in map(str.split, read_id_ranges().splitlines())]
    # Above all ids that distributions and containers hand out, or at least above ordinary users.
    for wanted in (0x70000000 + pid, 50_000 + pid % 10_000):
        if any(first <= wanted < first + count for first, count in ranges):
            return wanted
    raise SandboxError("running as root, and no user id is to be had for programs: allowed: one above 50000")


def map_user(pid: int) -> None:
    """Sets the user ids of the user namespace that the process ``pid`` has just made.

    If the caller is root, root stays root for the worker, and a program's user gets an unused id outside.
    Otherwise the namespace has only the caller's id.

    Raises:
        SandboxError: the kernel refuses.
    """
    if os.geteuid() == 0:
        other = stranger(pid)
        maps = {name: f"0 0 1\n{INSIDE} {other} 1\n" for name in ("uid_map", "gid_map")}
    else:
        maps = {
            "setgroups": "deny",
            "uid_map": f"{INSIDE} {os.geteuid()} 1\n",
            "gid_map": f"{INSIDE} {os.getegid()} 1\n",
        }
    for name, content in maps.items():
        try:
            Path(f"/proc/{pid}/{name}").write_text(content)
        except OSError as error:
            raise SandboxError(f"user ids of a namespace could not be set: {name}: {error}") from error


def choose_user(level: str, pid: int) -> int | None:
    """Returns the user id that the worker ``pid`` gives a program; None if the program keeps its own."""
    if os.geteuid() != 0:
        return None
    return INSIDE if level == "namespaces" else stranger(pid)


def _tasks() -> int:
    """Returns how many processes and threads this user has."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            text = path.read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if int(values["Uid"].split()[0]) == os.getuid():
            total += int(values["Threads"])
    return total


def process_limit(level: str, processes: int) -> int:
    """Returns the RLIMIT_NPROC that gives a program ``processes``: the kernel counts by user."""
    if os.geteuid() == 0:
        return processes
    release = tuple(
        int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2]
    )
    if level == "namespaces" and release >= (5, 14):  # which count each user namespace by itself
        return processes + 2  # the worker and the keeper
    return _tasks() + 2 + processes


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
        process.wait(END_SECONDS)
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
        self.level, self.is_free = level, True
        needs = survey()
        code = _CODE.format(path=str(JAIL.parent))
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
                    [executable(), *FLAGS, "-c", code, *map(str, handed)],
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
            user = choose_user(level, self._process.pid)
            if base and user is not None:
                os.chmod(base, 0o711)  # the program's directory is below it
            self._begin(Setting(level, needs["roots"], needs["files"], base, user))
        except BaseException:
            self.close()
            raise

    def _begin(self, setting: Setting) -> None:
        try:
            self._control.settimeout(_START_SECONDS)
            self._control.send(setting.pack())
            word, detail = self.reply()
            if word == UNSHARED:
                map_user(self._process.pid)
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
            _, errors = self._process.communicate(timeout=END_SECONDS)
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
