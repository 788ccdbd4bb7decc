"""Mutants: programs that are wrong in one place, for plausible false outputs.

A mutant differs from its program in one piece of text, and compiles. It may fail, run for ever, or print what
the program prints, so it is untrusted code. The same program and seed give the same mutants on every Python
that can read the program.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from task_gym.seeding import shuffled
from trace_gym.inject.prints import is_debug_print
from trace_gym.syntax import ParsedProgram, compiles, too_deep_is_an_error

KINDS = ("off_by_one", "operator", "skip")
"""The kinds of mutants.

"off_by_one": an integer, a bound of a range, < for <=. "operator": another operator, "and" for "or", min for
max. "skip": a branch always, never or wrongly taken; a round of a loop left out; break and continue swapped
or left out."""

_OFF_BY_ONE, _OPERATOR, _SKIP = KINDS

# Larger integers are moduli or masks, not counts, and Python may refuse to write them.
_LARGEST = 10**18

# White space, comments and closing parentheses may be between an operand and its operator.
_BLANK = r"(?:[\s\\)]|#[^\r\n]*)*"

# Each operator's text (a regular expression), and its replacements.
_OPERATORS: dict[type[ast.AST], tuple[str, list[tuple[str, str]]]] = {
    ast.Lt: ("<", [(_OFF_BY_ONE, "<="), (_OPERATOR, ">")]),
    ast.LtE: ("<=", [(_OFF_BY_ONE, "<"), (_OPERATOR, ">=")]),
    ast.Gt: (">", [(_OFF_BY_ONE, ">="), (_OPERATOR, "<")]),
    ast.GtE: (">=", [(_OFF_BY_ONE, ">"), (_OPERATOR, "<=")]),
    ast.Eq: ("==", [(_OPERATOR, "!=")]),
    ast.NotEq: ("!=", [(_OPERATOR, "==")]),
    ast.In: ("in", [(_OPERATOR, " not in")]),
    ast.NotIn: (f"not{_BLANK}in", [(_OPERATOR, " in")]),
    ast.Is: ("is", [(_OPERATOR, " is not")]),
    ast.IsNot: (f"is{_BLANK}not", [(_OPERATOR, " is")]),
    ast.Add: (r"\+", [(_OPERATOR, "-")]),
    ast.Sub: ("-", [(_OPERATOR, "+")]),
    ast.Mult: (r"\*", [(_OPERATOR, "+"), (_OPERATOR, "//")]),
    ast.Div: ("/", [(_OPERATOR, "*")]),
    ast.FloorDiv: ("//", [(_OPERATOR, "*")]),
    ast.Mod: ("%", [(_OPERATOR, "//")]),
    ast.Pow: (r"\*\*", [(_OPERATOR, "*")]),
    ast.LShift: ("<<", [(_OPERATOR, ">>")]),
    ast.RShift: (">>", [(_OPERATOR, "<<")]),
    ast.BitAnd: ("&", [(_OPERATOR, "|")]),
    ast.BitOr: (r"\|", [(_OPERATOR, "&")]),
    ast.BitXor: (r"\^", [(_OPERATOR, "|")]),
    ast.And: ("and", [(_OPERATOR, "or")]),
    ast.Or: ("or", [(_OPERATOR, "and")]),
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}

# Operators that bind as tightly as + and -, or more.
_TIGHT = (ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)

# Expressions that need no parentheses beside any operator.
_ATOMS = (
    *(ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant),
    *(ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp),
)

# Nodes that are left alone, because Python 3.11 gives wrong positions inside an f-string. They are named,
# because not every Python has them.
_WHOLE = ("JoinedStr", "TemplateStr", "TypeAlias")

# Parts that are left alone: programs do not compute with types, patterns or decorators.
_LEFT_ALONE = ("annotation", "returns", "type_params", "pattern", "decorator_list")


class Mutant(NamedTuple):
    """A program with one thing wrong.

    Attributes:
        kind: The kind of change, one of ``KINDS``.
        code: The program's text.
    """

    kind: str
    code: str


class _Edit(NamedTuple):
    """A replacement of the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str
    kind: str


def mutants(code: str, seed: int) -> Iterator[Mutant]:
    """Returns all mutants of a program, no two alike, with the kinds in turn while they last.

    Debug prints do not change. The iterator makes each mutant when it is needed.

    Raises:
        ProgramError: the program does not parse.
    """
    program = ParsedProgram(code)
    with too_deep_is_an_error():
        edits = sorted(set(_edits(program, program.tree)))
    rng = random.Random(seed)

    def below(n: int) -> int:
        return int(rng.random() * n)  # Python promises the sequence of random() for every version

    groups = [shuffled([edit for edit in edits if edit.kind == kind], below) for kind in KINDS]
    return _apply(code, (edit for row in zip_longest(*groups) for edit in row if edit is not None))


def _apply(code: str, edits: Iterator[_Edit]) -> Iterator[Mutant]:
    seen = set()
    for edit in edits:
        text = code[: edit.start] + edit.text + code[edit.end :]
        if text not in seen and compiles(text):
            seen.add(text)
            yield Mutant(edit.kind, text)


def _edits(program: ParsedProgram, node: ast.AST) -> Iterator[_Edit]:
    """Yields every edit of a node and of the nodes in it."""
    if is_debug_print(node) or _asks_for_main(node) or type(node).__name__ in _WHOLE:
        return
    yield from _off_by_one(program, node)
    yield from _operators(program, node)
    yield from _skips(program, node)
    for name, value in ast.iter_fields(node):
        if name not in _LEFT_ALONE:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _edits(program, child)


