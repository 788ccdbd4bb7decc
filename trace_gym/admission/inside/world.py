"""One world of a program's process: what an honest program does not depend on is otherwise here."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
import zlib
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# In POSIX's notation the sign is that of the way back to UTC. The rules for summer time are countries' own.
_ZONES = (
    "UTC0", "AAA-5:30", "BBB8BBS,M3.2.0,M11.1.0", "CCC-13", "DDD3:30", "EEE-1EES,M3.5.0,M10.5.0/3",
    "FFF-10FFS,M10.1.0,M4.1.0/3", "GGG-9:45", "HHH4HHS,M9.1.6/24,M4.1.6/24", "III-6", "JJJ10:30",
    "KKK-2KKS,M4.5.5/0,M10.5.4/24", "LLL1LLS,M3.5.0/0,M10.5.0/1", "MMM-3:15", "NNN7",
    "OOO-12OOS,M9.5.0,M4.1.0/3",
)  # fmt: skip

_DAY = 86_400
_NANO = 10**9

_WAITING = ("asyncio", "concurrent", "queue", "selectors", "threading")
"""Packages that read a clock to wait, and not to show it."""

_filler: list[object] = []
"""Objects that stay, so that the program's own have other addresses."""

_real_sleep = time.sleep


class _Plain:
    """An object with a dictionary, as those of most classes."""


def change(number: int, asks_date: bool) -> None:
    """Changes this process's world to that of a number from 1 on.

    It is called as this module is executed, if ``WORLD`` is defined there.

    Args:
        number: The world's number.
        asks_date: Whether the program may ask ``datetime`` for the present.
    """
    _move(number)
    if asks_date:  # datetime in C reads the real clock; in Python it does not, but words its errors otherwise
        sys.modules["_datetime"] = None  # type: ignore[assignment]
    # Years, months, days, hours, minutes and seconds differ, and none of them in step with another.
    by = number * (400 * _DAY + 7 * 3600 + 13 * 60 + 29)
    thaw = _shift_clocks(by, 0.37 * number, still=4 if number == 1 else 0)
    _change_machine(number)
    _change_order_of_files(number % 2 == 1)
    _change_compression()
    _change_threads(number, thaw)
    _shift_large(number)
    _shuffle_heap(number)


def _move(number: int) -> None:
    """Changes the working directory, the environment and the time zone."""
    folder = "w" * (1 + number % 5) + str(number * 7)
    os.mkdir(folder)
    os.chdir(folder)
    sys.path[0] = os.environ["TMPDIR"] = os.getcwd()
    os.environ |= {
        "HOME": f"/home/user{number}",
        "USER": f"user{number}",
        "LOGNAME": f"user{number}",
        "LANG": ("C", "de_DE.UTF-8", "tr_TR.UTF-8")[number % 3],
        "COLUMNS": str(40 + 17 * number),
        "PATH": ":".join(["/bin", "/usr/bin", "/opt/bin"][: 1 + number % 3]),
        f"WORLD_{number}": "1",
        "TZ": _ZONES[number],
    }
    time.tzset()
    sys.modules["__main__"].__file__ = os.path.abspath("program.py")


def _shift_clocks(by: int, step: float, still: int) -> Callable[[], None]:
    """Shifts all clocks; they also go on by a step whenever the program reads one.

    The first ``still`` readings lie a microsecond apart, so that the work between them takes no time: until
    the program waits for something. What is returned is called then.
    """
    readings = 0

    def thaw() -> None:
        nonlocal still
        still = 0

    def count_reading() -> int:
        """Returns the number of readings by the program; 0 for one to wait."""
        nonlocal readings
        frame: FrameType | None = sys._getframe(2)
        if frame is not None and frame.f_code.co_name == "time":  # of an asyncio loop
            frame = frame.f_back
        reader = "" if frame is None else str(frame.f_globals.get("__name__"))
        if reader.partition(".")[0] in _WAITING:
            thaw()
            return 0
        readings += 1
        return readings

    def shift(real: Callable[[], Any], unit: int) -> Callable[[], Any]:
        start = real()

        def read() -> Any:
            count = count_reading()
            if 0 < count <= still:
                return start + type(start)((by + count * 1e-6) * unit)
            return real() + type(start)((by + count * step) * unit)

        return read

    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        _replace(time, name, partial(shift, unit=1))
        _replace(time, f"{name}_ns", partial(shift, unit=_NANO))
    for name in ("localtime", "gmtime", "ctime"):
        _replace(time, name, partial(_converting, place=0, now=time.time))
    _replace(time, "asctime", partial(_converting, place=0, now=time.localtime))
    _replace(time, "strftime", partial(_converting, place=1, now=time.localtime))
    return thaw


