"""Execution of a program's text, as ``python FILE`` does it, and a fast end.

The ordinary end of a forked interpreter touches, and so copies, nearly every page that it shares with its
worker. This costs several times as much as a small program. A program can only see that its objects are
destroyed, because their ``__del__`` may print. So ``Ending`` destroys what the program made and imported, in
the order of CPython's ``finalize_modules``, and then ends the process.
"""

from __future__ import annotations

import atexit
import builtins
import io
import os
import sys
from gc import collect
from os import _exit
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# CPython's end is in C. So nothing in the end may depend on names that a program can replace: the functions
# above are bound now, and the functions below have builtins of their own.
globals()["__builtins__"] = dict(vars(builtins))

ModuleType = type(sys)

_FLUSH_FAILED = 120  # the interpreter's exit code if a flush fails

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


def _exit_code(code: object) -> int:
    """Returns the interpreter's exit code for ``sys.exit(code)``."""
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1
    return code & 0xFF if -(2**63) <= code < 2**63 else 0xFF


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


class Ending:
    """The end of a program: it knows the modules and streams from before the program, and the exit code."""

    def __init__(self) -> None:
        self.exit_code = 0
        self._modules = sys.modules
        self._there = {name: module for name, module in sys.modules.items() if name != "__main__"}
        self._streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
        # Registered first, so called last. The interpreter has waited for threads by then.
        atexit.register(self._leave)
        # Called right before, so a program that traces or profiles itself does not see _leave.
        atexit.register(sys.setprofile, None)
        atexit.register(sys.settrace, None)

    def _leave(self) -> None:
        self._flush()
        names = vars(sys)
        names.update(dict.fromkeys(("meta_path", "path_hooks", "path")))
        for name, stream in self._streams.items():
            names[name] = names.get(f"__{name}__", stream)
        # The program's own module first, then the modules that it imported.
        modules = names.get("modules")
        modules = modules if isinstance(modules, dict) else self._modules
        references = [
            ref(module)
            for name, module in modules.items()
            if isinstance(module, ModuleType) and self._there.get(name) is not module
        ]
        module = None
        modules.clear()
        collect()
        for reference in reversed(references):
            if (module := reference()) is not None:
                _clear(vars(module))
        collect()
        self._flush()
        _exit(self.exit_code)

    def _flush(self) -> None:
        names = vars(sys)
        for name in ("stdout", "stderr"):
            stream = names.get(name)
            if stream is None or _is_closed(stream):
                continue
            try:
                stream.flush()
            except Exception as error:
                self.exit_code = _FLUSH_FAILED
                if name == "stdout":
                    _complain(names.get("stderr"), stream, error)


def _is_closed(stream: object) -> bool:
    try:
        return bool(stream.closed)  # type: ignore[attr-defined]
    except Exception:
        return False


def _complain(stderr: object, stream: object, error: Exception) -> None:
    try:
        print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=stderr)  # type: ignore[call-overload]
    except Exception:
        return


def _clear(names: dict[str, object]) -> None:
    """Clears a module's globals: private names first, then the others, in order."""
    private = [name for name in names if name[:1] == "_" and name[:2] != "__"]
    for name in [*private, *(name for name in names if name != "__builtins__")]:
        names[name] = None
