"""Places without debug prints: programs that would notice one, and names that may not be bound."""

from __future__ import annotations

import ast
import importlib

import pytest

from tests.trace_gym.debug_prints import check_injections
from trace_gym.inject import inject
from trace_gym.inject.flow import points
from trace_gym.inject.hazards import STARS, find_closed_scopes, hazard
from trace_gym.inject.prints import USED
from trace_gym.sandbox import Sandbox
from trace_gym.syntax import ParsedProgram


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("print('a', end='')", "not end the line"),
        ("print('a', **{'end': ''})", "not end the line"),
        ("p = print; p('a', end='')", "not end the line"),
        ("from functools import partial\npartial(print, end='')('a')", "not end the line"),
        ("input('n? ')", "prompt"),
        ("ask = input\nask('n? ')", "prompt"),
        ("list(map(input, ['n? ']))", "prompt"),
        ("import sys\nsys.stdout.write('a')", "stdout"),
        ("from sys import stdout as out", "stdout"),
        ("import sys\ngetattr(sys, 'stdout').write('a')", "stdout"),
        ("import os\nos.write(1, b'a')", "os.write"),
        ("from os import write", "os"),
        ("import os as o\no.write(1, b'a')", "os under another name"),
        ("open(1, 'w')", "output as a file"),
        ("list(map(print, 'ab'))\nopen(1, 'w')", "output as a file"),
        ("from io import FileIO\nFileIO(1, 'w')", "output as a file"),
        ("open('/dev/stdout', 'w')", "/dev/stdout"),
        ("eval('1')", "eval"),
        ("globals()['x']", "globals"),
        ("import builtins", "builtins"),
        ("import __main__", "__main__"),
        ("from rich import *", "rich"),
        ("import sys\nsys.modules[__name__]", "modules"),
        ("import inspect", "inspect"),
        ("import os.path, traceback", "traceback"),
        ("from concurrent.futures import ThreadPoolExecutor", "concurrent"),
        ("open(__file__)", "__file__"),
        ("f = lambda: 0\nf.__code__", "__code__"),
        ("import sys\nsys._getframe()", "_getframe"),
        ("import os\nos.fork()", "fork"),
        ("class A:\n    def __del__(self): pass", "__del__"),
        ("class M(type): pass", "metaclass"),
        ("class A(metaclass=lambda *a: None): pass", "metaclass"),
        ("try: pass\nexcept RecursionError: pass", "RecursionError"),
        ("y = '__DBG_3__'", "__DBG_"),
    ],
)  # fmt: skip
def test_a_program_that_would_notice_is_refused(line: str, why: str) -> None:
    code = f"x = 1\n{line}\nif x:\n    x = 2\n"
    assert why in str(hazard(ParsedProgram(code)))
    assert all(inject(code, seed) == code for seed in range(10))


@pytest.mark.parametrize(
    "line",
    [
        "print('a', end='\\n')",
        "print('a', 'b', sep='', file=None, flush=True)",
        "def f(start, end): return end\nf(start=1, end=2)",
        "print(*map(str, [1, 2]))",
        "list(map(print, 'ab'))",
        "system = modules = code = stdout = kill = 1",
        "import sys\nsys.setrecursionlimit(5000)",
        "from math import *",
        "from abc import ABC, ABCMeta, abstractmethod\nclass A(metaclass=ABCMeta): pass",
        "class A(Exception): pass",
        "import os\nos.getcwd()",
        "'stdout'",
        "if __name__ == '__main__': x = 3",
    ],
)
def test_a_program_that_would_not_is_free(line: str, sandbox: Sandbox) -> None:
    code = f"x = 1\n{line}\nif x:\n    x = 2\n"
    assert hazard(ParsedProgram(code)) is None
    assert check_injections([(code, "")], sandbox, seeds=range(3), most=9) > 0


@pytest.mark.parametrize("module", sorted(STARS))
def test_the_modules_taken_for_harmless_bind_no_name_that_prints_use(module: str) -> None:
    names = vars(importlib.import_module(module))
    public = names.get("__all__", [name for name in names if not name.startswith("_")])
    assert not USED & set(public)


@pytest.mark.parametrize(
    ("code", "functions"),
    [
        # The names of the functions that may have prints; "module" for the module.
        ("x = 1\ndef f(a): b = a", "module f"),
        ("type = 1\ndef f(a): b = a", ""),
        ("x = 1\ndef f(type): b = type\ndef g(a): b = a", "module g"),
        ("x = 1\ndef f(a):\n    def g(c): repr = c\n    def h(c): pass\n    return a", "module f h"),
        (
            "x = 1\ndef f(int):\n    def g(c): pass\n    class A:\n        def h(c): pass\n    return a",
            "module",
        ),
        ("class A:\n    type = 1\n    def print(self): x = 1\n    def f(a): b = a", "module print f"),
        ("class A:\n    global bool\n    bool = 1\n    def f(a): b = a", ""),
        ("def f(a):\n    global str\n    str = a", ""),
        ("def f(a):\n    float = 1\n    def g():\n        nonlocal float", "module"),
        ("from x import y as print", ""),
        ("from x import print as y", "module"),
        ("import print.y", ""),
        ("try: pass\nexcept ValueError as type: pass", ""),
        ("match 1:\n    case {'a': [1 as str, *_], **x}: pass", ""),
        ("match 1:\n    case {'a': 1, **str}: pass", ""),
        ("for int in []: pass", ""),
        ("x = (type := 1)", ""),
        ("x = lambda type: type", "module"),
        ("del repr", ""),
    ],
)
def test_no_prints_where_their_own_names_may_mean_something_else(code: str, functions: str) -> None:
    tree = ParsedProgram(code).tree
    closed = find_closed_scopes(tree)
    scopes = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.FunctionDef))]
    free = ["module" if isinstance(node, ast.Module) else node.name for node in scopes if node not in closed]
    assert sorted(free) == sorted(functions.split())


_TEXT_OF = "class A:\n    def __str__(self):\n        y = 1\n        return 'a'\nx = A()\n"


@pytest.mark.parametrize(
    ("line", "begun"),
    [
        *[(line, True) for line in ("print('x', x)", "print(*[1, x])", "list(map(print, [1], [x]))")],
        ("import pprint", True),
        ("print(x)", False),
        ("print(f'{x} {x}', 1, f'{x}', str(x), len('a'))", False),
        ("print('a', ', '.join([str(x)]))", False),
    ],
)
def test_prints_are_in_functions_unless_a_line_may_have_begun(
    line: str, begun: bool, sandbox: Sandbox
) -> None:
    code = _TEXT_OF + line + "\n"
    assert check_injections([(code, "")], sandbox, seeds=range(6), most=9) > 0
    assert any("    print('__DBG" in inject(code, seed, most=9) for seed in range(20)) != begun


# -- definite assignment -----------------------------------------------------------------------------------


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
