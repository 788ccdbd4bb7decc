"""The writer: choices that follow from a task id, and functions that put a program's text together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from textwrap import dedent, indent

from trace_gym.programs.draws import Draws

#: Number of positions of the dial, which sets the sizes: from 0 for the smallest to TURNS - 1.
TURNS = 1024

_HOLE = re.compile(r"\$(\w+)")
_ALONE = re.compile(r"([ \t]*)\$(\w+)")


class Writer(Draws):
    """The choices for one program.

    Args:
        seed: The seed of the choices.
        level: The level, 1 … 10. A higher level has more parts in a program.
        dial: The position of the dial, 0 … ``TURNS - 1``. All sizes follow from it.
    """

    def __init__(self, seed: int, level: int, dial: int) -> None:
        super().__init__(seed)
        self.level = level
        self.dial = dial
        #: About the number of output lines that the level asks for.
        self.prints = level + self.below(2 + level // 2) if level > 2 else level
        self._fstrings = self.chance(50)
        self._colon = self.choice((":", ":", " =", " is", " ->"))

    def size(self, low: int, high: int) -> int:
        """Returns a size from ``low`` to ``high`` that grows geometrically with the dial.

        ``low`` is at least 1. The size takes no draw.
        """
        # Bisection by geometric means in integers, with 16 bits after the point. Floats could differ between
        # platforms.
        below, above = low << 16, high << 16
        for bit in range(TURNS.bit_length() - 2, -1, -1):
            middle = isqrt(below * above)
            if self.dial >> bit & 1:
                below = middle
            else:
                above = middle
        return (below + (1 << 15)) >> 16

    def grow(self, low: int, high: int) -> int:
        """Returns a count, such as of items in a list: ``low`` at level 1, ``high`` at level 10."""
        return low + ((high - low) * (self.level - 1) + self.below(9)) // 9

    def at(self, level: int, text: str, below: int = 11) -> str:
        """Returns ``text`` from ``level`` on and below ``below``, and ``""`` at other levels."""
        return dedent(text).strip("\n") if level <= self.level < below else ""

    def maybe(self, level: int, text: str, percent: int = 50) -> str:
        """Returns ``text`` in ``percent``% of programs from ``level`` on, else ``""``; draws at any level."""
        drawn = self.chance(percent)
        return self.at(level, text) if drawn else ""

    def some(self, texts: Sequence[str], least: int, most: int) -> str:
        """Returns some of the texts in random order: ``least`` at level 1, ``most`` at level 10."""
        return join(*self.sample(texts, min(self.grow(least, most), len(texts))))

    def show(self, label: str, *values: str) -> str:
        """Returns a print of a label and expressions. All prints of a program have the same style."""
        if self._fits_fstring(values):
            return f'print(f"{label}{self._colon} {" ".join(f"{{{value}}}" for value in values)}")'
        return f'print("{label}{self._colon}", {", ".join(values)})'

    def tell(self, noun: str, *values: str) -> str:
        """Returns a print of ``noun``, the first value and the others, in the same style as ``show``."""
        first, rest = values[0], values[1:]
        if self._fits_fstring(values):
            return f'print(f"{noun} {{{first}}}: {" ".join(f"{{{value}}}" for value in rest)}")'
        return f'print("{noun}", {", ".join(values)})'

    def _fits_fstring(self, values: Sequence[str]) -> bool:
        return self._fstrings and not any(mark in value for value in values for mark in '"{}\\!:')

    def sometimes(self, counter: str, total: int, text: str) -> str:
        """Returns ``text`` under a condition on a counter.

        ``total`` passes then print about ``self.prints`` times.
        """
        every = max(1, total // self.prints)
        text = dedent(text).strip("\n")
        return text if every == 1 else f"if {counter} % {every} == 0:\n{indent(text, '    ')}"

    def main(self, body: str) -> str:
        """Returns ``body``; in 40% of programs from level 4 on, inside a function ``main``."""
        if self.chance(40) and self.level >= 4:
            return f"def main():\n{indent(body, '    ')}\n\n\nmain()"
        return body


def fill(text: str, /, **values: object) -> str:
    """Returns the text with its ``$placeholders`` replaced.

    Values may contain placeholders too. A placeholder alone on its line takes a value of several lines and
    indents them all; an empty value removes the line. Elsewhere a value must have one line.

    Raises:
        KeyError: A placeholder has no value.
        ValueError: A placeholder within a line has a value of several lines.
    """
    lines: list[str] = []
    for line in dedent(text).strip("\n").split("\n"):
        alone = _ALONE.fullmatch(line)
        if alone is None:
            while _HOLE.search(line):
                line = _HOLE.sub(lambda hole: _one_line(values[hole[1]]), line)
            lines.append(line.rstrip())
        elif block := str(values[alone[2]]).strip("\n"):
            lines.append(indent(fill(block, **values), alone[1]))
    return "\n".join(lines)


def _one_line(value: object) -> str:
    if "\n" in (text := str(value)):
        raise ValueError(f"placeholder in a line: {text!r} has more than one line")
    return text


def strings(items: Sequence[str]) -> str:
    """Returns a list of strings as code."""
    return f"[{', '.join(map(quoted, items))}]"


def quoted(text: str) -> str:
    """Returns a string as code; ``text`` has no quotes and no backslashes."""
    return f'"{text}"'


def spaced(start: int, stop: int, stride: int) -> str:
    """Returns the arguments of a range, without the stride if it is 1."""
    return f"{start}, {stop}" + (f", {stride}" if stride != 1 else "")


def spread(name: str, items: Sequence[str], brackets: str = "[]", width: int = 88) -> str:
    """Returns an assignment of a list or dictionary, on several lines if one is too short."""
    first, last = brackets[0], brackets[1]
    line = f"{name} = {first}{', '.join(items)}{last}"
    if len(line) <= width:
        return line
    rows: list[str] = []
    short = max(map(len, items)) < 14
    for item in items:
        if short and rows and len(rows[-1]) + len(item) < width:
            rows[-1] += f" {item},"
        else:
            rows.append(f"    {item},")
    return "\n".join([f"{name} = {first}", *rows, last])


def define(head: str, body: str, /, **values: object) -> str:
    """Returns a function or a class from its head and its body, both filled with the values.

    A function's head is without ``def``; a class's head begins with ``class``.
    """
    start = head if head.startswith("class ") else f"def {head}"
    filled = re.sub(r"\n{3,}", "\n\n", fill(body, **values)).strip("\n")
    return f"{fill(start, **values)}:\n{indent(filled, '    ')}"


def under(head: str, body: str) -> str:
    """Returns a body indented under a head, such as a loop's; ``head`` includes the colon."""
    return f"{head}\n{indent(body.strip(chr(10)), '    ')}"


