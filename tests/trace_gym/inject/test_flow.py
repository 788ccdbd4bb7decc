"""Tests of definite assignment: worked cases."""

from __future__ import annotations

import pytest

from trace_gym.inject.flow import points
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
