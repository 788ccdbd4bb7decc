"""A fast end of the interpreter, which does only the parts that a program can see.

The ordinary end of a forked interpreter touches, and so copies, nearly every page that it shares with its
worker. This costs several times as much as a small program. A program can only see that its objects are
destroyed, because their ``__del__`` may print. So this module destroys what the program made and imported, in
the order of CPython's ``finalize_modules``, and then ends the process.
"""

from __future__ import annotations

import atexit
import builtins
import sys
from gc import collect
from os import _exit
from weakref import ref

# CPython's end is in C. So nothing here may depend on names that a program can replace: the functions above
# are bound now, and the functions below have builtins of their own.
globals()["__builtins__"] = dict(vars(builtins))

ModuleType = type(sys)

_FLUSH_FAILED = 120  # the interpreter's exit code if a flush fails


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
        own = [
            ref(module)
            for name, module in modules.items()
            if isinstance(module, ModuleType) and self._there.get(name) is not module
        ]
        module = None
        modules.clear()
        collect()
        for reference in reversed(own):
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