def _converting(real: Callable[..., Any], place: int, now: Callable[[], Any]) -> Callable[..., Any]:
    """Returns a function that converts the present, of these clocks, if it is not given a time."""
    return lambda *args: real(*args) if args[place:] not in ((), (None,)) else real(*args[:place], now())


def _replace(module: Any, name: str, make: Callable[[Callable[..., Any]], Any]) -> None:
    """Replaces a function by what ``make`` makes of it, under the same name."""
    real = getattr(module, name)
    function = make(real)
    function.__name__ = function.__qualname__ = real.__name__
    function.__module__ = real.__module__
    setattr(module, name, function)


def _change_machine(number: int) -> None:
    processors = 1 + number * 3 % 16
    name = ("Linux", "FreeBSD")[number % 2]
    machine = ("x86_64", "aarch64", "riscv64")[number % 3]
    system = os.uname_result((name, f"host{number * 13}", f"{number}.1", f"#{number}", machine))
    values = {
        "getpid": 300 + 37 * number,
        "getppid": 299 + 37 * number,
        "uname": system,
        "cpu_count": processors,
        "process_cpu_count": processors,
        "sched_getaffinity": set(range(processors)),
    }
    for function, value in values.items():
        if hasattr(os, function):
            _replace(os, function, partial(_constant, value))
    os.name, sys.platform = ("posix", "linux") if number % 2 else ("other", "freebsd14")
    sys.executable = f"/opt/python{number}/bin/python"
    for module, function in ((sys, "getsizeof"), (sys, "getrefcount"), (gc, "collect")):
        _replace(module, function, lambda real: lambda *args: real(*args) + 9 * number)
    sys.setrecursionlimit(sys.getrecursionlimit() + 50 * number)
    # From half to all of its memory: so what a program counts until there is no more differs.
    memory, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory - memory // 14 * (number % 8), most))


def _constant(value: Any, real: object) -> Callable[..., Any]:
    return lambda *args: value


def _change_order_of_files(reverse: bool) -> None:
    class Entries:
        """The entries of ``os.scandir``, in another order."""

        def __init__(self, entries: Any) -> None:
            with entries:
                self._entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=reverse))

        def __iter__(self) -> Any:
            return self._entries

        def __next__(self) -> Any:
            return next(self._entries)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            self.close()

        def close(self) -> None:
            """Does nothing: all entries have been read."""

    _replace(os, "listdir", lambda real: lambda *args: sorted(real(*args), reverse=reverse))
    _replace(os, "scandir", lambda real: lambda *args: Entries(real(*args)))


def _change_compression() -> None:
    """Makes zlib write a few bytes more, as another release of it may; they are read back as before."""

    class Compressor:
        """A compressor that ends with an empty block more."""

        def __init__(self, real: Any) -> None:
            self._real, self.compress = real, real.compress

        def flush(self, mode: int = zlib.Z_FINISH) -> bytes:
            more = self._real.flush(zlib.Z_FULL_FLUSH) if mode == zlib.Z_FINISH else b""
            return bytes(more + self._real.flush(mode))

        def copy(self) -> Compressor:
            return Compressor(self._real.copy())

    def compress(data: Any, /, level: int = -1, wbits: int = zlib.MAX_WBITS) -> bytes:
        compressor: Any = zlib.compressobj(level, wbits=wbits)
        return bytes(compressor.compress(data) + compressor.flush())

    _replace(zlib, "compressobj", lambda real: lambda *args, **named: Compressor(real(*args, **named)))
    _replace(zlib, "compress", lambda real: compress)