def join(*parts: str) -> str:
    """Returns the texts that are not empty, one below the other."""
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def program(*blocks: str) -> str:
    """Returns a program from its blocks: two empty lines around functions and classes, else one."""
    filled = [block.strip("\n") for block in blocks if block.strip()]
    text = filled[0]
    for before, after in pairwise(filled):
        wide = _defines(before) or _defines(after)
        text += ("\n\n\n" if wide else "\n\n") + after
    return re.sub(r"\n{4,}", "\n\n\n", _apart(text)) + "\n"


def _apart(text: str) -> str:
    """Returns the text with an empty line before each nested function that follows other statements."""
    lines: list[str] = []
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        if depth and re.match(r" +(def|@)", line) and lines[-1] and not lines[-1].lstrip().startswith("@"):
            before = len(lines[-1]) - len(lines[-1].lstrip())
            if before >= depth:
                lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _defines(block: str) -> bool:
    return re.search(r"^(def|class|@)", block, re.MULTILINE) is not None


@dataclass(frozen=True, slots=True)
class Draft:
    """A program before it is measured."""

    code: str
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A template of programs in a family.

    Attributes:
        write: Returns a program, or only its code, from a writer.
        lowest, highest: The first and the last level that use the template.
    """

    write: Callable[[Writer], str | Draft]
    lowest: int = 1
    highest: int = 10


@dataclass(frozen=True, slots=True)
class Family:
    """A family of programs.

    Attributes:
        name: The name, as the argument ``family`` takes it.
        templates: The templates; a task draws one of those for its level.
    """

    name: str
    templates: Sequence[Template]
