"""Guards in a program's process: they end it when it looks outside its folder, or sleeps for too long."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

MARK = "not admitted: "
"""The beginning of what is written to standard error when a guard ends a program."""

FILE = "<program>"
"""The name of the file that a guarded program is compiled under."""

MOST_SLEEP = 1.0
"""Seconds that a guarded program may sleep in all."""

_LOADERS = (
    "_frozen_importlib", "_frozen_importlib_external", "importlib._bootstrap",
    "importlib._bootstrap_external", "linecache", "pdb", "tokenize", "zipimport",
)  # fmt: skip
"""Modules that open files of the standard library for a program."""

_EVENTS = ("open", "os.chdir", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir")
_LOOKS = ("access", "lstat", "readlink", "stat")

_write, _leave, _inside = os.write, os._exit, os.path.abspath(".") + "/"


def install() -> None:
    """Puts the guards in place."""
    os.environ["TMPDIR"] = os.getcwd()
    for name in _LOOKS:
        setattr(os, name, _guard_look(getattr(os, name)))
    setattr(time, "sleep", _guard_sleep(time.sleep))  # noqa: B010  (it takes fewer kinds of numbers)
    sys.addaudithook(_audit)


def _refuse(what: str, anywhere: bool = False) -> None:
    """Ends the process, if it is the program that asks. The line is that of its own innermost frame.

    ``anywhere``: also if no frame is the program's, as in a thread that runs a function of the library.
    """
    line = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in _LOADERS:
            return
        if frame.f_code.co_filename == FILE:
            line = line or frame.f_lineno
        frame = frame.f_back
    if line or anywhere:
        place = f"line {line}: " if line else ""
        _write(2, f"\n{MARK}{place}{what}".encode("utf-8", "backslashreplace")[:1000])
        _leave(1)


def _check_path(path: Any, parents: bool = False) -> None:
    """Ends the process if a path is outside the program's folder; ``parents``: folders around it are not."""
    if path is None or isinstance(path, int):
        return
    text = os.fsdecode(path)
    full = os.path.normpath(os.path.join(_inside, text) + "/")
    if text == "/dev/null" or (full + "/").startswith(_inside) or (parents and _inside.startswith(full)):
        return
    _refuse(f"it opens {path!a}, which is outside its folder")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS and arguments:
        _check_path(arguments[0])


def _guard_look(real: Callable[..., Any]) -> Callable[..., Any]:
    def look(path: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(path, (str, bytes, os.PathLike)):
            _check_path(path, parents=True)
        return real(path, *arguments, **options)

    return look


def _guard_sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    left = MOST_SLEEP

    def sleep(seconds: float, /) -> None:
        nonlocal left
        if isinstance(seconds, (int, float)) and seconds > 0:
            left -= seconds
        if left < 0:
            _refuse(f"time.sleep() sleeps for more than {MOST_SLEEP:g} s in all", anywhere=True)
        real(seconds)

    return sleep


if __name__ == "guards":
    install()
