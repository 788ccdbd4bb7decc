"""Programs that are wrong in one place: where plausible false outputs come from.

A mutant differs from its program in one piece of text, and compiles, but nothing more is known of it: it may
fail, run for ever, or write what the program writes. So it is untrusted code. The same program and seed give
the same mutants on every Python that can read the program.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from trace_gym.inject.prints import is_debug_print
from trace_gym.source import Source, compiles, too_deep_is_an_error

#: "off_by_one": an integer, a bound of a range, < for <=. "operator": another operator, "and" for "or", min
#: for max. "skip": a branch always, never or wrongly taken; a round of a loop left out; a break or continue
#: that does the other's work, or nothing.
KINDS = ("off_by_one", "operator", "skip")
_OFF_BY_ONE, _OPERATOR, _SKIP = KINDS

# Larger integers are moduli or masks, not counts, and Python may refuse to write them.
_LARGEST = 10**18

# White space, comments and closing parentheses may stand between an operand and its operator.
_BLANK = r"(?:[\s\\)]|#[^\r\n]*)*"

# Each operator as it is written (a regular expression), and what may stand in its place.
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

# Operators that bind no looser than + and -.
_TIGHT = (ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)

# Expressions that no operator beside them takes apart.
_ATOMS = (
    *(ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant),
    *(ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp),
)

# What is left alone as a whole, by name since not every Python has it: Python 3.11 gives wrong positions
# inside an f-string.
_WHOLE = ("JoinedStr", "TemplateStr", "TypeAlias")

# Parts that are left alone: types are not computed with, and patterns and decorators are not arithmetic.
_LEFT_ALONE = ("annotation", "returns", "type_params", "pattern", "decorator_list")


class Mutant(NamedTuple):
    """A program with one thing wrong.

    Attributes:
        kind: Which of :data:`KINDS`.
        source: Its text.
    """

    kind: str
    source: str


class _Edit(NamedTuple):
    """Text in place of the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str
    kind: str


def mutants(source: str, seed: int) -> Iterator[Mutant]:
    """All mutants of a program, no two alike, with the kinds in turn for as long as each lasts.

    Debug prints are left as they are. Each is made when it is asked for.

    Raises:
        ProgramError: The source does not parse.
    """
    program = Source(source)
    with too_deep_is_an_error():
        edits = sorted(set(_edits(program, program.tree)))
    rng = random.Random(seed)
    groups = [_shuffled([edit for edit in edits if edit.kind == kind], rng) for kind in KINDS]
    return _made(source, _in_turn(groups))


def _made(source: str, edits: Iterator[_Edit]) -> Iterator[Mutant]:
    seen = set()
    for edit in edits:
        text = source[: edit.start] + edit.text + source[edit.end :]
        if text not in seen and compiles(text):
            seen.add(text)
            yield Mutant(edit.kind, text)


def _shuffled(edits: list[_Edit], rng: random.Random) -> list[_Edit]:
    """Every order as likely; from ``random()`` alone, whose sequence Python promises to every version."""
    left = list(edits)
    return [left.pop(int(rng.random() * len(left))) for _ in edits]


def _in_turn(groups: list[list[_Edit]]) -> Iterator[_Edit]:
    for place in range(max(map(len, groups))):
        yield from (group[place] for group in groups if place < len(group))


def _edits(program: Source, node: ast.AST) -> Iterator[_Edit]:
    """Every edit of a node and what is in it."""
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


def _off_by_one(program: Source, node: ast.AST) -> Iterator[_Edit]:
    """Integers and bounds of ranges, one less and one more; comparisons are among the operators."""
    match node:
        case ast.Constant(value=int(value)) if type(value) is int and value <= _LARGEST:
            for other in (value - 1, value + 1) if value else (1,):
                yield _replaced(program, node, str(other), _OFF_BY_ONE)
        case ast.Call(func=ast.Name(id="range"), args=bounds):
            for bound in bounds[:2]:
                if not isinstance(bound, (ast.Constant, ast.Starred)):
                    text = program.of(bound) if _is_tight(bound) else _operand(program, bound)
                    yield _replaced(program, bound, f"{text} - 1", _OFF_BY_ONE)
                    yield _replaced(program, bound, f"{text} + 1", _OFF_BY_ONE)


