"""Texts that are no program."""

from __future__ import annotations

import pytest

from task_gym.errors import ProgramError
from trace_gym.syntax import ParsedProgram, compiles


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = (1", "line 1"),
        ("x\n y", "line 2"),
        ("'\ud800'", "text"),
        ("x\0", "null|NUL"),
        ("-" * 20_000 + "1", "deeply"),
    ],
)
def test_what_is_no_program_is_a_named_error(text: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        ParsedProgram(text)
    assert not compiles(text)
    assert compiles("x = 1") and not compiles("break") and ParsedProgram("break").tree.body
