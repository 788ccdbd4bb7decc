"""Measured runs in this process, and programs that count their own lines."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from trace_gym.admission.counting import LIMITED, limit_lines
from trace_gym.admission.measure import execute
from trace_gym.sandbox import Limits, Sandbox

LOOP = "total = 0\nfor i in range({n}):\n    total += i\nprint(total)\n"


def test_live_variables_and_call_depth() -> None:
    code = """
def inner(a, b):
    c = a + b
    return c

def outer(n):
    if n == 0:
        return inner(1, 2)
    return outer(n - 1)

x = outer(3)
"""
    measured = execute(code)
    # outer(3), outer(2), outer(1), outer(0), inner: five calls. x, four times n, and a, b, c.
    assert (measured.depth, measured.live) == (5, 1 + 4 + 3)


def test_a_generator_holds_its_variables_until_it_ends() -> None:
    code = "def count(n):\n    i = 0\n    while i < n:\n        yield i\n        i += 1\na = {}\nb = {}\n"
    # a and b in the module, n and i in each generator that has begun and not ended.
    assert execute(code.format("list(count(2))", "list(count(2))")).live == 2 + 2
    assert execute(code.format("count(2)", "next(a) + next(count(2))")).live == 2 + 2 * 2
    assert execute(code.format("count(2)", "next(a)")).depth == 0


def test_names_borrowed_or_defined_do_not_count() -> None:
    code = """
import sys as system
total = 0
def f(a, *rest, key=1, **more):
    global total
    count = 0
    def g():
        nonlocal count
        count += 1
    g()
    total += count
    try:
        raise ValueError
    except ValueError as error:
        pass
