"""The points for debug prints and the names they may show: definite assignment, read from the text.

A name is *certainly bound* at a point if every path to the point binds it in the same scope, and nothing in
the program can unbind it. If the analysis does not know, it treats the name as unbound:

- after a loop that binds it, which may run no round;
- in the handlers and the ``finally`` of a ``try`` that binds it, which may fail at once;
- after a ``with`` that binds it, which may swallow an exception.

Names that only ``:=``, an import, a ``def`` or a ``class`` binds are not shown. No point is reached after
``return``, ``raise``, ``break`` or ``continue``, or after a ``while True`` without a ``break``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from trace_gym.inject.prints import AFTER_ASSIGNMENT, chance_after
from trace_gym.syntax import ParsedProgram

Names = tuple[str, ...]
"""Names certainly bound at a point, in the order of binding."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place for a debug print.

    Attributes:
        statement: The statement before the print.
        first: The first statement of the print's suite.
        bound: The names that the print may show, at least one.
        chance: The probability that the point is chosen.
    """

    statement: ast.stmt
    first: ast.stmt
    bound: Names
    chance: float


@dataclass(slots=True)
class _Scope:
    """The walk's state for one module, class or function.

    Attributes:
        is_open: Whether the scope may have prints.
        breaks: For each loop around the current statement, innermost last, the names bound at each ``break``.
    """

    is_open: bool
    breaks: list[list[Names]] = field(default_factory=list)


def points(program: ParsedProgram, closed: Collection[ast.AST] = ()) -> list[Point]:
    """Returns every point of a program outside the scopes of ``closed``, in the order of the text."""
    walk = _Walk(program, closed)
    walk.suite(program.tree.body, (), _Scope(program.tree not in closed))
    return walk.points


class _Walk:
    """A walk along the paths through a program.

    Methods take the names bound before a node and return those bound after it, or None if its end is not
    reached.
    """

    def __init__(self, program: ParsedProgram, closed: Collection[ast.AST]) -> None:
        self._program = program
        self._closed = closed
        self._unbound = frozenset(_unbound_somewhere(program.tree))
        self.points: list[Point] = []

    def suite(self, body: list[ast.stmt], bound: Names, scope: _Scope) -> Names | None:
        """Walks statements in order, and adds a point after some of them."""
        for statement in body:
            after = self._statement(statement, bound, scope)
            if after is None:
                return None
            bound = after
            is_annotated = isinstance(statement, ast.AnnAssign) and statement.value is not None
            chance = AFTER_ASSIGNMENT if is_annotated else chance_after(statement)
            if scope.is_open and bound and chance:
                self.points.append(Point(statement, body[0], bound, chance))
        return bound

    def _statement(self, node: ast.stmt, bound: Names, scope: _Scope) -> Names | None:
        match node:
            case ast.Return() | ast.Raise() | ast.Continue():
                return None
            case ast.Break():
                scope.breaks[-1].append(bound)
                return None
            case ast.Assign(targets=targets):
                return self._with_targets(bound, targets)
            case ast.AugAssign(target=target):
                return self._with_targets(bound, [target])
            case ast.AnnAssign(target=target, value=ast.expr()):
                return self._with_targets(bound, [target])
            case ast.If():
                return self._if(node, bound, scope)
            case ast.For() | ast.AsyncFor():
                return self._loop(node, self._with_targets(bound, [node.target]), bound, scope)
            case ast.While(test=test):
                is_endless = isinstance(test, ast.Constant) and bool(test.value)
                return self._loop(node, bound, None if is_endless else bound, scope)
            case ast.Try() | ast.TryStar():
                return self._try(node, bound, scope)
            case ast.With() | ast.AsyncWith():
                targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
                self.suite(node.body, self._with_targets(bound, targets), scope)
                return bound
            case ast.Match():
                return self._match(node, bound, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.suite(node.body, self._with(parameters(node.args), ()), _Scope(node not in self._closed))
                return bound
            case ast.ClassDef():
                # Never open: a metaclass can redefine reading a name in a class body.
                self.suite(node.body, (), _Scope(False))
                return bound
            case _:
                return bound

    def _if(self, node: ast.If, bound: Names, scope: _Scope) -> Names | None:
        then = self.suite(node.body, bound, scope)
        match node.orelse:
            case [ast.If() as inner] if self._program.code.startswith("elif", self._program.start(inner)):
                # Not a suite of its own: a print after an elif would come after the whole chain.
                return _meet([then, self._statement(inner, bound, scope)])
            case orelse:
                return _meet([then, self.suite(orelse, bound, scope)])

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, inside: Names, exhausted: Names | None, scope: _Scope
    ) -> Names | None:
        """Walks a loop: ``inside`` is bound at the start of a round, ``exhausted`` after the last one."""
        scope.breaks.append([])
        self.suite(node.body, inside, scope)
        breaks = scope.breaks.pop()
        after = None if exhausted is None else self.suite(node.orelse, exhausted, scope)
        return _meet([after, *breaks])

    def _try(self, node: ast.Try | ast.TryStar, bound: Names, scope: _Scope) -> Names | None:
        tried = self.suite(node.body, bound, scope)
        ends = [self.suite(handler.body, bound, scope) for handler in node.handlers]
        ends.append(None if tried is None else self.suite(node.orelse, tried, scope))
        end = _meet(ends)
        closed = self.suite(node.finalbody, bound, scope)
        return None if end is None or closed is None else self._with(closed, end)

    def _match(self, node: ast.Match, bound: Names, scope: _Scope) -> Names | None:
        ends: list[Names | None] = []
        for case in node.cases:
            ends.append(self.suite(case.body, self._with(captures(case.pattern), bound), scope))
        match node.cases[-1]:
            case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
                pass  # the last case matches everything
            case _:
                ends.append(bound)
        return _meet(ends)

    def _with_targets(self, bound: Names, targets: Iterable[ast.expr]) -> Names:
        return self._with((name for target in targets for name in _names(target)), bound)

    def _with(self, names: Iterable[str], bound: Names) -> Names:
        """Returns the bound names and the added ones, without those that something in the program unbinds."""
        return tuple(dict.fromkeys([*bound, *(name for name in names if name not in self._unbound)]))


def _meet(ways: Iterable[Names | None]) -> Names | None:
    """Returns the names bound where several paths meet; None if no path gets there."""
    reached = [way for way in ways if way is not None]
    if not reached:
        return None
    return tuple(name for name in reached[0] if all(name in way for way in reached))


def _names(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Starred(value=inner):
            yield from _names(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _names(part)


def parameters(arguments: ast.arguments) -> list[str]:
    """Returns the names of a function's parameters, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    every = [*positional, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [parameter.arg for parameter in every if parameter is not None]


def captures(pattern: ast.pattern) -> Iterator[str]:
    """Yields the names that a pattern binds when it matches; all sides of a ``|`` bind the same names."""
    for node in ast.walk(pattern):
        match node:
            case (
                ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name))
            ):
                yield name


def _unbound_somewhere(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a ``del`` or the end of an ``except … as`` unbinds, in any scope."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Del()) | ast.ExceptHandler(name=str(name)):
                yield name
