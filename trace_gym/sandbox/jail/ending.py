"""A short way out: what a program can see of the interpreter's end, without the rest.

A forked interpreter that ends the ordinary way first touches, and so copies, nearly every page it shares with
its worker: several times the cost of a small program. What a program can see of it is that objects are
destroyed, whose `__del__` may print. Here that is done to what the program itself made and imported, in the
order in which `finalize_modules` of CPython does it, and the process is gone.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import weakref

ModuleType = type(sys)

_FLUSH_FAILED = 120  # what the interpreter exits with then


class Ending:
    """Remembers what was there before the program, and the code it exits with."""

    def __init__(self) -> None:
        self.code = 0
        self._there = {name: module for name, module in sys.modules.items() if name != "__main__"}
        # The first to be registered is the last to be called. Threads have been waited for by then.
        atexit.register(self._leave)
        # Called right before it: a program that traces or profiles itself sees nothing of it.
        atexit.register(sys.setprofile, None)
        atexit.register(sys.settrace, None)

    def _leave(self) -> None:
        self._flush()
        for name in ("meta_path", "path_hooks", "path"):
            setattr(sys, name, None)
        for name in ("stdin", "stdout", "stderr"):
            setattr(sys, name, getattr(sys, f"__{name}__"))
        # The program's own module first, then what it imported.
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
        os._exit(self.code)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                if not stream.closed:
                    stream.flush()
            except Exception as error:
                self.code = _FLUSH_FAILED
                if stream is sys.stdout:
                    print(
                        f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr
                    )


def _clear(names: dict[str, object]) -> None:
    """Let go of a module's globals: private names first, then the others, in order."""
    private = [name for name in names if name[:1] == "_" and name[:2] != "__"]
    for name in [*private, *(name for name in names if name != "__builtins__")]:
        names[name] = None
