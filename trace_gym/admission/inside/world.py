"""One world of a program's process: what a program should not depend on is otherwise here."""

from __future__ import annotations

import gc
import os
import sys
import time
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NANO = 10**9
_kept: list[object] = []
"""Objects that stay, so that the program's own have other addresses."""


class _Plain:
    """An object with a dictionary, as those of most classes."""


def change(
    number: int, pid: int, folder: str, host: str, zone: str, clock: int, names: dict[str, str]
) -> None:
    """Changes this process's world. It is called as this module is executed, if ``WORLD`` is defined there.

    Args:
        number: The world's number, by which the heap and the switching of threads differ.
        pid: The process id.
        folder: The working directory, made below the present one.
        host: The host's name.
        zone: The time zone, in the form of POSIX, which needs no file.
        clock: Seconds by which all clocks differ.
        names: Environment variables.
    """
    os.mkdir(folder)
    os.chdir(folder)
    sys.path[0] = os.getcwd()
    os.environ.update(names)
    os.environ["TZ"] = zone
    time.tzset()
    _shift_clocks(clock)
    _rename_process(pid, host)
    sys.setswitchinterval(1e-5 if number % 2 else 0.05)
    _shift_large(number)
    _shuffle_heap(number)


def _shift_clocks(by: int) -> None:
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        for suffix, unit in (("", 1), ("_ns", _NANO)):
            real = getattr(time, name + suffix)
            setattr(time, name + suffix, _named(_shifted(real, by * unit), real))
    for name in ("localtime", "gmtime", "ctime"):
        real = getattr(time, name)
        setattr(time, name, _named(_converting(real, time.time), real))
    time.strftime = _named(_formatting(time.strftime, time.localtime), time.strftime)
    time.asctime = _named(_formatting(time.asctime, time.localtime), time.asctime)


def _shifted(real: Callable[[], Any], by: int) -> Callable[[], Any]:
    return lambda: real() + by


def _converting(real: Callable[..., Any], now: Callable[[], float]) -> Callable[..., Any]:
    return lambda seconds=None: real(now() if seconds is None else seconds)


def _formatting(real: Callable[..., Any], now: Callable[[], Any]) -> Callable[..., Any]:
    needed = 1 if real.__name__ == "strftime" else 0
    return lambda *given: real(*given) if len(given) > needed else real(*given, now())


def _named(made: Callable[..., Any], real: Callable[..., Any]) -> Any:
    made.__name__ = made.__qualname__ = real.__name__
    made.__module__ = real.__module__
    return made


def _rename_process(pid: int, host: str) -> None:
    import posix

    system, _, *rest = os.uname()
    renamed = os.uname_result((system, host, *rest))
    for module in (os, posix):
        for name, value in (("getpid", pid), ("getppid", pid - 1), ("uname", renamed)):
            setattr(module, name, _returning(value, getattr(module, name)))


def _returning(value: Any, real: Callable[..., Any]) -> Any:
    return _named(lambda: value, real)


def _shift_large(number: int) -> None:
    """Moves the place of the next class: which of the eight places of a small set it takes differs.

    Objects above 512 bytes are the C library's. What is free is filled, so that new ones lie one behind the
    other, each at a multiple of 16 bytes.
    """
    for size in range(4096, 512, -16):
        _kept.extend([bytes(size) for _ in range(4)])
    for tried in range(64):
        probe = type("_Probe", (), {})
        if id(probe) >> 4 & 7 == number & 7:
            break
        _kept.extend([probe, bytes(512 + 16 * (tried % 7))])
    del probe
    gc.collect()


def _shuffle_heap(number: int) -> None:
    """Moves the places where new objects go, by an amount and in an order that differ between worlds.

    Small objects take the place that was freed last, of their size or, for some types, of their type.
    """
    makers: list[Callable[[], object]] = [
        list, dict, set, object, _Plain, lambda: [0], lambda: {"a": 1}, lambda: (_kept, number),
        lambda: (lambda: number), lambda: number * 1.5, lambda: number << 40,
    ]  # fmt: skip
    makers += [partial(bytes, size) for size in range(1, 480, 16)]
    _kept.append(bytearray((number * 37 % 64 + 1) * 4096 + number * 16))
    order = sorted(range(24), key=lambda place: (place * place * 7 + place * number * 13 + number * 5) % 31)
    for make in makers:
        _kept.extend(make() for _ in range(40 + number * 29 % 31))
        waiting: list[object] = [make() for _ in order]
        # Some are freed, one here and one there; the others stay.
        for place in order[: 7 + number % 5]:
            waiting[place] = None
        _kept.append(waiting)
    # What a call frees as it ends would leave its place to the program's first, in every world the same.
    _kept.extend((makers, order))


if "WORLD" in globals():
    change(**globals()["WORLD"])
