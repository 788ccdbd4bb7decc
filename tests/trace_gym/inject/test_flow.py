"""Tests of definite assignment: worked cases, and made-up programs with the most prints possible."""

from __future__ import annotations

import contextlib
import io
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_gym.inject import unchanged
from trace_gym.inject.flow import points
from trace_gym.inject.safe import place
from trace_gym.syntax import ParsedProgram


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        # A name that one path does not bind is not bound where paths meet.
        ("if c():\n    x = 1\nz = 0", "z"),
        ("if c():\n    x = 1\nelse:\n    x = y = 2\nz = 0", "xz"),
        ("if c():\n    x = 1\nelif d():\n    x = 2\nz = 0", "z"),
        ("if c():\n    x = 1\nelif d():\n    x = 2\nelse:\n    y = x = 3\nz = 0", "xz"),
        ("if c():\n    raise ValueError\nelse:\n    x = 2\nz = 0", "xz"),
        # A loop may run no round, except one without an end.
        ("for i in c():\n    x = 1\nz = 0", "z"),
        ("for i in c():\n    x = 1\nelse:\n    z = 0", "z"),
        ("for i, [*x] in c():\n    z = 0", "ixz"),
        ("while c():\n    x = 1\nz = 0", "z"),
        ("while True:\n    x = 1\n    if c():\n        break\n    y = 1\nz = 0", "xz"),
        ("while 1:\n    if c():\n        x = y = 1\n        break\n    x = 1\n    break\nz = 0", "xz"),
        ("for i in c():\n    break\nelse:\n    x = 1\nz = 0", "z"),
        ("x = 1\nfor i in c():\n    y = 1\n    continue\nelse:\n    w = 1\nz = 0", "xwz"),
        # A try may fail at once; one that did not fail is followed by its else.
        ("try:\n    x = c()\nexcept ValueError:\n    z = 0", "z"),
        ("try:\n    x = c()\nfinally:\n    z = 0", "z"),
        ("try:\n    x = c()\nexcept ValueError:\n    pass\nz = 0", "z"),
        ("try:\n    x = c()\nexcept ValueError:\n    x = 1\nz = 0", "xz"),
        ("try:\n    x = c()\nexcept ValueError:\n    y = x = 1\nelse:\n    y = 1\nz = 0", "xyz"),
        ("try:\n    x = c()\nexcept ValueError:\n    raise\nz = 0", "xz"),
        ("try:\n    x = c()\nfinally:\n    y = 1\nz = 0", "xyz"),
        ("try:\n    x = c()\nexcept* ValueError:\n    y = 1\nz = 0", "z"),
        # A with may swallow what fails in it.
        ("with c() as (x, [*y]), d() as w:\n    z = 0", "xywz"),
        ("with c() as x:\n    y = 1\nz = 0", "z"),
        # A case binds what it captures; only a case for everything leaves no way around.
        ("match c():\n    case {'k': [x, *y], **w} | [x, {'k': y, **w}]:\n        z = 0", "xywz"),
        ("match c():\n    case [x]:\n        y = 1\nz = 0", "z"),
        ("match c():\n    case 1:\n        x = 1\n    case _:\n        x = 2\nz = 0", "xz"),
        ("match c():\n    case 1:\n        x = 1\n    case x:\n        pass\nz = 0", "xz"),
        ("match c():\n    case 1:\n        x = 1\n    case x if d():\n        pass\nz = 0", "z"),
        # Functions know their parameters and their own names.
        ("def f(a, /, b=1, *c, d, **e):\n    z = 0", "abcdez"),
        ("x = 1\ndef f():\n    z = 0", "z"),
        ("def f(x):\n    def g():\n        z = 0", "z"),
        ("def f(x):\n    def g():\n        y = 1\n    z = 0", "xz"),
        ("class A:\n    x = 1\n    async def f(self):\n        z = 0", ("self", "z")),
        # Only some kinds of assignments count, and attributes and items are no names.
        ("import x\ndef y(): pass\nclass w: pass\nz = 0", "z"),
        ("x: int\ny: int = 1\nw.a = w[0] = 1\nz = 0", "yz"),
        ("print(x := 1)\ny = [i for i in c()]\nz = 0", "yz"),
        ("a = b = (c, [d, *e]) = g()\nf += 1\nz = 0", "abcdefz"),
        # A name that the program unbinds anywhere is never certain: it may happen between any two lines.
        ("x = y = w = v = 1\nz = 0\ndel x, (y, [w])", "vz"),
        ("x = y = 1\nz = 0\ndef f():\n    global x\n    del x", "yz"),
        ("x = y = 1\ntry:\n    c()\nexcept ValueError as x:\n    pass\nz = 0", "yz"),
    ],
)  # fmt: skip
def test_names_certainly_bound_after_z(code: str, bound: str | tuple[str, ...]) -> None:
    program = ParsedProgram(code)
    [names] = [point.bound for point in points(program) if program.of(point.statement) == "z = 0"]
    assert sorted(names) == sorted(bound)


@pytest.mark.parametrize(
    "leave", ["return", "raise c", "break", "continue", "while True:\n            x = 1"]
)
def test_nothing_after_the_end_of_a_way_is_a_point(leave: str) -> None:
    code = (
        f"def f(a):\n    for i in a:\n        {leave}\n        z = 1\n        def g(y):\n            z = y\n"
    )
    program = ParsedProgram(code)
    assert [
        program.of(point.statement) for point in points(program) if program.of(point.statement)[0] == "z"
    ] == []


