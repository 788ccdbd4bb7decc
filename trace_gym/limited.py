"""Programs that count their own lines, for the sandbox."""

from __future__ import annotations
import __future__ as features

import ast
import marshal
from collections.abc import Iterator

from trace_gym.source import parse, too_deep_is_an_error

#: What a program made by :func:`limited` writes to its standard error where it is stopped.
LIMITED = "line limit"

_TICK = "__tick__"

# What it ends with is bound before the program runs, which may put something else in its place. The counted
# program has the main module to itself, as it would have without, so that what looks into that finds it.
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
exec(__import__("marshal").loads({code!r}))
"""


def limited(source: str, line_limit: int) -> str:
    """A program that does what ``source`` does, and stops itself where it executes more lines than these.

    Each executed statement is a line, and so is each pass of a loop and of a comprehension and each call of a
    lambda. What a program makes into code while it runs (``exec``, ``import``) is not counted.

    For programs that nobody vouches for, in the sandbox: one can take its count away from itself, which fails
    or goes on uncounted, and cannot do more than without. Where it is stopped, its standard error ends in
    :data:`LIMITED` and its standard output may be incomplete. The text is for this release of Python.

    Raises:
        SyntaxError: the source is not Python.
        ProgramError: it is nested too deeply, or not text that Python can read.
    """
    tree = parse(source)
    with too_deep_is_an_error():
        flags = _take_features(tree)
        counted = ast.fix_missing_locations(_Counter().visit(tree))
        code = compile(counted, "<program>", "exec", flags=flags, dont_inherit=True)
    return _HARNESS.format(tick=_TICK, limit=line_limit, mark=LIMITED, code=marshal.dumps(code))


def _take_features(tree: ast.Module) -> int:
    """Take out the imports from ``__future__``, which would no longer come first; the compiler's flags."""
    asked = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    tree.body = [node for node in tree.body if node not in asked]
    names = [alias.name for node in asked for alias in node.names]
    flags = 0
    for name in names:
        if name not in features.all_feature_names:
            raise SyntaxError(f"future feature {name} is not defined")
        flags |= getattr(features, name).compiler_flag
    return flags


class _Counter(ast.NodeTransformer):
    """Puts a call before every statement, at the head of every loop's pass, and into every lambda."""

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


def _ticked(node: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[ast.stmt]:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # a docstring stays one
            yield first
            body = body[1:]
    if field == "body" and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        yield ast.Expr(_tick())
    for statement in body:
        yield ast.Expr(_tick())
        yield statement


def _tick() -> ast.Call:
    return ast.Call(ast.Name(_TICK, ast.Load()), [], [])
