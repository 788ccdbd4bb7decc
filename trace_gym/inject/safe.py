"""The injection that changes only the output, and adds only whole lines to it.

It inserts lines of text and keeps every byte of the program's own text. The result is the same on every
Python that can read the program. Prints go after an assignment or an ``if``, into every suite that executes,
except class bodies. They show certainly bound names of their own scope (``trace_gym.inject.flow``). A
program that could notice a print gets none, nor does a part in which a print could go wrong
(``trace_gym.inject.hazards``).

Prints use ``type(x)``, and not ``isinstance`` as upstream does. ``isinstance`` reads ``x.__class__`` and
accepts subclasses of ``str`` with their own ``__repr__``, so it can run the program's code. For exact ints,
floats, strs, bools and None both show the same.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Collection, Sequence

from trace_gym.inject.flow import Point, points
from trace_gym.inject.hazards import find_closed_scopes, hazard
from trace_gym.inject.prints import MOST_NAMES, write_print
from trace_gym.syntax import ParsedProgram, too_deep_is_an_error

_SHOWN = "repr({0}) if type({0}) in (int, float, str, bool, type(None)) else type({0}).__name__"

# The rest of a statement's last line: nothing of another statement.
_REST = re.compile(r"[ \t\f]*;?[ \t\f]*(#.*)?")


def inject_safe(code: str, seed: int, most: int) -> str:
    """Returns the program with up to ``most`` debug prints, or unchanged if ``hazard`` objects.

    Raises:
        ProgramError: the program does not parse, or is nested too deeply.
    """
    program = ParsedProgram(code)
    with too_deep_is_an_error():
        if hazard(program) is not None:
            return code
        return place(program, seed, most, find_closed_scopes(program.tree))


def place(program: ParsedProgram, seed: int, most: int, closed: Collection[ast.AST] = ()) -> str:
    """Returns the program with prints at drawn points, numbered in the order of the text.

    It draws only with ``random.Random(seed).random()``: Python promises this sequence for every version.
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
        shown = map(_SHOWN.format, _draw(point.bound, rng))
        pieces += [program.code[end:at], line, write_print(count, shown)]
        count, end = count + 1, at
    return "".join([*pieces, program.code[end:]])


def _new_line(program: ParsedProgram, point: Point) -> str | None:
    """Returns the line end and indentation for a print after the statement; None if no line fits there."""
    indentation = program.before(point.first)
    is_own_line = indentation.strip(" \t\f") == "" and not program.is_continued(point.first)
    if not is_own_line or not _REST.fullmatch(program.after(point.statement)):
        return None
    # A form feed starts the count of the indentation anew.
    return program.newline(point.statement) + indentation.rpartition("\f")[2]


def _draw(bound: Sequence[str], rng: random.Random) -> list[str]:
    """Returns one to three names, uniform in their number and in the choice of that many names."""
    left = list(bound)
    names = 1 + int(rng.random() * min(MOST_NAMES, len(left)))
    return [left.pop(int(rng.random() * len(left))) for _ in range(names)]
