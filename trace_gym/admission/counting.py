"""Programs that count the lines they execute.

Tracing hooks report lines a little differently from one Python to the next (loop headers, comprehensions, the
`else` of a `try`), and they belong to the whole thread. So a program is counted by itself: its syntax tree
gets a call at each line, and what is counted is a property of the language, equal on every Python. (Only how
often `sort` compares is not: a program whose objects have an order of their own is not to sort them.)

Each executed statement is a line, and so is each pass of a loop and of a comprehension and each call of a
lambda. What executes nothing is none: docstrings and other constants, ``global``, ``nonlocal``, and imports
from ``__future__``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

#: What a counted program calls at each line, without arguments; it has to return nothing.
TICK = "__tick__"

# What has statements in lists, and what the lists are called.
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case, ast.Module)
_LISTS = ("body", "orelse", "finalbody")


def count_lines(tree: ast.Module) -> None:
    """Put a call before every statement, at the head of every pass, and into every lambda of a program."""
    for node in ast.walk(tree):
        if isinstance(node, _BLOCKS):
            for name in _LISTS:
                statements = getattr(node, name, None)
                if statements:
                    statements[:] = _ticked(node, name, statements)
        elif isinstance(node, ast.comprehension):
            test = ast.UnaryOp(ast.Not(), _tick(node.target))
            node.ifs.insert(0, ast.copy_location(test, node.target))
        elif isinstance(node, ast.Lambda):
            both = ast.BoolOp(ast.Or(), [_tick(node.body), node.body])
            node.body = ast.copy_location(both, node.body)


def call_at(place: ast.expr | ast.stmt, name: str, *arguments: int) -> ast.Call:
    """A call that stands where something else does: compiling asks of every node where it stands."""
    at: dict[str, Any] = {"lineno": place.lineno, "col_offset": place.col_offset}
    constants: list[ast.expr] = [ast.Constant(argument, **at) for argument in arguments]
    return ast.Call(ast.Name(name, ast.Load(), **at), constants, [], **at)


def opening(body: list[ast.stmt]) -> int:
    """How many statements at the start of a body have to stay there: docstring, ``__future__``."""
    return len(list(takewhile(_executes_nothing, body)))


def _ticked(node: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    if field == "body" and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        yield _statement(_tick(node))
    for statement in body:
        if not _executes_nothing(statement):
            yield _statement(_tick(statement))
        yield statement


def _executes_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant()) | ast.Global() | ast.Nonlocal() | ast.ImportFrom("__future__"):
            return True
    return False


def _tick(place: ast.expr | ast.stmt) -> ast.Call:
    return call_at(place, TICK)


def _statement(call: ast.Call) -> ast.Expr:
    return ast.copy_location(ast.Expr(call), call)
