"""Texts: the space of all, as pictures, as a person sees them, and as templates in Python files."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.contract import CLOSING
from task_gym.picture import COLUMNS, LIST_ROWS, ROWS, SHAPE, picture, picture_rows
from task_gym.spaces import UnicodeText
from task_gym.templates import read_template
from task_gym.visible import show_controls

SPACE = UnicodeText(1000)


@given(st.text(max_size=1000))
def test_any_text_is_contained_and_survives_flattening(text: str) -> None:
    assert text in SPACE
    flat = gym.spaces.flatten(SPACE, text)
    assert flat.shape == (1000,)
    assert gym.spaces.unflatten(SPACE, flat) == text


def test_what_is_not_contained() -> None:
    assert all(wrong not in SPACE for wrong in ("x" * 1001, 5, None, b"bytes", np.array("a")))
    space = UnicodeText(3, min_length=2)  # bounds are inclusive
    assert [text in space for text in ("a", "ab", "abc", "abcd")] == [False, True, True, False]
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6) and gym.spaces.Text(5) != UnicodeText(5)


def test_samples_are_contained_and_follow_the_seed() -> None:
    first, second = UnicodeText(1000, seed=4), UnicodeText(1000, seed=4)
    samples = [first.sample() for _ in range(100)]
    assert all(sample in first for sample in samples)
    assert samples == [second.sample() for _ in range(100)]
    assert len(UnicodeText(500, min_length=300).sample()) == 300  # no longer than it must be beyond 64
    with pytest.raises(NotImplementedError, match="neither mask"):
        SPACE.sample(mask=(3, None))


# -- texts as pictures -------------------------------------------------------------------------------------


def inked(text: str) -> np.ndarray:
    """The pixels of the text's picture that are darker than half, bool (height, width)."""
    return picture(text)[:, :, 0] < 128


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
    assert shown.any() and (shown != missing).any()


@pytest.mark.parametrize("text", ["\x00\r\x07\x1b[31m\u200b\u2028", "\ud800", "e\u0301 אב 漢字 😀", "a\tb"])
def test_any_text_can_be_drawn(text: str) -> None:
    assert picture(text).shape == SHAPE


LINES = [str(number) for number in range(100)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # Long lines are wrapped after a space: 11 words and their spaces are 88.
        (" ".join(["seven77"] * 20), ["seven77 " * 11, " ".join(["seven77"] * 9)]),
        # Long lines without a space are cut. An indentation is not left alone in its row.
        ("x" * (2 * COLUMNS + 1), ["x" * COLUMNS, "x" * COLUMNS, "x"]),
        ("    " + "y" * 90, ["    " + "y" * 84, "y" * 6]),
        # Empty lines and tabs are kept.
        ("a\n\n\tb\n", ["a", "", "    b", ""]),
        # The first rows are left out.
        ("\n".join(LINES[:ROWS]), LINES[:ROWS]),
        ("\n".join(LINES[: ROWS + 1]), ["…", *LINES[2 : ROWS + 1]]),
        ("\n".join(LINES), ["…", *LINES[101 - ROWS :]]),
    ],
)
def test_rows_by_hand(text: str, rows: list[str]) -> None:
    assert picture_rows(text) == rows


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
    assert "  3 -> c   4 -> d" in picture_rows(text + "\n" + listing("  3 -> c", "  4 -> d"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ♠ été\n\ttext", "plain ♠ été\n\ttext"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),  # sets a terminal's title
        ("\x1b[2J\r", r"\x1b[2J\r"),  # clears the screen, and writes over the line
        ("\x9b31m\x7f\x00", r"\x9b31m\x7f\x00"),  # a control of one character, too
        ("a\u202eb\u2028", r"a\u202eb\u2028"),  # reverses the line, and ends it for some
        ("\ud800", r"\ud800"),
        ("\\x1b", "\\x1b"),
    ],
)
def test_controls_are_shown_as_escapes(text: str, shown: str) -> None:
    assert show_controls(text) == shown


@given(st.text(st.characters()))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    kinds = {unicodedata.category(character) for character in show_controls(text) if character not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_an_f_string_is_found_by_its_variable_and_places(tmp_path: Path) -> None:
    file = tmp_path / "there.py"
    file.write_text(
        "raise SystemExit('is not run')\n"
        "text = f'{other}'\n"
        'def make():\n    other = 1; text = f"""A {a}\n{{b}} {b . c}"""\n'
    )
    template = read_template(file, "text", ("a", "b.c"))
    assert template.fill({"a": 1, "b.c": "{a}"}) == "A 1\n{b} {a}"
    with pytest.raises(ValueError, match=r"has none, and 2 others \(other; a, b.c\); needed: one f-str"):
        read_template(file, "text", ("a",))
    file.write_text("text = f'{a}'\nif True:\n    text = f'{a}!'\nmore = f'{a!r}'\n")
    with pytest.raises(ValueError, match="has 2; needed: one f-string"):
        read_template(file, "text", ("a",))
    with pytest.raises(ValueError, match=r"1 others \(no plain expressions\)"):
        read_template(file, "more", ("a",))