f(1)
"""
    # total in the module; a, rest, key, more, count and error in f; nothing in g.
    assert execute(code).live == 1 + 6


def test_input_is_the_text_given_line_by_line() -> None:
    measured = execute("print(input('name? ') + input())\nprint(input())", "Ada\n\nx\x0cy")
    assert measured.stdout == "name? Ada\nx\x0cy\n"
    assert execute("input()", "").error == "EOFError: EOF when reading a line"


def test_print_is_print() -> None:
    code = "print(1, 'a', sep='-', end='')\nprint(end='!\\n')\nprint(None, [2], flush=True)\n"
    measured = execute(code)
    assert (measured.stdout, measured.output_lines) == ("1-a!\nNone [2]\n", 2)
    assert execute("print('a', end='')").output_lines == 1
    assert execute("x = 1").output_lines == 0
    assert (execute("print(1, sep=2)").error or "").startswith("TypeError: sep must be None or a string")


def test_errors_are_told_and_what_was_printed_before_is_kept() -> None:
    measured = execute("print(1)\nint('x')\nprint(2)")
    assert measured.stdout == "1\n"
    assert measured.error == "ValueError: invalid literal for int() with base 10: 'x'"
    assert (execute("x = = 1").error or "").startswith("SyntaxError: invalid syntax")
    assert execute("raise SystemExit(3)").error == "SystemExit: 3"


def test_lines_are_limited_even_where_every_exception_is_caught() -> None:
    code = "while True:\n    try:\n        x = 1\n    except Exception:\n        pass\n"
    measured = execute(code, line_limit=50)
    assert measured.error == "line limit: more than 50 lines were executed"
    assert measured.lines == 51
    assert execute(LOOP.format(n=3), line_limit=9).error is None
    assert execute(LOOP.format(n=3), line_limit=8).error is not None
    assert execute("x = all(True for _ in iter(int, 1))", line_limit=50).error is not None


def test_output_is_limited_in_bytes() -> None:
    assert execute("print('é' * 3)", output_limit=7).stdout == "ééé\n"
    measured = execute("print('ab')\nprint('é' * 3)", output_limit=9)
    assert measured.error == "output limit: more than 9 bytes were printed"
    assert measured.stdout == "ab\nééé"  # 3 + 6 bytes; the newline, written by itself, is the tenth
    assert execute("print('é' * 4)", output_limit=7).stdout == ""  # never a part of one print


def test_the_process_is_left_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = (builtins.print, builtins.input, sys.stdout, sys.gettrace(), sys.getrecursionlimit())
    execute("print('inside')\nprint = input = None\nx = 1")
    assert (builtins.print, builtins.input, sys.stdout, sys.gettrace(), sys.getrecursionlimit()) == before
    assert capsys.readouterr().out == ""
    assert execute("print(x)").error == "NameError: name 'x' is not defined"


def test_threads_do_not_meet() -> None:
    code = "n = int(input())\nfor i in range(200):\n    n += i % 3\nprint(n)\n"
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda n: execute(code, f"{n}\n").stdout, range(40)))
    # 200 = 66 * 3 + 2: 66 times 0 + 1 + 2, then 0 + 1.
    assert outputs == [f"{n + 66 * 3 + 1}\n" for n in range(40)]


# -- programs that count their own lines: same behaviour, and no gain from hiding from the count -----------


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(cpu_seconds=2, wall_seconds=5.0)) as sandbox:
        yield sandbox


# The lines that each program executes, counted by hand: L is a statement, P a pass, C a call of a lambda.
@pytest.mark.parametrize(
    ("program", "lines"),
    [
        ("print(1)", 1),
        ('"""A docstring is no line."""\nprint(1)', 1),
        ("for i in range(3):\n    print(i)", 7),  # the loop L, 3 P, 3 L
        ("i = 2\nwhile i:\n    i -= 1\nelse:\n    print(i)", 7),  # 2 L, 2 P, 2 L, 1 L
        ("x = 1\nif x > 2:\n    x = 5\nelif x == 1:\n    x = 6\nelse:\n    x = 7", 4),  # x, if, elif, x = 6
        ("print([i for i in range(4) if i])", 5),  # L, 4 P
        ("print({i: j for i in range(2) for j in range(3)})", 9),  # L, 2 P, 6 P
        ("f = lambda n: n and f(n - 1)\nprint(f(3))", 6),  # 2 L, 4 C
        ("def f():\n    '''Doc.'''\n    return 1\nprint(f())", 3),  # def L, print L, return L
        ("def f():\n    yield 1\n    yield 2\nprint(*f())", 4),  # def L, print L, 2 L
        # 2 L, 2 L, 1 L
        ("class A:\n    '''Doc.'''\n    x = 1\n    def f(self): return 2\nprint(A().f())", 5),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    print(0)\nfinally:\n    print(1)", 4),
        ("match 3:\n    case 1:\n        print(1)\n    case _:\n        print(2)", 2),
        ("def f():\n    global x\n    x = 1\n    'Nothing.'\nf()\nprint(x)", 4),  # 3 L, 1 L
        ("from __future__ import annotations\nprint(1)", 1),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    print(1)\nasyncio.run(f())", 5),
    ],
)
def test_the_limit_is_exact(program: str, lines: int, sandbox: Sandbox) -> None:
    plain = sandbox.run(program)
    measured = execute(program)
    assert (measured.lines, measured.error) == (lines, None)
    enough = sandbox.run(limit_lines(program, lines))
    assert (enough.status, enough.stdout, enough.stderr) == ("ok", plain.stdout, "")
    short = sandbox.run(limit_lines(program, lines - 1))
    assert (short.status, short.stderr) == ("error", LIMITED)


@pytest.mark.parametrize(
    "program",
    [
        '"""Mine."""\nprint(__doc__, __name__)',
        "def f():\n    '''Says so.'''\nprint(f.__doc__, f.__name__, f.__module__)",
        "from __future__ import annotations\ndef f(x: Nowhere): ...\nprint(f.__annotations__)",
        "def f(x: int): ...\nprint(f.__annotations__)",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: int = 1\nprint(A())",
        "import pickle\nclass A:\n    x = 1\nprint(pickle.loads(pickle.dumps(A())).x)",
        "import __main__\nvalue = 5\nprint(__main__.value)",
        "class A:\n    __slots__ = ('x',)\n    __x = 3\n    def f(self): return self.__x\nprint(A().f())",
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return g\ng = f()\ng()\nprint(g())",
        "def f(n):\n    return n and 1 + f(n - 1)\nprint(f(900))",
        "import sys\nprint('out')\nsys.exit(0)",
    ],
)
def test_a_counted_program_does_what_it_did(program: str, sandbox: Sandbox) -> None:
    plain, counted = sandbox.run(program, "in\n"), sandbox.run(limit_lines(program, 10_000), "in\n")
    assert plain.status == "ok" and plain.stdout
    assert (counted.status, counted.stdout, counted.stderr) == ("ok", plain.stdout, "")
    # In this process only builtin programs run, which import nothing.
    assert "import" in program or execute(program, "in\n").stdout == plain.stdout


@pytest.mark.parametrize(
    "program",
    [
        "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
        "import os\nos._exit = print\nos.write = print\nwhile True: pass",
        "import sys\nsys.exit = exit = lambda *a: None\nwhile True: pass",
        "import signal\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
        "import sys\nsys.stderr = sys.stdout\nwhile True: pass",
        "class A:\n    while True: pass",
        "def f():\n    while True: yield\nfor _ in f(): pass",
        "list(0 for _ in iter(int, 1))",
        "async def f():\n    while True: pass\nimport asyncio\nasyncio.run(f())",
        "f = lambda n: (f(n - 1), f(n - 1)) if n else 0\nf(20)",
        "def f():\n    return [f for _ in iter(int, 1)]\nf()",
        "import atexit\ndef f():\n    while True: pass\natexit.register(f)",
        "class A:\n    def __del__(self):\n        while True: pass\nA()",
        "import threading\ndef f():\n    while True: pass\nthreading.Thread(target=f).start()",
    ],
)
def test_it_is_stopped_whatever_it_tries(program: str, sandbox: Sandbox) -> None:
    result = sandbox.run(limit_lines(program, 2_000))
    assert (result.status, result.stderr) == ("error", LIMITED)


@pytest.mark.parametrize(
    "program",
    [
        "del __tick__\nwhile True: pass",
        "globals().clear()\nwhile True: pass",
        "import __main__\ndel __main__.__tick__\nwhile True: pass",
        "__tick__ = None\nwhile True: pass",
    ],
)
def test_taking_the_count_away_fails(program: str, sandbox: Sandbox) -> None:
    assert sandbox.run(limit_lines(program, 2_000)).status == "error"


@pytest.mark.attack
@pytest.mark.parametrize("program", ["__tick__ = int\nwhile True: pass", "exec('while True: pass')"])
def test_what_is_not_counted_has_no_more_time_than_any_program(program: str, sandbox: Sandbox) -> None:
    assert sandbox.run(limit_lines(program, 2_000)).status == "timeout"
