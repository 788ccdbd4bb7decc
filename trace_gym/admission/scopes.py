"""What a name in a program's text may mean: an imported module, a name imported from one, or a builtin."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

BUILTIN = "builtins"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)
"""Nodes that open a scope."""


class Scope:
    """The names that a scope binds.

    Attributes:
        imported: The dotted path of each name that an import binds, as "os.path" or "time.sleep".
        bound: Every other name that is bound.
        is_class: Whether functions inside see these names not.
    """

    def __init__(self, node: ast.AST) -> None:
        self.imported: dict[str, str] = {}
        self.bound: set[str] = set()
        self.borrowed: set[str] = set()
        self.is_class = isinstance(node, ast.ClassDef)
        if isinstance(node, _FUNCTIONS):
            self.bound |= {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        for inner in own_nodes(node):
            self._bind(inner)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self.bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.bound.add(name)
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                self.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                self.bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.borrowed.update(names)
            case ast.Import(names=aliases):
                for alias in aliases:
                    first = alias.name.partition(".")[0]
                    self.imported[alias.asname or first] = alias.name if alias.asname else first
            case ast.ImportFrom(module=str(module), names=aliases, level=0) if module != "__future__":
                for alias in aliases:
                    if alias.name != "*":
                        self.imported[alias.asname or alias.name] = f"{module}.{alias.name}"


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a scope, with those that open scopes in it, but without what is inside these."""
    waiting = list(_body(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, SCOPES):
            waiting.extend(outer_parts(node))
        else:
            waiting.extend(ast.iter_child_nodes(node))


def outer_parts(node: ast.AST) -> list[ast.AST]:
    """Returns the parts of a function, class or comprehension that belong to the scope around it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            annotations = [] if node.returns is None else [node.returns]
            return [*node.decorator_list, *_defaults(node.args), *annotations, *_parameters(node)]
        case ast.Lambda():
            return _defaults(node.args)
        case ast.ClassDef():
            return [*node.decorator_list, *node.bases, *node.keywords, *_parameters(node)]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            return [node.generators[0].iter]
    return []


def inner_parts(node: ast.AST) -> list[ast.AST]:
    """Returns the parts of a function, class or comprehension that belong to its own scope."""
    outer = set(map(id, outer_parts(node)))
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return [part for part in _body(node) if id(part) not in outer]
    return list(_body(node))


def _body(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.Lambda():
            return [node.body]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Module():
            return list(node.body)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return [node.elt, *_generators(node.generators)]
        case ast.DictComp():
            return [node.key, node.value, *_generators(node.generators)]
    return []


def _parameters(node: ast.AST) -> list[ast.AST]:
    """Returns the type parameters of a function or class. Python has these from 3.12 on."""
    return list(getattr(node, "type_params", ()))


def _generators(generators: list[ast.comprehension]) -> Iterator[ast.AST]:
    for number, generator in enumerate(generators):
        yield generator.target
        yield from generator.ifs
        if number:
            yield generator.iter


def _defaults(arguments: ast.arguments) -> list[ast.AST]:
    annotations = [node.annotation for node in ast.walk(arguments) if isinstance(node, ast.arg)]
    return [node for node in (*arguments.defaults, *arguments.kw_defaults, *annotations) if node is not None]


class Names:
    """The scopes around a place in the text, and what a name means there.

    Args:
        tree: The program.
    """

    def __init__(self, tree: ast.Module) -> None:
        module = Scope(tree)
        for node in ast.walk(tree):  # `global os; import os` in a function binds a name of the module
            if isinstance(node, SCOPES):
                scope = Scope(node)
                for name in scope.borrowed & scope.imported.keys():
                    module.imported[name] = scope.imported[name]
        self.stack = [module]

    def enter(self, node: ast.AST) -> None:
        """Goes into a scope; ``leave`` goes out again."""
        self.stack.append(Scope(node))

    def leave(self) -> None:
        """Goes out of a scope."""
        self.stack.pop()

    def meaning(self, name: str) -> str | None:
        """Returns the dotted path that a name may mean, "builtins.NAME", or None for the program's own.

        A name that an import and something else bind in one scope means the import here. A name that a class
        body binds means the name outside, as it does before that. A name that nothing binds means "?": an
        ``import *`` may bind it.
        """
        innermost = self.stack[-1]
        for scope in reversed(self.stack):
            if (scope.is_class and scope is not innermost) or name in scope.borrowed:
                continue
            if name in scope.imported:
                return scope.imported[name]
            if name in scope.bound and not scope.is_class:
                return None
        if name in innermost.bound:
            return None
        return f"{BUILTIN}.{name}" if hasattr(builtins, name) else "?"
