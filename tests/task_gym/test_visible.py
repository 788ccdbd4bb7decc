"""Tests of texts by strangers, as a person sees them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.visible import show_controls


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