def _operators(program: Source, node: ast.AST) -> Iterator[_Edit]:
    """Every operator of a node, and a function that is the opposite of another."""
    match node:
        case ast.Compare(left=left, ops=operators, comparators=right):
            for operator, before, after in zip(operators, [left, *right], right, strict=False):
                yield from _swapped(program, before, operator, after)
        case ast.BoolOp(op=operator, values=values):
            for before, after in pairwise(values):
                yield from _swapped(program, before, operator, after)
        case ast.BinOp(left=before, op=operator, right=after):
            if not _is_sequence(before) and not _is_sequence(after):
                yield from _swapped(program, before, operator, after)
        case ast.AugAssign(target=before, op=operator, value=after):
            if not _is_sequence(after):
                yield from _swapped(program, before, operator, after)
        case ast.Call(func=ast.Name(id=name) as function) if name in _OPPOSITES:
            yield _replaced(program, function, _OPPOSITES[name], _OPERATOR)


def _skips(program: Source, node: ast.AST) -> Iterator[_Edit]:
    """Branches and rounds of loops, left out or run where they should not be."""
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
            yield _replaced(program, node, "continue", _SKIP)
            yield _replaced(program, node, "pass", _SKIP)
        case ast.Continue():
            yield _replaced(program, node, "break", _SKIP)
            yield _replaced(program, node, "pass", _SKIP)


def _replaced(program: Source, node: ast.expr | ast.stmt, text: str, kind: str) -> _Edit:
    return _Edit(program.start(node), program.end(node), text, kind)


def _test(program: Source, test: ast.expr, template: str) -> _Edit:
    """Another condition made of one."""
    text = template.format(_operand(program, test))
    # After "if" or an opening parenthesis nothing is needed; "if-x" has no room for a word.
    apart = program.text[program.start(test) - 1] in " ("
    return _replaced(program, test, text if apart else f"({text})", _SKIP)


def _fewer(program: Source, rounds: ast.expr) -> Iterator[_Edit]:
    """A loop without its first or its last round."""
    for part in ("[1:]", "[:-1]"):
        yield _replaced(program, rounds, f"[*{_operand(program, rounds)}]{part}", _SKIP)


def _operand(program: Source, node: ast.expr) -> str:
    """An expression's text, in parentheses where an operator beside it could take it apart."""
    text = program.of(node)
    return text if isinstance(node, _ATOMS) else f"({text})"


def _swapped(program: Source, before: ast.expr, operator: ast.AST, after: ast.expr) -> Iterator[_Edit]:
    """Other operators for the one between two operands; the syntax tree does not say where it stands."""
    if type(operator) not in _OPERATORS:
        return
    written, others = _OPERATORS[type(operator)]
    start, end = program.end(before), program.start(after)
    match = re.compile(f"{_BLANK}({written})").match(program.text, start, end)
    assert match is not None, f"no {written} in {program.text[start:end]!r}"
    blank = program.text[match.start(1) - 1] == " "
    yield from (_Edit(*match.span(1), other.lstrip() if blank else other, kind) for kind, other in others)


def _is_tight(operand: ast.expr) -> bool:
    """Whether ``+ 1`` may follow an operand without parentheses."""
    return isinstance(operand, ast.BinOp) and isinstance(operand.op, _TIGHT)


def _is_sequence(operand: ast.expr) -> bool:
    """Whether an operand is evidently text or a list, with which only one operator works."""
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
    """Whether a node is the usual guard of a script, without which nothing at all would happen."""
    match node:
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
        case _:
            return False
