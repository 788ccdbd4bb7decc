"""The levels that this machine has: a trial program at each level tries what is forbidden there."""

from __future__ import annotations

import functools
import os
import sys
import tempfile

from task_gym.errors import SandboxError, check_choice

from .execution import Execution, wait
from .shapes import LEVELS, Limits
from .worker import Worker

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
if LEVEL != "rlimits":
    import socket
    checks += [("no processes", lambda: refused(fork)), ("no sockets", lambda: refused(socket.socket)),
               ("no signals", lambda: refused(lambda: os.kill(os.getppid() or 1, 0)))]
if LEVEL in ("namespaces", "landlock"):
    checks += [("no reading outside", lambda: refused(lambda: open(CANARY))),
               ("no writing outside", lambda: refused(lambda: open(CANARY + "2", "w")))]
if LEVEL == "namespaces":
    checks += [("no files but its own", lambda: not os.path.exists(CANARY) and not os.path.exists("/proc")),
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


@functools.cache
def trouble(level: str) -> str | None:
    """Returns why this machine does not have a level; None if it does. One trial per level and process."""
    check_choice("level", level, LEVELS)
    if sys.platform != "linux":
        return f"this system is {sys.platform!r}, allowed: 'linux'"
    with tempfile.TemporaryDirectory(prefix="trace-probe-") as directory:
        os.chmod(directory, 0o777)
        canary = os.path.join(directory, "canary")
        with open(canary, "w") as file:
            os.chmod(canary, 0o666)
            file.write("x")
        try:
            worker = Worker(level, hash_seed=0)
            try:
                text = f"LEVEL, CANARY = {level!r}, {canary!r}\n{_ATTEMPTS}"
                execution = Execution(worker, text, "", Limits())
                wait([execution])
                result = execution.result()
            finally:
                worker.close()
        except (SandboxError, OSError) as error:
            return str(error)
    if result.status != "ok":
        return f"a trial program ended with {result.status!r}: {result.stderr.strip()}"
    return f"not kept in a trial: {', '.join(result.stdout.splitlines())}" if result.stdout else None


def choose(level: str | None, require: str | None) -> str:
    """Returns the level to run at: ``level`` if given, else the strongest that this machine has.

    Raises:
        SandboxError: this machine does not have the level, or the level is weaker than ``require``.
    """
    for name, given in (("level", level), ("require", require)):
        if given is not None:
            check_choice(f"sandbox: {name}", given, LEVELS)
    weakest = LEVELS.index(require or LEVELS[-1])
    if level is not None and LEVELS.index(level) > weakest:
        raise SandboxError(
            f"sandbox: level={level!r} was given, allowed with require={require!r}: "
            f"{', '.join(map(repr, LEVELS[: weakest + 1]))}"
        )
    reasons = []
    for candidate in LEVELS[: weakest + 1] if level is None else [level]:
        reason = trouble(candidate)
        if reason is None:
            return candidate
        reasons.append(f"{candidate}: {reason}")
    wanted = repr(level or require or LEVELS[-1])
    raise SandboxError(f"sandbox: level {wanted} or stronger is not to be had here ({'; '.join(reasons)})")
