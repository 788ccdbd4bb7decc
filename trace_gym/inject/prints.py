"""What a debug print looks like, in a program and in its output."""

from __future__ import annotations

import ast
import re

#: How likely a print follows an assignment and an ``if``.
AFTER_ASSIGNMENT = 0.6
AFTER_IF = 0.4

#: Names that one print shows, at most.
MOST_NAMES = 3

#: What the first argument of a debug print begins with.
PREFIX = "__DBG_"

#: Builtins that a debug print of style "safe" calls or compares with.
USED = frozenset(["print", "repr", "type", "int", "float", "str", "bool"])

_TAG = re.compile(r"__DBG_\d+__")
_PRINTED = re.compile(r"__DBG_\d+__[^\n]*\n?")


def tag(index: int) -> str:
    """The first argument of debug print number ``index``, counted from 0."""
    return f"{PREFIX}{index}__"


def tag_in(line: str) -> str | None:
    """The first tag that a line of output holds, or None."""
    match = _TAG.search(line)
    return None if match is None else match.group()


def strip_debug(output: str) -> str:
    """An output without what its debug prints wrote: from each tag to the end of its line.

    A line that the program had begun before a debug print is joined with what follows, as it would be
    without the print.
    """
    return _PRINTED.sub("", output)


def unchanged(output: str, injected: str) -> bool:
    """Whether the output of an injected program, its debug prints taken out, is the output of the program.

    The last word on an injection, whatever the program does: injection reads the text alone.
    """
    return strip_debug(injected) == output


def is_debug_print(statement: ast.AST) -> bool:
    """Whether a statement is a debug print, of either style."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(first)), *_])):
            return first.startswith(PREFIX)
        case _:
            return False
