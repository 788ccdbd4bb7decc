"""The injection that changes nothing but the output, and there adds whole lines only.

It inserts lines of text: the program's own text stays as it is, to the byte, and is the same on every Python
that can read the program. Prints go into modules, functions, loops, branches and every other suite that
executes (but class bodies), after an assignment or an ``if``, and show names of their own scope alone, each
certainly bound (:mod:`trace_gym.inject.flow`). A program in which a print could be noticed gets none
(:mod:`trace_gym.inject.hazards`), and a part of one in which it could go wrong, none there
(:mod:`trace_gym.inject.closed`).

What a print shows is told by ``type(x)``, and not, as upstream does, by ``isinstance``: the latter reads
``x.__class__``, and takes for a ``str`` what may bring its own ``__repr__``, so that it can run the program's
code. For exact ints, floats, strs, bools and None the two show the same.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Collection, Sequence

from trace_gym.inject.closed import closed_scopes
from trace_gym.inject.flow import Point, points
from trace_gym.inject.hazards import hazard
from trace_gym.inject.prints import MOST_NAMES, tag
from trace_gym.source import Source, too_deep_is_an_error

_SHOWN = "repr({0}) if type({0}) in (int, float, str, bool, type(None)) else type({0}).__name__"

# What may follow a statement on its last line: nothing that belongs to another one.
_REST = re.compile(r"[ \t\f]*;?[ \t\f]*(#.*)?")


def inject_safe(source: str, seed: int, most: int) -> str:
    """The program with up to ``most`` debug prints; as it is, where :func:`hazard` finds something.

    Raises:
        ProgramError: The source does not parse, or is nested too deeply.
    """
    program = Source(source)
    with too_deep_is_an_error():
        if hazard(program) is not None:
            return source
        return place(program, seed, most, closed_scopes(program.tree))


def place(program: Source, seed: int, most: int, closed: Collection[ast.AST] = ()) -> str:
    """Draw points and names, and insert the prints, numbered in the order of the text.

    Only ``random.Random(seed).random()`` is drawn from: Python promises its sequence to every version.
    """
    rng = random.Random(seed)
    pieces: list[str] = []
    count = end = 0
    for point in points(program, closed):
        if count == most:
            break
        line = _new_line(program, point)
        if line is None or rng.random() >= point.chance:
            continue
        at = program.line_end(point.statement)
        pieces += [program.text[end:at], line, _print(count, _draw(point.bound, rng))]
        count, end = count + 1, at
    return "".join([*pieces, program.text[end:]])


def _new_line(program: Source, point: Point) -> str | None:
    """The line end and the indentation that a print after the statement needs; None if no line fits there."""
    indentation = program.before(point.first)
    is_own_line = indentation.strip(" \t\f") == "" and not program.is_continued(point.first)
    if not is_own_line or not _REST.fullmatch(program.after(point.statement)):
        return None
    # A form feed starts the count of the indentation anew.
    return program.newline(point.statement) + indentation.rpartition("\f")[2]


def _draw(bound: Sequence[str], rng: random.Random) -> list[str]:
    """One to three names, every number as likely as the others, and every choice of that many names."""
    left = list(bound)
    names = 1 + int(rng.random() * min(MOST_NAMES, len(left)))
    return [left.pop(int(rng.random() * len(left))) for _ in range(names)]


def _print(index: int, names: Sequence[str]) -> str:
    return f"print({', '.join([repr(tag(index)), *(_SHOWN.format(name) for name in names)])})"
