"""Varied worlds: an honest program, whose output is its own, prints the same in each.

Worlds differ in hash seed, addresses in memory, process, folder, environment, machine, time zone, clock,
memory, order of files, length of compressed data, and in which thread runs first. World 0 is the sandbox as
it is; its output is the truth. The others are made inside the program's process
(``trace_gym.admission.inside.world``), each by a worker with its own hash seed.
"""

from __future__ import annotations

import marshal
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from task_gym.errors import LONGEST
from task_gym.visible import show_controls
from trace_gym.admission.counting import TICK, limit_lines
from trace_gym.admission.inside.guards import MARK
from trace_gym.sandbox import Job
from trace_gym.syntax import too_deep_is_an_error

HASH_SEEDS = tuple(range(20))
"""The hash seeds of all programs. The sandbox that runs them has a worker for each, started when needed."""

WORLDS, WORLDS_FOR_CHANCE = 8, 16
"""Number of worlds of a program, and of one that may show the order of a set, a hash, or chance.

One world in two tells two orders of a set of two texts apart.
"""

_CHANCE = re.compile(
    r"\b(set|frozenset|hash|keys|items|eval|exec|WeakSet|\w*[Tt]hread\w*|random|secrets|urandom|uuid)\b|\{[^:{}]+\}"
)

_INSIDE = Path(__file__).parent / "inside"

# No function is made for it: one that is freed leaves its place, in all worlds alike, to the program's first.
_WORLD = """\
exec(__import__("marshal").loads({inside!r}), {{"__name__": "world", "WORLD": {world!r}}})
exec(__import__("marshal").loads({compiled!r}))
"""

_GUARDED = """\
def {tick}():
    exec(__import__("marshal").loads({inside!r}), {{"__name__": "guards"}})
{tick}()
{limited}"""


def jobs(code: str, stdin: str) -> list[Job]:
    """Returns the runs of a program in its worlds, world 0 first; their outputs must be equal.

    Raises:
        SyntaxError: the program is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read it.
    """
    with too_deep_is_an_error():
        compiled = marshal.dumps(compile(code, "program.py", "exec", dont_inherit=True))
    asks_date = re.search(r"\b(now|utcnow|today)\b", code) is not None
    first, *others = hash_seeds(code)
    return [Job(code, stdin, first)] + [
        Job(_WORLD.format(inside=_load("world"), world=(number, asks_date), compiled=compiled), stdin, seed)
        for number, seed in enumerate(others, start=1)
    ]


def hash_seeds(code: str) -> list[int]:
    """Returns a program's hash seeds, one per world: its text draws them, so no seed suits every program."""
    count = WORLDS_FOR_CHANCE if _CHANCE.search(code) else WORLDS
    order = sorted(HASH_SEEDS, key=lambda seed: sha256(f"{seed} {code}".encode("utf-8", "replace")).digest())
    return order[:count]


def guard_program(code: str, line_limit: int) -> str:
    """Returns a program as ``limit_lines`` does, which also ends when it leaves its folder or sleeps long.

    ``refusal_of`` finds why it ended.

    Raises:
        SyntaxError: the program is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read it.
    """
    return _GUARDED.format(tick=TICK, inside=_load("guards"), limited=limit_lines(code, line_limit))


def refusal_of(stderr: str) -> str:
    """Returns why a guard has stopped a program, from its standard error; "" if none has."""
    return show_controls(stderr.rpartition(MARK)[2][:LONGEST]) if MARK in stderr else ""


@lru_cache(maxsize=2)
def _load(name: str) -> bytes:
    """Returns a module of ``trace_gym.admission.inside`` as ``marshal`` writes its code."""
    path = _INSIDE / f"{name}.py"
    return marshal.dumps(compile(path.read_text(encoding="utf-8"), path.name, "exec", dont_inherit=True))
