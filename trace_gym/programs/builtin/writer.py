"""What the families write programs with: text with placeholders, and choices that follow from the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from textwrap import dedent, indent

from trace_gym.programs.draws import Draws

#: Positions of the dial that sizes are read from: 0 is the smallest, TURNS - 1 next to the largest.
TURNS = 1024

_HOLE = re.compile(r"\$(\w+)")
_ALONE = re.compile(r"([ \t]*)\$(\w+)")


class Writer(Draws):
    """The choices for one program.

    Args:
        seed: What the choices follow from.
        level: 1 … 10: how many pieces a program has.
        dial: 0 … TURNS - 1: how much work they do. Turning it changes sizes only.
    """

    def __init__(self, seed: int, level: int, dial: int) -> None:
        super().__init__(seed)
        self.level = level
        self.dial = dial
        #: About as many lines of output as the level asks for.
        self.prints = level + self.below(2 + level // 2) if level > 2 else level
        self._fstrings = self.chance(50)
        self._colon = self.choice((":", ":", " =", " is", " ->"))

    def size(self, low: int, high: int) -> int:
        """A size between ``low`` >= 1 and ``high``, a geometric step for each turn of the dial."""
        # Bisection by geometric means, with 16 bits after the point: whole numbers only, equal everywhere.
        below, above = low << 16, high << 16
        for bit in range(TURNS.bit_length() - 2, -1, -1):
            middle = isqrt(below * above)
            if self.dial >> bit & 1:
                below = middle
            else:
                above = middle
        return (below + (1 << 15)) >> 16

    def grow(self, low: int, high: int) -> int:
        """A number of things written out, such as items of a list: ``low`` at level 1, ``high`` at 10."""
        return low + ((high - low) * (self.level - 1) + self.below(9)) // 9

    def at(self, level: int, text: str, below: int = 11) -> str:
        """``text`` from this level on, and below another; elsewhere nothing."""
        return dedent(text).strip("\n") if level <= self.level < below else ""

    def maybe(self, level: int, text: str, percent: int = 50) -> str:
        """``text`` sometimes, from this level on; elsewhere nothing."""
        drawn = self.chance(percent)
        return self.at(level, text) if drawn else ""

    def some(self, texts: Sequence[str], least: int, most: int) -> str:
        """Some of the texts, in random order: ``least`` at level 1, ``most`` at level 10."""
        return join(*self.sample(texts, min(self.grow(least, most), len(texts))))

    def show(self, label: str, *values: str) -> str:
        """A print of a label and expressions, in the manner this program has throughout."""
        if self._fstrings and not any(mark in value for value in values for mark in '"{}\\!:'):
            return f'print(f"{label}{self._colon} {" ".join(f"{{{value}}}" for value in values)}")'
        return f'print("{label}{self._colon}", {", ".join(values)})'

    def tell(self, noun: str, *values: str) -> str:
        """A print of the first value's name, the value, and more values, in this program's manner."""
        first, rest = values[0], values[1:]
        if self._fstrings and not any(mark in value for value in values for mark in '"{}\\!:'):
            return f'print(f"{noun} {{{first}}}: {" ".join(f"{{{value}}}" for value in rest)}")'
        return f'print("{noun}", {", ".join(values)})'

    def sometimes(self, counter: str, total: int, text: str) -> str:
        """``text`` under a condition on a counter, so that ``total`` passes print what the level asks for."""
        every = max(1, total // self.prints)
        text = dedent(text).strip("\n")
        return text if every == 1 else f"if {counter} % {every} == 0:\n{indent(text, '    ')}"

    def main(self, body: str, level: int = 4, percent: int = 40) -> str:
        """``body``, or, sometimes from this level on, a function `main` that holds it and its call."""
        if self.chance(percent) and self.level >= level:
            return f"def main():\n{indent(body, '    ')}\n\n\nmain()"
        return body


def fill(text: str, /, **values: object) -> str:
    """The text with its $placeholders replaced; what replaces them may have placeholders of its own.

    A placeholder alone on its line takes a text of many lines, all indented as it was; an empty text takes
    the line away. Elsewhere a value stands for itself and has one line.

    Raises:
        KeyError: a placeholder that no value was given for.
        ValueError: many lines where one is expected.
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
    """A list of strings as it is written in a program."""
    return f"[{', '.join(map(quoted, items))}]"


def quoted(text: str) -> str:
    """A string as it is written in a program; it holds no quotes and no backslashes."""
    return f'"{text}"'


def spaced(start: int, stop: int, stride: int) -> str:
    """The arguments of a range; a stride of one is left out."""
    return f"{start}, {stop}" + (f", {stride}" if stride != 1 else "")


def spread(name: str, items: Sequence[str], brackets: str = "[]", width: int = 88) -> str:
    """An assignment of a list (or dictionary) of items, on one line or on as many as it takes."""
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
    """A function or a class: its head, without "def" or with "class", and its body, filled."""
    start = head if head.startswith("class ") else f"def {head}"
    filled = re.sub(r"\n{3,}", "\n\n", fill(body, **values)).strip("\n")
    return f"{fill(start, **values)}:\n{indent(filled, '    ')}"


def under(head: str, body: str) -> str:
    """A body indented under a head, as that of a loop; ``head`` brings its colon."""
    return f"{head}\n{indent(body.strip(chr(10)), '    ')}"


def join(*parts: str) -> str:
    """The texts that are not empty, one under the other."""
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def program(*blocks: str) -> str:
    """A whole program from its blocks: two empty lines around functions and classes, else one."""
    filled = [block.strip("\n") for block in blocks if block.strip()]
    text = filled[0]
    for before, after in pairwise(filled):
        wide = _defines(before) or _defines(after)
        text += ("\n\n\n" if wide else "\n\n") + after
    return re.sub(r"\n{4,}", "\n\n\n", _apart(text)) + "\n"


def _apart(text: str) -> str:
    """An empty line before each nested function that follows other statements."""
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

    source: str
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of story.

    Attributes:
        write: Makes a program, or only its source, from a writer.
        lowest, highest: The levels it serves.
    """

    write: Callable[[Writer], str | Draft]
    lowest: int = 1
    highest: int = 10


@dataclass(frozen=True, slots=True)
class Family:
    """Programs of one kind.

    Attributes:
        name: As `family=` takes it.
        templates: What its programs are written from; a task draws one that serves its level.
    """

    name: str
    templates: Sequence[Template]
