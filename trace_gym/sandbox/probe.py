"""The levels that this machine has: a trial program at each level tries what is forbidden there."""

from __future__ import annotations

import functools
import os
import sys
import tempfile
from pathlib import Path

from task_gym.errors import SandboxError, check_choice

from .execution import Execution, wait
from .shapes import LEVELS, Limits, Result
from .worker import BusyError, Worker

_PATIENT = Limits(cpu_seconds=60, wall_seconds=60.0)
"""The trial's limits. It takes some milliseconds, but a busy machine must not look like a weak one."""

_ATTEMPTS = """
import os, threading

def refused(attempt):
    try:
        attempt()
    except OSError:
        return True
    return False

def fork():
    if os.fork() == 0:
        os._exit(0)

def loads():
    import decimal, json
    return json.loads("[1]") == [decimal.Decimal(1)]

def runs_threads():
    seen = []
    thread = threading.Thread(target=seen.append, args=[1])
    thread.start()
    thread.join()
    return seen == [1]

def works():
    with open("here", "w") as file:
        file.write("x")
    return os.listdir() == ["here"]

checks = [("the standard library", loads), ("threads", runs_threads), ("a directory of its own", works),
          ("an empty environment", lambda: set(os.environ) == {"PYTHONHASHSEED"})]
if LEVEL == "namespaces":
    import fcntl, socket
    pipe = os.pipe()
    checks += [("no processes", lambda: refused(fork)), ("no sockets", lambda: refused(socket.socket)),
               ("no signals", lambda: refused(lambda: os.kill(os.getppid() or 1, 0))),
               ("no larger pipes", lambda: refused(lambda: fcntl.fcntl(pipe[0], 1031, 1 << 17))),
               ("no locks on files", lambda: refused(lambda: fcntl.flock(pipe[0], fcntl.LOCK_SH))),
               ("no reading outside", lambda: refused(lambda: open(CANARY))),
               ("no writing outside", lambda: refused(lambda: open(CANARY + "2", "w"))),
               ("no files but its own", lambda: not os.path.exists(CANARY) and not os.path.exists("/proc")),
               ("a process namespace", lambda: os.getpid() == 2),
               ("a name of its own", lambda: os.uname().nodename == "sandbox")]
for name, check in checks:
    try:
        kept = check()
    except Exception as error:
        kept, name = False, f"{name} ({type(error).__name__}: {error})"
    if not kept:
        print(name)
"""


def trouble(level: str) -> str | None:
    """Returns why this machine does not have a level; None if it does. One trial per level and process.

    Raises:
        SandboxError: the trial did not come to an end, which says nothing about the level.
    """
    check_choice("level", level, LEVELS)
    try:
        return _try(level)
    except BusyError as error:
        raise SandboxError(
            f"sandbox: whether this machine has level {level!r} could not be found out: {error}; "
            "try again when it is less busy"
        ) from error


@functools.cache  # an error is not kept, so a trial that did not come to an end is made again
def _try(level: str) -> str | None:
    """Makes the trial of a level; see ``trouble``.

    Raises:
        BusyError: it did not come to an end.
    """
    if sys.platform != "linux":
        return f"this system is {sys.platform!r}, allowed: 'linux'"
    with tempfile.TemporaryDirectory(prefix="trace-probe-") as directory:
        os.chmod(directory, 0o777)
        canary = os.path.join(directory, "canary")
        with open(canary, "w") as file:
            os.chmod(canary, 0o666)
            file.write("x")
        try:
            result = _run_trial(level, canary)
        except BusyError:
            raise
        except (SandboxError, OSError) as error:
            return str(error)
    if result.status in ("timeout", "killed"):
        raise BusyError(f"a trial program ended with {result.status!r} after {result.seconds:.0f} s")
    if result.status != "ok":
        return f"a trial program ended with {result.status!r}: {result.stderr.strip()}"
    return f"not kept in a trial: {', '.join(result.stdout.splitlines())}" if result.stdout else None


def _run_trial(level: str, canary: str) -> Result:
    worker = Worker(level, hash_seed=0)
    try:
        text = f"LEVEL, CANARY = {level!r}, {canary!r}\n{_ATTEMPTS}"
        execution = Execution(worker, text, "", _PATIENT)
        wait([execution])
        if execution.lost:
            raise BusyError("a worker was killed")
        return execution.result()
    finally:
        worker.close()


def choose(level: str | None, require: str) -> str:
    """Returns the level to run at: ``level`` if given, else the strongest that this machine has.

    Args:
        level: The level to run at; None: the strongest.
        require: The weakest level to accept.

    Raises:
        SandboxError: this machine does not have the level, or the level is weaker than ``require``.
    """
    for name, value in (("level", level), ("require", require)):
        if value is not None:
            check_choice(f"sandbox: {name}", value, LEVELS)
    if level == "limits" and require == "namespaces":
        raise SandboxError(
            "sandbox: level='limits' was given, which protects from nothing; allowed with "
            "require='namespaces': 'namespaces'; require='limits' accepts the risk"
        )
    if level is not None:
        candidates: tuple[str, ...] = (level,)
    else:
        candidates = LEVELS[: LEVELS.index(require) + 1]
    reasons = {}
    for candidate in candidates:
        reason = trouble(candidate)
        if reason is None:
            return candidate
        reasons[candidate] = reason
    raise SandboxError(_explain(reasons))


def _explain(reasons: dict[str, str]) -> str:
    """Returns the message about levels that are missing: why, how to get them, and what else is possible."""
    listed = "; ".join(f"{level!r}: {reason}" for level, reason in reasons.items())
    message = f"sandbox: this machine does not have the level that is required ({listed})"
    if "namespaces" in reasons:
        message += "".join(f"; {advice}" for advice in advise())
        if "limits" not in reasons and sys.platform == "linux":
            message += "; or accept the risk of running such programs without protection: require='limits'"
    return message


SWITCHES = {
    "user/max_user_namespaces": ("0", "user.max_user_namespaces=10000"),
    "kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "kernel.apparmor_restrict_unprivileged_userns=0"),
}
"""Settings below /proc/sys: the value that forbids user namespaces, and one that allows them."""


def read_kernel_file(path: str) -> str:
    """Returns a file's text without white space around it; "" where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def advise() -> list[str]:
    """Returns what would allow user namespaces here, as clauses for a message; none if nothing is known."""
    if sys.platform != "linux":
        return ["run it on Linux 5.3 or newer, or in a virtual machine with it"]
    clauses = [
        f"the machine's administrator can allow user namespaces: sysctl -w {allowing}"
        for name, (forbidding, allowing) in SWITCHES.items()
        if read_kernel_file(f"/proc/sys/{name}") == forbidding
    ]
    if any(line.split() == ["Seccomp:", "2"] for line in read_kernel_file("/proc/self/status").splitlines()):
        clauses.append(
            "this process is under a system call filter, as in a container: give the container "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run outside of it"
        )
    return clauses or ["the kernel must allow user namespaces, and a container's own rules mounts in them"]
