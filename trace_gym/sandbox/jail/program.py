"""Execution of a program's text, as ``python FILE`` does it."""

from __future__ import annotations

import builtins
import io
import os
import sys

from .ending import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A program may replace any builtin, but not for this module.
globals()["__builtins__"] = dict(vars(builtins))

FILE = "program.py"
"""The name of the program's file in tracebacks; there is no such file."""


class ProgramLoader:
    """A loader that gives tracebacks and ``inspect`` the text, as an import loader does."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, name: str) -> str:
        return self._text


def _open(file: int, name: str, errors: str, line_buffering: bool = False) -> Any:
    """Returns a standard stream as the interpreter makes it on Linux, in UTF-8 for every locale."""
    raw = io.FileIO(file, "r" if file == 0 else "w", closefd=False)
    raw.name = name
    buffer = io.BufferedReader(raw) if file == 0 else io.BufferedWriter(raw)
    stream: Any = io.TextIOWrapper(buffer, "utf-8", errors, "\n", line_buffering)
    stream.mode = "r" if file == 0 else "w"
    return stream


def _exit_code(given: object) -> int:
    """Returns the interpreter's exit code for ``sys.exit(given)``."""
    if given is None:
        return 0
    if not isinstance(given, int):
        return 1
    return given & 0xFF if -(2**63) <= given < 2**63 else 0xFF


def execute(code: bytes) -> None:
    """Runs the program. Raises SystemExit, or returns at its end; the interpreter does the rest."""
    # The interpreter passes over a byte order mark at a file's beginning.
    text = code.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    streams = {
        "stdin": _open(0, "<stdin>", "strict"),
        "stdout": _open(1, "<stdout>", "strict"),
        "stderr": _open(2, "<stderr>", "backslashreplace", line_buffering=True),
    }
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = [FILE]
    sys.orig_argv = [sys.executable, FILE]
    sys.path.insert(0, os.getcwd())
    # A new module, because the worker froze its own module's names for the collector.
    main = sys.modules["__main__"] = type(sys)("__main__")
    names = vars(main)
    names.update(
        __loader__=ProgramLoader(text),
        __annotations__={},
        __builtins__=builtins,
        __file__=FILE,
        __cached__=None,
    )
    del main
    ending = Ending()
    try:
        exec(compile(text, FILE, "exec", dont_inherit=True), names)
    except SystemExit as exit:
        ending.exit_code = _exit_code(exit.code)
        raise
    except BaseException as error:
        ending.exit_code = 1
        trace = error.__traceback__
        error.__traceback__ = trace and trace.tb_next  # without this function's own line
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None
