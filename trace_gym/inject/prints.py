"""The form of a debug print, in a program and in its output."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

AFTER_ASSIGNMENT, AFTER_IF = 0.6, 0.4
"""The probabilities that a print follows an assignment and an ``if``."""

MOST_NAMES = 3
"""Names that one debug print shows, at most."""

PREFIX = "__DBG_"
"""The beginning of a debug print's first argument."""

USED = frozenset(["print", "repr", "type", "int", "float", "str", "bool"])
"""Builtins that a debug print of style "safe" calls or compares with."""

_TAG = re.compile(r"__DBG_\d+__")
_PRINTED = re.compile(r"__DBG_\d+__[^\n]*\n?")


def chance_after(statement: ast.stmt) -> float:
    """Returns the probability that a print follows a statement, as upstream has it."""
    match statement:
        case ast.Assign() | ast.AugAssign():
            return AFTER_ASSIGNMENT
        case ast.If():
            return AFTER_IF
        case _:
            return 0.0


def write_print(index: int, shown: Iterable[str]) -> str:
    """Returns debug print number ``index``, counted from 0, of these expressions."""
    return f"print({', '.join([repr(f'{PREFIX}{index}__'), *shown])})"


def tag_in(line: str) -> str | None:
    """Returns the first tag in a line of output, or None."""
    match = _TAG.search(line)
    return None if match is None else match.group()


def strip_debug(output: str) -> str:
    """Returns an output without the text of debug prints, from each tag to the end of its line.

    If the program had begun a line before a debug print, the rest of that line is joined to it.
    """
    return _PRINTED.sub("", output)


def is_debug_print(statement: ast.AST) -> bool:
    """Returns whether a statement is a debug print, of either style."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(first)), *_])):
            return first.startswith(PREFIX)
        case _:
            return False
