"""A fast end of the interpreter, which does only the parts that a program can see.

The ordinary end of a forked interpreter touches, and so copies, nearly every page that it shares with its
worker. This costs several times as much as a small program. A program can only see that its objects are
destroyed, because their ``__del__`` may print. So this module destroys what the program made and imported, in
the order of CPython's ``finalize_modules``, and then ends the process.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import weakref

ModuleType = type(sys)

_FLUSH_FAILED = 120  # the interpreter's exit code if a flush fails


class Ending:
    """The end of a program: it knows the modules from before the program, and the exit code."""

    def __init__(self) -> None:
        self.exit_code = 0
        self._there = {name: module for name, module in sys.modules.items() if name != "__main__"}
        # Registered first, so called last. The interpreter has waited for threads by then.
        atexit.register(self._leave)
        # Called right before, so a program that traces or profiles itself does not see _leave.
        atexit.register(sys.setprofile, None)
        atexit.register(sys.settrace, None)

    def _leave(self) -> None:
        self._flush()
        for name in ("meta_path", "path_hooks", "path"):
            setattr(sys, name, None)
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, name, getattr(sys, f"__{name}__"))
        # The program's own module first, then the modules that it imported.
        own = [
            weakref.ref(module)
            for name, module in sys.modules.items()
            if isinstance(module, ModuleType) and self._there.get(name) is not module
        ]
        module = None
        sys.modules.clear()
        gc.collect()
        for reference in reversed(own):
            if (module := reference()) is not None:
                _clear(vars(module))
        gc.collect()
        self._flush()
        os._exit(self.exit_code)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None and not stream.closed:
                    stream.flush()
            except Exception as error:
                self.exit_code = _FLUSH_FAILED
                if stream is sys.stdout:
                    print(
                        f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr
                    )


def _clear(names: dict[str, object]) -> None:
    """Clears a module's globals: private names first, then the others, in order."""
    private = [name for name in names if name[:1] == "_" and name[:2] != "__"]
    for name in [*private, *(name for name in names if name != "__builtins__")]:
        names[name] = None
