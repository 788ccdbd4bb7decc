"""The interpreter for programs: the running one, without its packages."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

from task_gym.errors import SandboxError

FLAGS = ("-S", "-s", "-P", "-X", "utf8")
"""No packages, no user's packages, no script's path, UTF-8. ``-I`` and ``-E`` would ignore the hash seed."""

JAIL = Path(__file__).parent / "jail"


def executable() -> str:
    """Returns the interpreter's path. In a virtual environment, it is the base interpreter's path.

    Raises:
        SandboxError: there is no such interpreter.
    """
    found: str = getattr(sys, "_base_executable", None) or sys.executable
    if not found or not os.access(found, os.X_OK):
        raise SandboxError(f"no interpreter to run programs with: {found!r} was found, allowed: its path")
    return os.path.realpath(found)


@functools.cache
def survey() -> dict[str, dict[str, str]]:
    """Returns the files that the interpreter needs: see ``jail/survey.py``, which runs in its own process."""
    command = [executable(), *FLAGS, str(JAIL / "survey.py")]
    done = subprocess.run(
        command, env={}, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60
    )
    if done.returncode != 0:
        raise SandboxError(f"the interpreter could not say which files it needs: {done.stderr.strip()}")
    found: dict[str, dict[str, str]] = ast.literal_eval(done.stdout)
    return found
