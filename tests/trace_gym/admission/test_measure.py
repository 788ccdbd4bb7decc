"""Tests of measured runs in this process: output, counts, and no side effects."""

import builtins
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_gym.admission.measure import execute

LOOP = "total = 0\nfor i in range({n}):\n    total += i\nprint(total)\n"


@given(st.integers(0, 40))
def test_a_loop_takes_a_line_a_pass_for_its_header_and_one_for_its_body(n: int) -> None:
    measured = execute(LOOP.format(n=n))
    # total = 0, the header on entering it, then header and body n times, and the print.
    assert measured.lines == 1 + 1 + 2 * n + 1
    assert measured.stdout == f"{n * (n - 1) // 2}\n"
    assert (measured.output_lines, measured.depth, measured.live, measured.error) == (1, 0, 2, None)


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