def _change_threads(number: int, thaw: Callable[[], None]) -> None:
    """Changes which thread comes first: by delays as a thread starts and writes, sleeps and waits.

    ``thaw`` is called when the program waits.
    """
    import threading

    sys.setswitchinterval(1e-5 if number % 2 else 0.05)
    main = threading.get_ident()
    started = written = 0

    def delay(*event: object) -> None:
        nonlocal started
        sys.setprofile(None)
        started += 1
        _real_sleep((0.0, 0.01 * max(0, 8 - started), 0.02)[number % 3])

    def writing(real: Callable[[str], int]) -> Callable[[str], int]:
        def write(text: str, /) -> int:
            nonlocal written
            if threading.get_ident() != main:
                written += 1
                _real_sleep((written * 7 + number * 5) % 11 / 1000)
            return real(text)

        return write

    threading.setprofile(delay)
    _replace(sys.stdout, "write", writing)

    def waiting(real: Callable[..., Any]) -> Callable[..., Any]:
        def wait(self: Any, timeout: float | None = None) -> Any:
            thaw()
            if timeout and number % 3 == 0:
                timeout = min(10 * timeout, timeout + 0.5)
            return real(self, timeout)

        return wait

    def sleeping(real: Callable[[float], None]) -> Callable[[float], None]:
        def sleep(seconds: float, /) -> None:
            thaw()
            real(min(seconds, 0.0005) if number % 2 else seconds)

        return sleep

    for kind, name in ((threading.Thread, "join"), (threading.Condition, "wait")):
        _replace(kind, name, waiting)
    _replace(time, "sleep", sleeping)


def _shift_large(number: int) -> None:
    """Moves the place of the next class: which of the eight places of a small set it takes differs.

    Objects above 512 bytes are the C library's. What is free is filled, so that new ones lie one behind the
    other, each at a multiple of 16 bytes.
    """
    gc.collect()  # garbage of the worker would leave places behind as it goes
    chain: object = None  # grows without a large object of its own, which would leave places behind
    for size in range(4096, 512, -16):
        for _ in range(4):
            chain = (bytes(size), chain)
    for tried in range(64):
        probe = type("_Probe", (), {})
        if id(probe) >> 4 & 7 == number & 7:
            break
        chain = (probe, bytes(512 + 16 * (tried % 7)), chain)
    _filler.append(chain)
    del probe
    gc.collect()


def _shuffle_heap(number: int) -> None:
    """Moves the places where new objects go, by an amount and in an order that differ between worlds.

    Small objects take the place that was freed last, of their size or, for some types, of their type.
    """
    makers: list[Callable[[], object]] = [
        list, dict, set, object, _Plain, lambda: [0], lambda: {"a": 1}, lambda: (_filler, number),
        lambda: (lambda: number), lambda: number * 1.5, lambda: number << 40,
    ]  # fmt: skip
    makers += [partial(bytes, size) for size in range(1, 480, 16)]
    _filler.append(bytearray((number * 37 % 64 + 1) * 4096 + number * 16))
    order = sorted(range(24), key=lambda place: (place * place * 7 + place * number * 13 + number * 5) % 31)
    for make in makers:
        _filler.extend(make() for _ in range(40 + number * 29 % 31))
        waiting: list[object] = [make() for _ in order]
        # Some are freed, one here and one there; the others stay.
        for place in order[: 7 + number % 5]:
            waiting[place] = None
        _filler.append(waiting)
    # Objects that this call freed at its end would leave the program's first ones equal places in all worlds.
    _filler.extend((makers, order))


if "WORLD" in globals():
    change(*globals()["WORLD"])
