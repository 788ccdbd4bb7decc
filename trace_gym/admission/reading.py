"""The static reading of a program: whether its text names only what follows from program and input.

It reads names, not values. Some things only a run can tell: whether a seed came before a random number, what
``getattr`` looks up, whose ``hash`` is asked for. ``trace_gym.admission.inside.guards`` watches these in a
run.
Neither sees the order of a set. Runs in varied worlds do: ``trace_gym.admission.worlds``.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from contextlib import suppress

from trace_gym.admission import allowlist
from trace_gym.admission.scopes import BUILTIN, SCOPES, Names, inner_parts, outer_parts
from trace_gym.syntax import parse, too_deep_is_an_error

_FIELD = re.compile(r"\{[^{}]*\}")
"""A field of a format string."""

_SPECIAL = re.compile(r"__\w+?__")

# Texts that are keys to more than their object.
_TO_EVERYTHING = ("__builtins__", "__globals__", "__self__", "__subclasses__")

_IMPORTS = (ast.Import, ast.ImportFrom)

# Functions that give their argument an order, or do not show one.
_ORDERING = ("sorted", "len", "set", "frozenset")


class _RefusalError(Exception):
    """A part of a program that is not allowed. Its text says which and why."""


def compares_ids(tree: ast.Module) -> bool:
    """Returns whether a program asks whether two ids are equal; ``refuse`` allows no other use of ``id``."""
    return any(isinstance(node, ast.Compare) and _calls_id(node.left) for node in ast.walk(tree))


def _calls_id(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="id")):
            return True
    return False


def refuse(tree: ast.Module) -> str:
    """Returns why a program's text is not allowed, with the line; "" if it is.

    Raises:
        ProgramError: the program is nested too deeply.
    """
    try:
        with too_deep_is_an_error():
            _Reader(tree).read()
    except _RefusalError as refusal:
        return str(refusal)
    return ""


def shows_order(tree: ast.Module) -> bool:
    """Returns whether a program may show the order of a set, or runs code that its text does not have."""
    for node in ast.walk(tree):
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id="set" | "frozenset" | "eval" | "exec" | "globals" | "vars"):
                return True
            case ast.alias(name="WeakSet" | "*") | ast.Attribute(attr="WeakSet"):
                return True
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
                if any(_is_view(side) for side in (node.left, node.right)):
                    return True
    return False


def _is_view(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="keys" | "items")):
            return True
    return False


class _Reader:
    """One pass over a program, in the order of the text."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree, self._names = tree, Names(tree)
        self._sound: set[int] = set()  # nodes that are allowed where they are
        self._stars: list[str] = []
        self._modules: set[str] = set()
        self._defined: set[str] = set()
        self._bound: set[str] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=aliases):
                    self._modules |= {alias.name for alias in aliases}
                case ast.ImportFrom(module=str(module), names=aliases):
                    self._modules |= {module}
                    self._stars += [module for alias in aliases if alias.name == "*"]
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._defined.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                    self._bound.add(name)

    def read(self) -> None:
        for statement in [*self._tree.body, *self._examples()]:
            self._visit(statement)

    def _examples(self) -> Iterator[ast.stmt]:
        """Yields the statements of the examples in docstrings, if the program runs them."""
        if "doctest" not in self._modules:
            return
        parser = doctest.DocTestParser()
        for node in ast.walk(self._tree):
            match node:
                case ast.Constant(value=str(text)) if ">>>" in text:
                    with suppress(SyntaxError, ValueError):  # the run says so
                        for example in parser.get_examples(text):
                            lines = ast.increment_lineno(
                                parse(example.source), node.lineno + example.lineno - 1
                            )
                            if any(
                                isinstance(each, (ast.Import, ast.ImportFrom)) for each in ast.walk(lines)
                            ):
                                raise self._refusal(lines.body[0], "an example", "imports a module")
                            yield from lines.body

    def _visit(self, node: ast.AST) -> None:
        self._check(node)
        if isinstance(node, SCOPES):
            for part in outer_parts(node):
                self._visit(part)
            self._names.enter(node)
            for part in inner_parts(node):
                self._visit(part)
            self._names.leave()
        elif not (isinstance(node, ast.Attribute) and self._is_imported(node.value)):
            for part in ast.iter_child_nodes(node):
                self._visit(part)

    def _is_imported(self, node: ast.expr) -> bool:
        """Returns whether an expression is a module or a member of one: then all of it has been checked."""
        meaning = self._meaning(node)
        return meaning is not None and not meaning.startswith(f"{BUILTIN}.")

    def _check(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._check_import(node)
            case ast.Call():
                self._check_call(node)
            case ast.Expr(value=ast.Call(func=callee)) if self._meaning(callee) == "gc.collect":
                self._sound.add(id(callee))  # only the number that it returns is the process's own
            case ast.Compare():
                self._allow_comparison(node)
            case ast.Subscript(
                value=value, slice=ast.Constant(value=0) | ast.Slice(upper=ast.Constant(value=1 | 2))
            ):
                self._allow_version(value)
            case ast.Attribute():
                self._check_attribute(node)
            case ast.Name(id=name, ctx=ast.Load()):
                self._check_name(node, name)
            case ast.MatchClass(kwd_attrs=members):
                for member in members:
                    self._check_member(node, member)
            case ast.Constant(value=str(text)):
                self._check_text(node, text)

    def _meaning(self, node: ast.expr) -> str | None:
        """Returns the dotted path that an expression means, if it is a name, or a chain of names."""
        match node:
            case ast.Name(id=name):
                meaning = self._names.meaning(name)
                return self._from_star(name) if meaning == "?" else meaning
            case ast.Attribute(value=value, attr=name):
                base = self._meaning(value)
                return None if base is None or base.startswith(f"{BUILTIN}.") else f"{base}.{name}"
        return None

    def _from_star(self, name: str) -> str | None:
        """Returns the path of a name that an ``import *`` may bind; None if there is no such import."""
        known = [module for module in self._stars if allowlist.is_module(module)]
        allowed = [module for module in known if name in allowlist.names_of(module)]
        return f"{(allowed or known)[0]}.{name}" if known else None

    # -- one kind of node each ------------------------------------------------------------------------------

    def _check_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise self._refusal(node, "a package around the program", "does not exist")
            if node.module == "__future__":
                return
            self._check_module(node, node.module)
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                if alias.name != "*" and not allowlist.is_module(path) and path not in allowlist.IN_PLACES:
                    self._check_path(node, node.module, alias.name)
        else:
            for alias in node.names:
                self._check_module(node, alias.name)

    def _check_module(self, node: ast.AST, path: str) -> None:
        if not allowlist.is_standard(path):
            raise self._refusal(node, f"the module {path}", "is not in the standard library")
        if not allowlist.is_module(path):
            raise self._refusal(node, f"the module {path}", allowlist.why_not(path))

    def _check_path(self, node: ast.AST, module: str, name: str) -> None:
        path = f"{module}.{name}"
        if name not in allowlist.names_of(module):
            raise self._refusal(node, path, allowlist.why_not(path))

    def _check_attribute(self, node: ast.Attribute) -> None:
        if id(node) in self._sound:
            return
        if node.attr in ("major", "minor"):
            self._allow_version(node.value)
        match node:
            case ast.Attribute(value=ast.Call(func=callee), attr="st_size"):
                if self._meaning(callee) in ("os.fstat", "os.stat"):
                    self._sound.add(id(callee))
        self._check_chain(node)

    def _check_chain(self, node: ast.Attribute) -> None:
        """Checks the members of a chain of names from the module on, or one member of something else."""
        base = self._meaning(node.value)
        if base is not None and allowlist.is_module(base):
            if not allowlist.is_module(f"{base}.{node.attr}"):
                self._check_path(node, base, node.attr)
            return
        if isinstance(node.value, ast.Attribute) and base is not None and id(node.value) not in self._sound:
            self._check_chain(node.value)
        self._check_member(node, node.attr, base)

    def _check_member(self, node: ast.AST, name: str, base: str | None = None) -> None:
        """Checks a member of any object."""
        if _SPECIAL.fullmatch(name) and name not in allowlist.SPECIAL_MEMBERS:
            raise self._refusal(node, f"the member {name}", allowlist.UNKNOWN)
        if name in allowlist.FRAME_MEMBERS:
            raise self._refusal(node, f"the member {name}", "leads to the interpreter's own state")
        for module in self._modules & allowlist.MEMBERS_BY_MODULE.keys():
            why = allowlist.MEMBERS_BY_MODULE[module].get(name)
            if why and not (name in self._defined and not (base or "").startswith(module)):
                raise self._refusal(node, f"the member {name}", f"(of {module}) {why}")

    def _check_name(self, node: ast.Name, name: str) -> None:
        if id(node) in self._sound:
            return
        if name in allowlist.MODULE_NAMES:  # whatever the program binds them to
            raise self._refusal(node, name, allowlist.UNKNOWN)
        path = self._meaning(node)
        if path is None:
            return
        module, _, member = path.rpartition(".")
        if module == BUILTIN:
            if member in allowlist.BUILTINS:
                raise self._refusal(node, member, allowlist.BUILTINS[member])
        elif allowlist.is_module(path):
            if path not in allowlist.PASSED_ON:
                raise self._refusal(node, f"the module {path}", "is handed on as a value")
        elif allowlist.is_module(module):
            self._check_path(node, module, member)

    def _check_text(self, node: ast.AST, text: str) -> None:
        fields = _FIELD.findall(text) if "{" in text else []
        found = [name for field in fields for name in _SPECIAL.findall(field)]
        if (_SPECIAL.fullmatch(text) and text in dir(object)) or text in (
            "__builtins__",
            "__globals__",
            "__self__",
        ):
            found.append(text)
        for name in found:
            self._check_member(node, name)

    def _check_call(self, node: ast.Call) -> None:
        path = self._meaning(node.func)
        least = allowlist.WITH_ARGUMENTS.get(path or "")
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if least is not None and len(node.args) >= least and not starred:
            self._sound.add(id(node.func))
        match node.func:
            case ast.Attribute(attr=name) if name in allowlist.MEMBERS_WITH_ARGUMENTS and not starred:
                if len(node.args) + len(node.keywords) >= allowlist.MEMBERS_WITH_ARGUMENTS[name]:
                    self._sound.add(id(node.func))
        if path in [f"{BUILTIN}.{name}" for name in _ORDERING] and len(node.args) == 1:
            match node.args[0]:
                case ast.Call(func=callee) if self._has_no_order(callee):
                    self._sound.add(id(callee))
        if path in ("operator.attrgetter", "operator.methodcaller"):
            self._check_getter(node, path)

    def _has_no_order(self, callee: ast.expr) -> bool:
        if self._meaning(callee) in ("os.listdir", "os.scandir"):
            return True
        return isinstance(callee, ast.Attribute) and callee.attr in ("glob", "iterdir", "rglob")

    def _check_getter(self, node: ast.Call, path: str) -> None:
        names = node.args if path.endswith("attrgetter") else node.args[:1]
        for argument in names:
            match argument:
                case ast.Constant(value=str(text)):
                    for name in text.split("."):
                        self._check_member(node, name)
                case _:
                    raise self._refusal(node, path, "looks up a name that the text does not have")

    def _allow_comparison(self, node: ast.Compare) -> None:
        """Allows ``id(a) == id(b)``, and comparisons of the release of Python."""
        sides = [node.left, *node.comparators]
        if all(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in node.ops):
            callees = [side.func for side in sides if isinstance(side, ast.Call) and len(side.args) == 1]
            if (
                "id" not in self._bound
                and len(callees) == len(sides)
                and all(self._meaning(c) == f"{BUILTIN}.id" for c in callees)
            ):
                self._sound.update(map(id, callees))
        for side in sides:
            self._allow_version(side)

    def _allow_version(self, node: ast.expr) -> None:
        # The release by which a truth was made is in ``info["python"]``.
        if self._meaning(node) == "sys.version_info":
            self._sound.add(id(node))

    def _refusal(self, node: ast.AST, what: str, why: str) -> _RefusalError:
        return _RefusalError(f"line {getattr(node, 'lineno', 1)}: {what} {why}")
