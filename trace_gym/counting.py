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

#: What a counted program calls at each line, without arguments; it has to return nothing.
TICK = "__tick__"


class Counter(ast.NodeTransformer):
    """Puts a call before every statement, at the head of every pass, and into every lambda."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, list(_ticked(node, name, value)))
        match node:
            case ast.comprehension():
                node.ifs.insert(0, ast.UnaryOp(ast.Not(), _tick()))
            case ast.Lambda():
                node.body = ast.BoolOp(ast.Or(), [_tick(), node.body])
        return node


def opening(body: list[ast.stmt]) -> int:
    """How many statements at the start of a body have to stay there: docstring, ``__future__``."""
    return len(list(takewhile(_executes_nothing, body)))


def _ticked(node: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    if field == "body" and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        yield ast.Expr(_tick())
    for statement in body:
        if not _executes_nothing(statement):
            yield ast.Expr(_tick())
        yield statement


def _executes_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant()) | ast.Global() | ast.Nonlocal() | ast.ImportFrom("__future__"):
            return True
    return False


def _tick() -> ast.Call:
    return ast.Call(ast.Name(TICK, ast.Load()), [], [])