def _off_by_one(program: ParsedProgram, node: ast.AST) -> Iterator[_Edit]:
    """Yields integers and bounds of ranges, one less and one more. Comparisons are in ``_operators``."""
    match node:
        case ast.Constant(value=int(value)) if type(value) is int and value <= _LARGEST:
            for other in (value - 1, value + 1) if value else (1,):
                yield _replace(program, node, str(other), _OFF_BY_ONE)
        case ast.Call(func=ast.Name(id="range"), args=bounds):
            for bound in bounds[:2]:
                if not isinstance(bound, (ast.Constant, ast.Starred)):
                    is_tight = isinstance(bound, ast.BinOp) and isinstance(bound.op, _TIGHT)
                    text = program.of(bound) if is_tight else _operand(program, bound)
                    yield _replace(program, bound, f"{text} - 1", _OFF_BY_ONE)
                    yield _replace(program, bound, f"{text} + 1", _OFF_BY_ONE)


def _operators(program: ParsedProgram, node: ast.AST) -> Iterator[_Edit]:
    """Yields replacements of a node's operators, and opposites of functions such as ``min``."""
    match node:
        case ast.Compare(left=left, ops=operators, comparators=right):
            for operator, before, after in zip(operators, [left, *right], right, strict=False):
                yield from _swap(program, before, operator, after)
        case ast.BoolOp(op=operator, values=values):
            for before, after in pairwise(values):
                yield from _swap(program, before, operator, after)
        case ast.BinOp(left=before, op=operator, right=after):
            if not _is_sequence(before) and not _is_sequence(after):
                yield from _swap(program, before, operator, after)
        case ast.AugAssign(target=before, op=operator, value=after):
            if not _is_sequence(after):
                yield from _swap(program, before, operator, after)
        case ast.Call(func=ast.Name(id=name) as function) if name in _OPPOSITES:
            yield _replace(program, function, _OPPOSITES[name], _OPERATOR)


def _skips(program: ParsedProgram, node: ast.AST) -> Iterator[_Edit]:
    """Yields edits that skip branches and rounds of loops, or run a branch wrongly."""
    match node:
        case ast.If(test=test) if not _asks_for_main(test):
            yield _test(program, test, "not {}")
            yield _test(program, test, "{} and False")
            yield _test(program, test, "{} or True")
        case ast.While(test=test):
            yield _test(program, test, "{} and False")
        case ast.IfExp(test=test):
            yield _test(program, test, "not {}")
        case ast.For(iter=rounds):
            yield from _fewer(program, rounds)
        case ast.comprehension(iter=rounds, ifs=tests, is_async=is_async):
            yield from () if is_async else _fewer(program, rounds)
            yield from (_test(program, test, "not {}") for test in tests)
        case ast.Break():
            yield _replace(program, node, "continue", _SKIP)
            yield _replace(program, node, "pass", _SKIP)
        case ast.Continue():
            yield _replace(program, node, "break", _SKIP)
            yield _replace(program, node, "pass", _SKIP)


def _replace(program: ParsedProgram, node: ast.expr | ast.stmt, text: str, kind: str) -> _Edit:
    return _Edit(program.start(node), program.end(node), text, kind)


def _test(program: ParsedProgram, test: ast.expr, template: str) -> _Edit:
    """Returns the edit that replaces a condition."""
    text = template.format(_operand(program, test))
    # A word needs a space or parenthesis before it, but "if-x" has none.
    apart = program.code[program.start(test) - 1] in " ("
    return _replace(program, test, text if apart else f"({text})", _SKIP)


def _fewer(program: ParsedProgram, rounds: ast.expr) -> Iterator[_Edit]:
    """Yields a loop without its first or its last round."""
    for part in ("[1:]", "[:-1]"):
        yield _replace(program, rounds, f"[*{_operand(program, rounds)}]{part}", _SKIP)


def _operand(program: ParsedProgram, node: ast.expr) -> str:
    """Returns an expression's text, in parentheses if an operator beside it could need them."""
    text = program.of(node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def _swap(program: ParsedProgram, before: ast.expr, operator: ast.AST, after: ast.expr) -> Iterator[_Edit]:
    """Yields other operators for the one between two operands. The syntax tree lacks its position."""
    if type(operator) not in _OPERATORS:
        return
    written, others = _OPERATORS[type(operator)]
    start, end = program.end(before), program.start(after)
    match = re.compile(f"{_BLANK}({written})").match(program.code, start, end)
    assert match is not None, f"no {written} in {program.code[start:end]!r}"
    blank = program.code[match.start(1) - 1] == " "
    yield from (_Edit(*match.span(1), other.lstrip() if blank else other, kind) for kind, other in others)


def _is_sequence(operand: ast.expr) -> bool:
    """Returns whether an operand is evidently a sequence, with which few operators work."""
    match operand:
        case (
            ast.Constant(value=str() | bytes()) | ast.JoinedStr() | ast.List() | ast.ListComp() | ast.Tuple()
        ):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.Mod(), right=right):
            return _is_sequence(left) or _is_sequence(right)
        case _:
            return False


def _asks_for_main(node: ast.AST) -> bool:
    """Returns whether a node is a script's ``__name__`` guard. Without it, the program would do nothing."""
    return isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__"
