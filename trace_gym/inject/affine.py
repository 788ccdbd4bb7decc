"""Upstream's injection: affinetes' own text for a program and a seed.

The result comes from ``ast.unparse``, so comments and layout are lost. Versions of Python may write the same
program differently; this is upstream's text on the running Python. Upstream shows names that may be unbound,
and may print in the middle of a line. ``trace_gym.inject.safe`` does neither.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable

from task_gym.errors import ProgramError
from trace_gym.inject.prints import MOST_NAMES, chance_after, write_print
from trace_gym.syntax import parse, too_deep_is_an_error

_FENCE = "```"
_SHOWN = "repr({0}) if isinstance({0}, (int, float, str, bool, type(None))) else type({0}).__name__"


def inject_affine(code: str, seed: int, most: int) -> str:
    """Returns upstream's text for a program. If the program is not Python, a comment above it says so.

    Raises:
        ProgramError: the program is nested too deeply, or Python cannot read the text.
    """
    code = _unfenced(code.strip())
    try:
        tree = parse(code)
    except SyntaxError as error:
        return f"# Syntax Error in source: {error}\n{code}"  # upstream's words
    with too_deep_is_an_error():
        tree.body = _Injector(random.Random(seed), most).body(tree.body)
        try:
            return ast.unparse(tree)
        except ValueError as error:  # an int in hexadecimal of more digits than Python writes in decimal
            raise ProgramError(f"the program cannot be written anew: {error}") from error


def _unfenced(code: str) -> str:
    """Returns a program without its code fence. The fence's first line is dropped."""
    if not code.startswith(_FENCE):
        return code
    return code.partition("\n")[2].removesuffix(_FENCE).strip()


class _Injector:
    """One pass over a program. Draws are in the order of the statements, nested ones first."""

    def __init__(self, rng: random.Random, most: int) -> None:
        self._rng = rng
        self._most = most
        self._count = 0
        self._scopes: list[list[str]] = [[]]

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Returns the statements of a body, with prints after some of them."""
        result: list[ast.stmt] = []
        for statement in statements:
            self._scopes[-1].extend(_bound(statement))
            self._inside(statement)
            result.append(statement)
            chance = chance_after(statement)
            if chance and self._count < self._most and self._rng.random() < chance:
                live = list(dict.fromkeys(name for scope in self._scopes for name in scope))
                if live:
                    result.append(self._print(live))
        return result

    def _inside(self, node: ast.AST) -> None:
        """Inserts prints into the bodies nested in a statement, in place."""
        match node:
            case ast.FunctionDef():
                self._scopes.append([argument.arg for argument in node.args.args])
                node.body = self.body(node.body)
                self._scopes.pop()
            case ast.For() | ast.If():
                node.body = self.body(node.body)
                node.orelse = self.body(node.orelse)
            case _:
                # Upstream puts no print directly into while, try, with, class, match and async bodies.
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                        self._inside(child)

    def _print(self, live: list[str]) -> ast.stmt:
        names = self._rng.sample(live, self._rng.randint(1, min(MOST_NAMES, len(live))))
        text = write_print(self._count, map(_SHOWN.format, names))
        self._count += 1
        return ast.parse(text).body[0]


def _bound(statement: ast.stmt) -> Iterable[str]:
    """Returns the names that upstream counts as bound by a statement, in order."""
    match statement:
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _names(target)]
        case ast.AugAssign(target=target) | ast.For(target=target):
            return _names(target)
        case _:
            return []


def _names(target: ast.expr) -> list[str]:
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _names(part)]
        case _:
            return []
