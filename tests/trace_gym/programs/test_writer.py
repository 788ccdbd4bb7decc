"""Tests of the writer: filled texts, blocks, sizes."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_gym.programs.builtin.writer import (
    TURNS,
    Writer,
    define,
    fill,
    join,
    program,
    spaced,
    spread,
    strings,
    under,
)


def text(lines: str) -> str:
    return dedent(lines).strip("\n")


def test_a_placeholder_alone_takes_a_block_and_its_indentation() -> None:
    filled = fill(
        """
        for $x in $many:
            $body
            $nothing
        print("$x {}")
        """,
        x="item",
        many="range(3)",
        body="if $x > 1:\n    print($x)",
        nothing="",
    )
    assert filled == text(
        """
        for item in range(3):
            if item > 1:
                print(item)
        print("item {}")
        """
    )


def test_what_cannot_be_filled_says_so() -> None:
    with pytest.raises(KeyError, match="y"):
        fill("x = $y")
    with pytest.raises(ValueError, match="has more than one line"):
        fill("x = $y", y="1\n2")


def test_blocks() -> None:
    assert under("while x:", "x -= 1\n") == "while x:\n    x -= 1"
    assert define("f($x)", "\n$none\n\nreturn $x", x="n", none="") == "def f(n):\n    return n"
    assert define("class A", "pass") == "class A:\n    pass"
    assert join("a = 1", "", "b = 2\n") == "a = 1\nb = 2"
    assert strings(["a", "b"]) == '["a", "b"]'
    assert (spaced(1, 9, 1), spaced(1, 9, 2)) == ("1, 9", "1, 9, 2")


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


def test_long_lists_are_spread_over_lines() -> None:
    assert spread("a", ["1", "2"]) == "a = [1, 2]"
    assert spread("a", ["1", "2"], width=9) == "a = [\n    1, 2,\n]"
    assert spread("a", ["11", "22", "33"], width=12) == "a = [\n    11, 22,\n    33,\n]"
    assert spread("a", ['"k": 1'], "{}") == 'a = {"k": 1}'
    long = ["('something', 1)"] * 2
    assert spread("a", long, width=20) == f"a = [\n    {long[0]},\n    {long[1]},\n]"


@given(st.integers(1, 20), st.integers(1, 500))
def test_sizes_grow_with_the_dial_from_end_to_end(low: int, more: int) -> None:
    sizes = [Writer(0, 1, dial).size(low, low + more) for dial in range(0, TURNS, 31)]
    assert sizes == sorted(sizes)
    assert sizes[0] == low
    # The last turn is one of 1024 steps short of the end: by a factor of at most 501 ** (1 / 1024) = 1.0061.
    assert (low + more) / 1.0061 - 1 < Writer(0, 1, TURNS - 1).size(low, low + more) <= low + more


def test_the_middle_of_the_dial_is_the_geometric_mean() -> None:
    # sqrt(4 * 100) = 20, and a quarter of the way sqrt(4 * 20) = 8.94.
    assert Writer(0, 1, TURNS // 2).size(4, 100) == 20
    assert Writer(0, 1, TURNS // 4).size(4, 100) == 9


@given(st.integers(0, 10**6), st.integers(1, 10))
def test_the_dial_changes_no_choice(seed: int, level: int) -> None:
    low, high = Writer(seed, level, 0), Writer(seed, level, TURNS - 1)
    assert low.sample(range(9), low.size(1, 9)) == high.sample(range(9), high.size(1, 9))[:1]
    assert low.show("a", "b") == high.show("a", "b")
    assert low.grow(2, 9) == high.grow(2, 9)


@given(st.integers(0, 10**6), st.integers(1, 10))
def test_pieces_by_level(seed: int, level: int) -> None:
    w = Writer(seed, level, 0)
    assert w.at(4, "x") == ("x" if level >= 4 else "")
    assert w.at(4, "x", below=6) == ("x" if level in (4, 5) else "")
    assert w.maybe(4, "x", 0) == ""
    assert w.maybe(1, "x", 100) == "x"
    assert 2 <= w.grow(2, 11) <= 11
    # A growth of nine over nine steps: exactly one per level.
    assert w.grow(1, 10) == level
    assert w.some(["a"], 1, 1) == "a"
    assert w.some(["a", "b"], -2, -1) == ""


@given(st.integers(0, 10**6))
def test_prints_say_the_same_in_every_manner(seed: int) -> None:
    w = Writer(seed, 5, 0)
    printed: list[str] = []
    namespace = {"total": 7, "n": 2, "print": lambda *values: printed.append(" ".join(map(str, values)))}
    exec(w.show("total", "total"), namespace)
    exec(w.tell("turn", "n", "total"), namespace)
    exec(w.show("last", 'str(total) + "!"'), namespace)
    assert printed[0] in ("total: 7", "total = 7", "total is 7", "total -> 7")
    assert printed[1] in ("turn 2 7", "turn 2: 7")
    assert printed[2].startswith("last") and printed[2].endswith(" 7!")


def test_now_and_then() -> None:
    w = Writer(3, 1, 0)  # level 1 prints once
    assert w.sometimes("i", 10, "print(i)") == "if i % 10 == 0:\n    print(i)"
    assert w.sometimes("i", 1, "print(i)") == "print(i)"