def test_points_are_in_the_order_of_the_text() -> None:
    code = textwrap.dedent("""
        a = 1
        if a:
            a += 2
        elif a:
            try:
                a = 3
            except ValueError:
                a = 4
            else:
                a = 5
            finally:
                a = 6
        for a in []:
            a = 7
        else:
            a = 8
        async def f():
            b: int = 9
        class A:
            a = 0
            def f(self):
                b = 10
        with f():
            a = 11
        match a:
            case 1:
                a = 12
        if a: a = 13
    """)
    program = ParsedProgram(code)
    found = [program.of(point.statement).partition("\n")[0] for point in points(program)]
    assert found == [
        "a = 1", "a += 2", "a = 3", "a = 4", "a = 5", "a = 6", "if a:", "a = 7", "a = 8", "b: int = 9",
        "b = 10", "a = 11", "a = 12", "a = 13", "if a: a = 13",
    ]  # fmt: skip
    assert {point.chance for point in points(program) if program.of(point.statement).startswith("if")} == {
        0.4
    }


_NAMES = st.sampled_from("abcd")
_SIMPLE = ("assign", "assign", "tuple", "augment", "fail", "show", "del")
_COMPOUND = (
    "if",
    "elif",
    "for",
    "for else",
    "while",
    "while true",
    "try",
    "finally",
    "else",
    "with",
    "match",
    "except as",
)
_LEAVE = ("break", "continue", "return", "raise")


@st.composite
def _suites(draw: st.DrawFn, depth: int, loop: str = "", safe: bool = False) -> list[str]:
    """Returns lines of a suite. "break" leaves ``loop``; if ``safe``, "continue" could loop for ever."""
    lines: list[str] = []

    def inner(loop: str = loop, safe: bool = safe) -> list[str]:
        return ["    " + line for line in draw(_suites(depth - 1, loop, safe))]

    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(_SIMPLE + (_COMPOUND * 2 if depth else ()) + _LEAVE))
        name = draw(_NAMES)
        match kind:
            case "assign":
                lines += [f"{name} = flip()"]
            case "tuple":
                lines += [f"{name}, *c = flip(), 2, 3"]
            case "augment":
                lines += [f"{name} = 1", f"{name} += flip()"]
            case "fail":
                lines += ["fail()"]
            case "show":
                lines += ["print('shown')"]
            case "del" if name == "d":
                lines += ["d = 1", "del d"]
            case "if":
                lines += ["if flip():", *inner()]
            case "elif":
                lines += ["if flip():", *inner(), "elif flip():", *inner(), "else:", *inner()]
            case "for":
                lines += [f"for {name} in range(2 * flip()):", *inner("for", False)]
            case "for else":
                lines += ["for _ in range(2):", *inner("for", False), "else:", *inner()]
            case "while":
                lines += ["while flip():", *inner("while", False), "else:", *inner()]
            case "while true":
                lines += ["while True:", "    if not flip(): break", *inner("while", False)]
            case "try":
                lines += ["try:", *inner(), "except ValueError:", *inner()]
            case "finally":
                lines += ["try:", *inner(), "finally:", *inner(safe=True)]
            case "else":
                lines += [
                    "try:",
                    *inner(),
                    "except ValueError:",
                    *inner(),
                    "else:",
                    *inner(),
                    "finally:",
                    *inner(safe=True),
                ]
            case "with":
                lines += [f"with swallow() as {name}:", *inner()]
            case "match":
                lines += ["match flip():", f"    case 1 as {name}:", *["    " + line for line in inner()]]
                lines += ["    case _:", *["    " + line for line in inner()]]
            case "except as":
                lines += ["try:", *inner(), "except ValueError as e:", *inner()]
            case "break" if loop:
                lines += [draw(st.sampled_from(["break", "if flip(): break"]))]
            case "continue" if loop and not (safe and loop == "while"):
                lines += [draw(st.sampled_from(["continue", "if flip(): continue"]))]
            case "return":
                lines += [draw(st.sampled_from(["return", "if flip(): return"]))]
            case "raise":
                lines += [draw(st.sampled_from(["raise ValueError", "if flip(): raise ValueError"]))]
    return lines or ["pass"]


def _outcome(code: str, bits: list[int]) -> tuple[str, str]:
    """Returns the output of a made-up program, and the type of the exception that ends it."""
    left = iter(bits)

    class Swallow:
        def __enter__(self) -> int:
            return 7

        def __exit__(self, kind: object, *rest: object) -> bool:
            return kind is ValueError

    def flip() -> int:
        return next(left, 0)

    def fail() -> None:
        if flip():
            raise ValueError

    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(code, "<made up>", "exec"), {"flip": flip, "fail": fail, "swallow": Swallow})
            end = ""
        except Exception as error:
            end = type(error).__name__
    return out.getvalue(), end


@given(_suites(3), st.lists(st.integers(0, 1), max_size=40))
@settings(max_examples=200)
def test_with_prints_wherever_they_may_stand_a_program_does_the_same(
    body: list[str], bits: list[int]
) -> None:
    code = "\n".join(["def f(p):", *("    " + line for line in body), "f(0)", "print('end')"])
    out, end = _outcome(code, bits)
    for seed in range(4):
        injected_out, injected_end = _outcome(place(ParsedProgram(code), seed, most=10**6), bits)
        assert injected_end == end
        assert unchanged(out, injected_out)
