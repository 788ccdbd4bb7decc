"""Tests of the writer: filled texts, lists over lines, empty lines."""

from textwrap import dedent

import pytest

from trace_gym.programs.builtin.writer import (
    fill,
    program,
    spread,
)


def text(lines: str) -> str:
    return dedent(lines).strip("\n")


def test_what_cannot_be_filled_says_so() -> None:
    with pytest.raises(KeyError, match="y"):
        fill("x = $y")
    with pytest.raises(ValueError, match="has more than one line"):
        fill("x = $y", y="1\n2")


def test_long_lists_are_spread_over_lines() -> None:
    assert spread("a", ["11", "22", "33"], width=12) == "a = [\n    11, 22,\n    33,\n]"
    assert spread("a", ['"k": 1'], "{}") == 'a = {"k": 1}'


def test_a_program_has_empty_lines_where_one_expects_them() -> None:
    parts = [
        "x = 1",
        "def f():\n    pass",
        "",
        "class A:\n    y = 2\n    def g(self):\n        pass",
        "f()",
        "A()",
    ]
    wanted = """
        x = 1


        def f():
            pass


        class A:
            y = 2

            def g(self):
                pass


        f()

        A()
        """
    assert program(*parts) == text(wanted) + "\n"
