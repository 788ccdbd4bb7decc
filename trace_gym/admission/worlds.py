"""Varied worlds: a program whose output is its own prints the same in each.

Worlds differ in hash seed, addresses in memory, process id, folder, environment, host name, time zone, clock
and switching of threads. World 0 is the sandbox as it is; its output is the truth. The others are made inside
the program's process (``trace_gym.admission.inside.world``), each by a worker with its own hash seed.

One world in two tells two orders of a set of two texts apart, so a program that may show such an order runs
in twice as many.
"""

from __future__ import annotations

import marshal
from functools import lru_cache
from pathlib import Path
from typing import Any

from trace_gym.sandbox import Job

HASH_SEEDS = tuple(range(16))
"""The hash seeds of the worlds. The sandbox that runs them has a worker for each, started when needed."""

WORLDS, WORLDS_FOR_SETS = 8, 16
"""Number of worlds of a program, and of one that may show the order of a set."""

_INSIDE = Path(__file__).parent / "inside"

# In POSIX's notation the sign is that of the way back to UTC. Hours, half hours and days differ.
_ZONES = (
    "UTC0", "AAA-5:30", "BBB8", "CCC-13", "DDD3:30", "EEE-1", "FFF11", "GGG-9:45",
    "HHH5", "III-6", "JJJ10:30", "KKK-12", "LLL1", "MMM-3:15", "NNN7", "OOO-10",
)  # fmt: skip

_DAY = 86_400

# No function is made for it: one that is freed leaves its place, in all worlds alike, to the program's first.
_WORLD = """\
exec(__import__("marshal").loads({inside!r}), {{"__name__": "world", "WORLD": {world!r}}})
exec(__import__("marshal").loads({compiled!r}))
"""


def jobs(code: str, stdin: str, count: int) -> list[Job]:
    """Returns the runs of a program in its worlds, world 0 first.

    Raises:
        SyntaxError: the program is not Python.
    """
    compiled = marshal.dumps(compile(code, "program.py", "exec", dont_inherit=True))
    return [
        Job(code if number == 0 else _enter(number, compiled), stdin, HASH_SEEDS[number])
        for number in range(count)
    ]


def load_inside(name: str) -> bytes:
    """Returns a module of ``trace_gym.admission.inside`` as ``marshal`` writes its code."""
    return _load(_INSIDE / f"{name}.py")


@lru_cache(maxsize=8)
def _load(path: Path) -> bytes:
    return marshal.dumps(compile(path.read_text(encoding="utf-8"), path.name, "exec", dont_inherit=True))


def _enter(number: int, compiled: bytes) -> str:
    return _WORLD.format(inside=load_inside("world"), world=_describe(number), compiled=compiled)


def _describe(number: int) -> dict[str, Any]:
    """Returns what is otherwise in a world, as ``trace_gym.admission.inside.world.change`` takes it."""
    return {
        "number": number,
        "pid": 300 + 37 * number + number % 3,
        "folder": "w" * (1 + number % 5) + str(number * 7),
        "host": f"host{number * 13}",
        "zone": _ZONES[number],
        # Years, months, days, hours, minutes and seconds differ, and none of them in step with another.
        "clock": number * (400 * _DAY + 7 * 3600 + 13 * 60 + 29),
        "names": {
            "HOME": f"/home/user{number}",
            "USER": f"user{number}",
            "LANG": ("C", "de_DE.UTF-8", "tr_TR.UTF-8")[number % 3],
            "COLUMNS": str(40 + 17 * number),
            "PATH": ":".join(["/bin", "/usr/bin", "/opt/bin"][: 1 + number % 3]),
            f"WORLD_{number}": "1",
        },
    }
