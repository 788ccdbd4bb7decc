"""The scopes of a program that may have no debug print, although other scopes may."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trace_gym.inject.flow import captures, parameters
from trace_gym.inject.hazards import handed_on, members
from trace_gym.inject.prints import USED

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def closed_scopes(tree: ast.Module) -> frozenset[ast.AST]:
    """Returns scopes where a name that prints use may be rebound, and functions that may run in mid-line.

    If a ``print`` may convert an object of one of the program's classes after it has begun its line, these
    are all functions: ``__str__`` may call any of them.
    """
    closed = set(_rebound(tree))
    if _converts_in_mid_line(tree):
        closed.update(node for node in ast.walk(tree) if isinstance(node, _SCOPES))
    return frozenset(closed)


def _converts_in_mid_line(tree: ast.Module) -> bool:
    """Returns whether a ``print`` may run the program's ``__str__`` or ``__repr__`` in the middle of a line.

    ``print(x)`` converts x before it writes; ``print(x, y)`` writes x before it converts y. An f-string is
    converted before ``print`` is called.
    """
    used = members(tree)
    if not used & {"__str__", "__repr__"}:
        return False
    if "print" in handed_on(tree) or used & {"pprint", "pp", "logging"}:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print"), args=[first, *rest]):
                if isinstance(first, ast.Starred) or not all(map(_is_plain, rest)):
                    return True
    return False


def _is_plain(argument: ast.expr) -> bool:
    """Returns whether an argument of ``print`` is a builtin constant, text or number at the call."""
    match argument:
        case ast.Constant() | ast.JoinedStr() | ast.Call(func=ast.Name(id="len" | "repr" | "str")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join" | "format")):
            return True
        case _:
            return False


def _rebound(tree: ast.Module) -> Iterator[ast.AST]:
    """Yields the module and the functions in which a name that prints use may not be the builtin."""
    everywhere: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            everywhere.update(node.names)
        # A class's methods see its type parameters. Python has these from 3.12 on.
        everywhere.update(parameter.name for parameter in getattr(node, "type_params", ()))
    yield from _rebound_in(tree, bool(everywhere & USED))


def _rebound_in(scope: _Scope, around: bool) -> Iterator[ast.AST]:
    """Yields such scopes among a scope and those in it. ``around``: whether the scope around it is one."""
    own = list(_own_nodes(scope))
    # Methods do not see names that the class body binds.
    rebound = around
    if not isinstance(scope, ast.ClassDef):
        names = {name for node in own for name in _bound_by(node)}
        names.update(() if isinstance(scope, ast.Module) else parameters(scope.args))
        rebound = around or bool(names & USED)
        if rebound:
            yield scope
    for node in own:
        if isinstance(node, _SCOPES):
            yield from _rebound_in(node, rebound)


def _own_nodes(scope: _Scope) -> Iterator[ast.AST]:
    """Yields the nodes of a scope, without the bodies of the functions and classes in it."""
    stack: list[ast.AST] = list(scope.body)
    while stack:
        node = stack.pop()
        yield node
        inner = isinstance(node, _SCOPES)
        stack.extend(
            child for child in ast.iter_child_nodes(node) if not (inner and isinstance(child, ast.stmt))
        )


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node binds in its scope, or declares, including those of comprehensions."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.pattern():
            yield from captures(node)
