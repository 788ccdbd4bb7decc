"""Texts as pictures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.contract import CLOSING
from task_gym.picture import COLUMNS, LIST_ROWS, ROWS, SHAPE, picture, picture_rows

# A cell of the picture is 8 pixels wide and 16 high, behind a margin of 8.
HEIGHT, WIDTH, MARGIN = 16, 8, 8


def inked(text: str) -> np.ndarray:
    """The pixels of the text's picture that are darker than half, bool (height, width)."""
    return picture(text)[:, :, 0] < 128


def cell(shown: np.ndarray, row: int, column: int) -> np.ndarray:
    top, left = MARGIN + row * HEIGHT, MARGIN + column * WIDTH
    return shown[top : top + HEIGHT, left : left + WIDTH]


def listing(*items: str) -> str:
    return "Board\n\nLegal Actions:\n" + "\n".join(items) + f"\n\n{CLOSING}"


def test_shape_and_colours() -> None:
    # 44 rows of 16 and 88 columns of 8 pixels, and a margin of 8 on each side.
    assert SHAPE == (720, 720, 3)
    shown = picture("♠ a")
    assert shown.shape == SHAPE and shown.dtype == np.uint8 and shown.flags.writeable
    assert (shown == shown[:, :, :1]).all()  # gray
    assert shown[0, 0, 0] == 255 and shown.min() < 64
    assert (picture("") == 255).all()
    shown[:] = 0  # what is returned is the caller's
    assert picture("♠ a").max() == 255


@pytest.mark.parametrize("character", "♠♥♦♣─│┌┼╔║▓←↑→↓…½éж")
def test_the_font_has_what_games_print(character: str) -> None:
    shown, missing = inked(character), inked("\U0010ffff")
    assert cell(shown, 0, 0).any() and (shown != missing).any()


def test_each_character_has_its_cell() -> None:
    text = " ".join("♠M─é" * 11)
    shown = inked(text)
    for column, character in enumerate(text):
        assert cell(shown, 0, column).any() == (character != " ")
    # The same letter is the same picture wherever it is.
    assert (cell(shown, 0, 2) == cell(shown, 0, 82)).all()


@pytest.mark.parametrize("text", ["\x00\r\x07\x1b[31m\u200b\u2028", "\ud800", "e\u0301 אב 漢字 😀", "a\tb"])
def test_any_text_can_be_drawn(text: str) -> None:
    assert picture(text).shape == SHAPE


def test_long_lines_are_wrapped_after_a_space() -> None:
    words = " ".join(["seven77"] * 20)  # 159 characters; 11 words and their spaces are 88
    first, second = picture_rows(words)
    assert first == "seven77 " * 11 and len(first) == COLUMNS
    assert first + second == words


def test_long_lines_without_a_space_are_cut() -> None:
    assert picture_rows("x" * (2 * COLUMNS + 1)) == ["x" * COLUMNS, "x" * COLUMNS, "x"]
    # An indentation is not left alone in its row.
    assert picture_rows("    " + "y" * 90) == ["    " + "y" * 84, "y" * 6]


def test_empty_lines_and_tabs_are_kept() -> None:
    assert picture_rows("a\n\n\tb\n") == ["a", "", "    b", ""]


def test_the_first_rows_are_left_out() -> None:
    lines = [str(number) for number in range(100)]
    assert picture_rows("\n".join(lines[:ROWS])) == lines[:ROWS]
    assert picture_rows("\n".join(lines[: ROWS + 1])) == ["…", *lines[2 : ROWS + 1]]
    assert picture_rows("\n".join(lines)) == ["…", *lines[101 - ROWS :]]


@given(st.lists(st.sampled_from(["a", "bc" * 30, " ", "\n", "\t", "♠ "]), max_size=400).map("".join))
def test_rows_fit_the_picture(text: str) -> None:
    rows = picture_rows(text)
    assert len(rows) <= ROWS and all(len(row) <= COLUMNS for row in rows)
    if rows[0] != "…":
        # Nothing is lost but where rows end.
        assert "".join(rows) == "".join(line.expandtabs(4) for line in text.split("\n"))


def test_legal_actions_are_side_by_side() -> None:
    # "  1000 -> a1000" has 15 characters, so that a cell has 16, and 88 // 16 = 5 are in a row.
    items = [f"  {number} -> a{number}" for number in (*range(9), 1000)]
    assert picture_rows(listing(*items)) == [
        "Board",
        "",
        "Legal Actions:",
        "  0 -> a0         1 -> a1         2 -> a2         3 -> a3         4 -> a4",
        "  5 -> a5         6 -> a6         7 -> a7         8 -> a8         1000 -> a1000",
        "",
        CLOSING,
    ]


def test_long_lists_are_cut_and_say_so() -> None:
    # "  100 -> p" has 10 characters: 88 // 11 = 8 in a row, 96 in 12 rows; 11 rows of 8 and the rest.
    items = [f"  {number} -> p" for number in range(100, 200)]
    rows = picture_rows(listing(*items[:96]))
    assert len(rows) == 5 + LIST_ROWS and rows[-3].endswith("195 -> p")
    rows = picture_rows(listing(*items[:97]))
    assert len(rows) == 5 + LIST_ROWS and rows[-3:] == ["  … 9 more", "", CLOSING]


def test_a_list_that_a_program_prints_stays_as_it_is() -> None:
    text = listing("  1 -> a", "  2 -> b").removesuffix(CLOSING) + "Answer with the output alone."
    assert picture_rows(text) == text.split("\n")
    # The last of two lists is the environment's.
    both = text + "\n" + listing("  3 -> c", "  4 -> d")
    assert picture_rows(both) == [
        *text.split("\n"),
        "Board",
        "",
        "Legal Actions:",
        "  3 -> c   4 -> d",
        "",
        CLOSING,
    ]
