"""Programs that count the lines they execute.

Tracing hooks report lines differently on different Pythons (loop headers, comprehensions, the ``else``
of a ``try``), and they apply to a whole thread. So we insert a call at each line of the program. The count is
then a property of the language, equal on every Python. The one exception is how often ``sort`` compares:
builtin programs must not sort objects with an order of their own.

Each executed statement counts as a line, and so does each pass of a loop or a comprehension, and each call of
a lambda. Docstrings, other constants, ``global``, ``nonlocal`` and imports from ``__future__`` do not count:
they execute nothing.
"""

from __future__ import annotations

import ast
import marshal
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from trace_gym.syntax import parse, too_deep_is_an_error

TICK = "__tick__"
"""The function that a counted program calls at each line, without arguments; it must return None."""

LIMITED = "line limit"
"""The end of the standard error of a program from ``limit_lines`` that was stopped."""

# write and _exit are bound before the program runs, because the program may replace them. The counted program
# has the main module to itself, so code that inspects this module finds the program.
_HARNESS = """\
def {tick}():
    import os
    left, write, leave = {limit}, os.write, os._exit
    def tick():
        nonlocal left
        left -= 1
        if left < 0:
            write(2, b"{mark}")
            leave(1)
    return tick
{tick} = {tick}()
exec(__import__("marshal").loads({compiled!r}))
"""

# Nodes with lists of statements, and the names of the lists.
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case, ast.Module)
_LISTS = ("body", "orelse", "finalbody")


def limit_lines(code: str, line_limit: int) -> str:
    """Returns a program that does what ``code`` does, but stops after ``line_limit`` lines.

    Code that a program makes while it runs (``exec``, ``import``) is not counted. The result is for untrusted
    programs in the sandbox. A program can remove its own counter, but gains nothing: it then fails or runs
    uncounted. When a program is stopped, its standard error ends in ``LIMITED`` and its standard output may
    be incomplete. The result runs only on this release of Python.

    Raises:
        SyntaxError: the program is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read it.
    """
    tree = parse(code)
    with too_deep_is_an_error():
        count_lines(tree)
        compiled = compile(tree, "<program>", "exec", dont_inherit=True)
    return _HARNESS.format(tick=TICK, limit=line_limit, mark=LIMITED, compiled=marshal.dumps(compiled))


def count_lines(tree: ast.Module) -> None:
    """Inserts a call before every statement, at the head of every pass, and into every lambda."""
    for node in ast.walk(tree):
        if isinstance(node, _BLOCKS):
            for name in _LISTS:
                statements = getattr(node, name, None)
                if statements:
                    statements[:] = _insert_ticks(node, name, statements)
        elif isinstance(node, ast.comprehension):
            test = ast.UnaryOp(ast.Not(), call_at(node.target, TICK))
            node.ifs.insert(0, ast.copy_location(test, node.target))
        elif isinstance(node, ast.Lambda):
            both = ast.BoolOp(ast.Or(), [call_at(node.body, TICK), node.body])
            node.body = ast.copy_location(both, node.body)


def call_at(place: ast.expr | ast.stmt, name: str, *arguments: int) -> ast.Call:
    """Returns a call at the position of another node: the compiler needs a position for every node."""
    at: dict[str, Any] = {"lineno": place.lineno, "col_offset": place.col_offset}
    constants: list[ast.expr] = [ast.Constant(argument, **at) for argument in arguments]
    return ast.Call(ast.Name(name, ast.Load(), **at), constants, [], **at)


def statement_at(place: ast.stmt, name: str, *arguments: int) -> ast.stmt:
    """Returns a call as a statement, at the position of another one."""
    call = call_at(place, name, *arguments)
    return ast.copy_location(ast.Expr(call), call)


def opening(body: list[ast.stmt]) -> int:
    """Returns how many statements must stay at the start of a body: docstring, ``__future__``."""
    return len(list(takewhile(_executes_nothing, body)))


def _insert_ticks(node: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    if field == "body" and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        yield statement_at(node, TICK)
    for statement in body:
        if not _executes_nothing(statement):
            yield statement_at(statement, TICK)
        yield statement


def _executes_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant()) | ast.Global() | ast.Nonlocal() | ast.ImportFrom("__future__"):
            return True
    return False
