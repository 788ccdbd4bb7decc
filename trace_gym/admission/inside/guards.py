"""Guards in a program's process: they end it when it asks for something that its text does not show.

A guard replaces a builtin and does what the builtin does, but looks at calls by the program itself. A program
can notice the guards. Then its output differs from that of a run without them, and it is not admitted.
"""

from __future__ import annotations

import builtins
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, NoReturn

MARK = "not admitted: "
"""The beginning of what is written to standard error when a guard ends a program."""

_ModuleType, _FunctionType = type(sys), type(lambda: None)
_NUMBERS = (int, float, complex, bool)
_LOADERS = (
    "_frozen_importlib", "_frozen_importlib_external", "importlib._bootstrap",
    "importlib._bootstrap_external", "linecache", "pdb", "tokenize", "zipimport",
)  # fmt: skip
"""Modules that open files of the standard library for a program."""

_PICKLED = {
    "_codecs": ("encode",),
    "builtins": ("bytearray", "complex", "frozenset", "object", "range", "set", "slice"),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque"),
    "copyreg": ("_reconstructor",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
}
"""What pickled data may name, but for the program's own classes."""


class Guards:
    """The guards of one process.

    Args:
        main: The program's globals.
        members: The members with two underscores on both sides that any object may be asked for.
        frames: The members that lead to frames.
        refused: The builtins that are not allowed.
        passed_on: The modules that a program may have as values.
        clocks: Members of objects of the standard library that are not allowed, and why.
        sleep: Seconds that the program may sleep in all.
    """

    def __init__(
        self,
        main: dict[str, Any],
        members: frozenset[str],
        frames: frozenset[str],
        refused: frozenset[str],
        passed_on: frozenset[str],
        clocks: dict[str, str],
        sleep: float,
    ) -> None:
        self._main, self._members, self._frames = main, members, frames
        self._refused, self._passed_on, self._clocks, self._sleep = refused, passed_on, clocks, sleep
        self._write, self._leave, self._frame = os.write, os._exit, sys._getframe
        self._hashing = self._tainted = self._begun = False

    def install(self, random: bool, ids: bool) -> None:
        """Puts the guards in place.

        Args:
            random: Whether the program may draw random numbers.
            ids: Whether it may not ask for an id at all. If it may compare two, it does no more with them.
        """
        for name in ("hash", "getattr", "eval", "exec"):
            setattr(builtins, name, self._named(getattr(self, f"_make_{name}"), getattr(builtins, name)))
        # The text has neither by its own name, but `id = id` in it would go unseen.
        for name in ("id", "compile") if ids else ("compile",):
            setattr(builtins, name, self._named(self._make_refusing, getattr(builtins, name)))
        self._guard_sleep()
        if random:
            self._guard_random()
        sys.addaudithook(self._audit)

    def _named(self, make: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        made: Callable[..., Any] = make(real)
        made.__name__ = made.__qualname__ = real.__name__
        made.__module__ = "builtins"
        return made

    def _make_refusing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*given: Any, **named: Any) -> Any:
            if self._is_own(self._frame(1)):
                self._refuse(f"{real.__name__}() is called under another name")
            return real(*given, **named)

        return guarded

    def _refuse(self, what: str) -> NoReturn:
        """Ends the process. The line is that of the program's own innermost frame."""
        frame: FrameType | None = self._frame(1)
        while frame is not None and not self._is_own(frame):
            frame = frame.f_back
        line = 1 if frame is None else frame.f_lineno
        self._write(2, f"\n{MARK}line {line}: {what}".encode("utf-8", "backslashreplace")[:1000])
        self._leave(1)

    def _is_own(self, frame: FrameType) -> bool:
        # doctest runs examples in a copy of the program's globals, which has the counter too.
        return frame.f_globals is self._main or "__tick__" in frame.f_globals

    # -- hash ------------------------------------------------------------------------------------------------

    def _make_hash(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(obj: object, /) -> int:
            frame = self._frame(1)
            if self._hashing:  # inside __hash__, called by a hash that is asked for
                self._tainted = self._tainted or self._is_salted(obj)
                return int(real(obj))
            if not self._is_own(frame) or frame.f_code.co_name == "__hash__":
                return int(real(obj))
            if self._is_salted(obj):
                self._refuse(f"hash() of a {type(obj).__name__} follows from a seed or an address")
            self._hashing, self._tainted = True, False
            try:
                found = int(real(obj))
            finally:
                self._hashing = False
            if self._tainted:
                self._refuse(f"hash() of a {type(obj).__name__} follows from a seed or an address")
            return found

        return guarded

    def _is_salted(self, obj: object) -> bool:
        """Returns whether a hash follows from more than numbers; ``__hash__`` methods are watched instead."""
        kind = type(obj)
        if kind in _NUMBERS:
            return False
        if kind.__hash__ in (tuple.__hash__, frozenset.__hash__):
            return any(map(self._is_salted, obj))  # type: ignore[call-overload]
        if f"{kind.__module__}.{kind.__qualname__}" in (
            "fractions.Fraction",
            "decimal.Decimal",
            "builtins.range",
        ):
            return False
        # A function of the program or of the standard library hashes what it was told to.
        method: Any = kind.__hash__
        return method is not None and type(method) is not _FunctionType

    # -- names and code that the text does not have ----------------------------------------------------------

    def _make_getattr(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(obj: object, name: str, /, *default: object) -> Any:
            if self._is_own(self._frame(1)) and type(name) is str:
                self._check_member(obj, name)
            return real(obj, name, *default)

        return guarded

    def _check_member(self, obj: object, name: str) -> None:
        special = name[:2] == "__" == name[-2:]
        if (special and name not in self._members) or name in self._frames:
            self._refuse(f"getattr() looks up {name!a}, which is not on the list of names")
        if isinstance(obj, _ModuleType) and obj.__name__ not in self._passed_on:
            self._refuse(f"getattr() looks up {name!a} in the module {obj.__name__}")
        if name in self._clocks:
            kind = obj if isinstance(obj, type) else type(obj)
            if any(base.__module__ in ("datetime", "_pydatetime") for base in kind.__mro__):
                self._refuse(f"getattr() looks up {name!a}, which {self._clocks[name]}")

    def _make_eval(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(source: Any, /, *scopes: Any, **named: Any) -> Any:
            frame = self._frame(1)
            if self._is_own(frame):
                self._check_code(source, frame, "eval")
            if not scopes and not named:
                scopes = (frame.f_globals, frame.f_locals)
            return real(source, *scopes, **named)

        return guarded

    def _make_exec(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(source: Any, /, *scopes: Any, **named: Any) -> None:
            frame = self._frame(1)
            if self._is_own(frame):
                if self._begun:
                    self._check_code(source, frame, "exec")
                self._begun = True  # the first call is the one that runs the program
            if not scopes and "globals" not in named:
                scopes = (frame.f_globals, frame.f_locals)
            real(source, *scopes, **named)

        return guarded

    def _check_code(self, source: Any, frame: FrameType, how: str) -> None:
        """Refuses code that imports, or that names what a program's text may not name."""
        import ast  # here, because few programs need it and it takes longer to import than most run

        if not isinstance(source, (str, bytes)):
            self._refuse(f"{how}() runs code that is no text")
        try:
            tree = ast.parse(source.strip() if how == "eval" else source)
        except Exception:
            return  # the builtin raises it
        for node in ast.walk(tree):
            name = getattr(node, "attr", getattr(node, "id", ""))
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._refuse(f"{how}() imports a module")
            if name[:2] == "__" and (isinstance(node, ast.Name) or name not in self._members):
                self._refuse(f"{how}() runs code that names {name!a}")
            if name in self._frames or (isinstance(node, ast.Name) and name in self._refused):
                self._refuse(f"{how}() runs code that names {name!a}")
            if isinstance(node, ast.Name):
                value = frame.f_locals.get(name, frame.f_globals.get(name))
                if isinstance(value, _ModuleType) and value.__name__ not in self._passed_on:
                    self._refuse(f"{how}() runs code that names the module {name!a}")
            elif name in self._clocks:
                self._refuse(f"{how}() runs code that names {name!a}, which {self._clocks[name]}")

    # -- time, files, random numbers -------------------------------------------------------------------------

    def _guard_sleep(self) -> None:
        real, left = time.sleep, self._sleep

        def sleep(seconds: float, /) -> None:
            nonlocal left
            if isinstance(seconds, (int, float)) and seconds > 0:
                left -= seconds
            if left < 0:
                self._refuse(f"time.sleep() sleeps for more than {self._sleep:g} s in all")
            real(seconds)

        setattr(time, "sleep", sleep)  # noqa: B010  (it takes no other kinds of numbers than the real one)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            if arguments and not self._is_inside(arguments[0]) and self._opens():
                self._refuse(f"it opens {arguments[0]!a}, which is outside its folder")
        elif event == "pickle.find_class":
            module, name = arguments
            if module != "__main__" and name not in _PICKLED.get(module, ()):
                self._refuse(f"pickled data names {module}.{name}")

    def _is_inside(self, path: object) -> bool:
        """Returns whether a path is below the program's folder, or one of the standard streams."""
        if path is None or isinstance(path, int):
            return path in (None, 0, 1, 2)
        text = os.fsdecode(path)  # type: ignore[arg-type]
        if text.startswith(("/", "~")):
            return text in ("/dev/null",)
        return ".." not in text.split("/")

    def _opens(self) -> bool:
        """Returns whether the program opens a file that is no part of an import or a traceback."""
        frame: FrameType | None = self._frame(1)
        own = False
        while frame is not None:
            if frame.f_globals.get("__name__") in _LOADERS:
                return False
            own = own or self._is_own(frame)
            frame = frame.f_back
        return own

    def _guard_random(self) -> None:
        import random

        refuse = self._refuse

        class Random(random.Random):
            """A generator that knows whether it has a seed."""

            seeded = False

            def seed(self, a: Any = None, version: int = 2) -> None:
                self.seeded = a is not None
                super().seed(a, version)

            def random(self) -> float:
                self._check()
                return super().random()

            def getrandbits(self, k: int, /) -> int:
                self._check()
                return super().getrandbits(k)

            def getstate(self) -> Any:
                self._check()
                return super().getstate()

            def setstate(self, state: Any) -> None:
                super().setstate(state)
                self.seeded = True

            def _check(self) -> None:
                if not self.seeded:
                    refuse("a random number without a seed before it")

        Random.__module__, Random.__qualname__ = "random", "Random"
        shared = Random()
        for name in random.__all__:
            if hasattr(random.Random, name) and name not in ("Random", "SystemRandom"):
                setattr(random, name, getattr(shared, name))
        random.Random = Random  # type: ignore[misc]
        random._inst = shared
