"""Programs as text with positions: the start and end in the text of each node of the syntax tree."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from task_gym.errors import ProgramError

# str.splitlines would also break at form feeds and other characters that end no line in Python.
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse(code: str) -> ast.Module:
    """Parses a program as ``ast.parse`` does, without warnings.

    Raises:
        SyntaxError: the text is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read the text.
    """
    try:
        with too_deep_is_an_error(), warnings.catch_warnings(action="ignore"):
            return ast.parse(code)
    except ValueError as error:  # lone surrogates; null bytes, in older releases
        raise ProgramError(f"the program is not text that Python can read: {error}") from error


def compiles(code: str) -> bool:
    """Returns whether a text compiles."""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(code, "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@contextmanager
def too_deep_is_an_error() -> Iterator[None]:
    """Raises ``ProgramError`` if the program in hand is nested too deeply."""
    try:
        yield
    except (RecursionError, MemoryError) as error:
        raise ProgramError("the program is nested too deeply to be worked on") from error


class ParsedProgram:
    """A program: its text, its syntax tree, and positions of nodes in the text.

    Attributes:
        code: The program's text, unchanged.
        tree: Its syntax tree.

    Raises:
        ProgramError: this Python cannot read the program.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        try:
            self.tree = parse(code)
        except SyntaxError as error:
            raise ProgramError(f"the program is not Python: {error.msg}, line {error.lineno}") from error
        ends = list(_LINE_END.finditer(code))
        self._starts = [0, *(match.end() for match in ends)]
        self._ends = [*(match.start() for match in ends), len(code)]
        self._newline = ends[0].group() if ends else "\n"

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Returns the index in the text of a node's first character."""
        return self._index(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Returns the index in the text after a node's last character."""
        return self._index(*_last(node))

    def of(self, node: ast.expr | ast.stmt) -> str:
        """Returns a node's own text, without the parentheses around it."""
        return self.code[self.start(node) : self.end(node)]

    def before(self, node: ast.expr | ast.stmt) -> str:
        """Returns the text before a node on its first line."""
        return self.code[self._starts[node.lineno - 1] : self.start(node)]

    def after(self, node: ast.expr | ast.stmt) -> str:
        """Returns the text after a node on its last line, without the line end."""
        return self.code[self.end(node) : self.line_end(node)]

    def line_end(self, node: ast.expr | ast.stmt) -> int:
        """Returns the index after the last character of a node's last line, before the line end."""
        return self._ends[_last(node)[0] - 1]

    def newline(self, node: ast.expr | ast.stmt) -> str:
        """Returns the line end after a node's last line, or the text's first line end if there is none."""
        line = _last(node)[0]
        return (
            self.code[self._ends[line - 1] : self._starts[line]]
            if line < len(self._starts)
            else self._newline
        )

    def is_continued(self, node: ast.stmt) -> bool:
        """Returns whether the line before a statement ends in a backslash, and so may continue into it."""
        return node.lineno > 1 and self.code.endswith("\\", 0, self._ends[node.lineno - 2])

    def _index(self, line: int, column: int) -> int:
        """Returns the index of a line (from 1) and a column (in bytes of UTF-8) in the text."""
        start, end = self._starts[line - 1], self._ends[line - 1]
        text = self.code[start:end]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))


def _last(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Returns line (from 1) and column (in bytes) of a node's end."""
    assert node.end_lineno is not None and node.end_col_offset is not None  # ast.parse sets them
    return node.end_lineno, node.end_col_offset
