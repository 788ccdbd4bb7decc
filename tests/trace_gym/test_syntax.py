"""Programs as text with positions: every statement is found, whatever the text has around it."""

from __future__ import annotations

import ast

import pytest

from task_gym.errors import ProgramError
from trace_gym.syntax import ParsedProgram, compiles

# Line 1 has é, of two bytes, before the second statement; line 2 ends in CR LF, line 3 in CR, line 5 not.
_TEXT = "s = 'é'; t = 2\nu = '''a\r\n b''' # c\rif t: \\\n  v = 3"


def test_positions_count_characters() -> None:
    program = ParsedProgram(_TEXT)
    s, t, u, branch = program.tree.body
    assert isinstance(branch, ast.If)
    assert [program.of(node) for node in (s, t, u)] == ["s = 'é'", "t = 2", "u = '''a\r\n b'''"]
    assert program.before(t) == "s = 'é'; "
    assert (program.after(s), program.after(u)) == ("; t = 2", " # c")
    assert [program.newline(node) for node in (s, u, branch)] == ["\n", "\r", "\n"]
    assert program.is_continued(branch.body[0]) and not program.is_continued(branch)
    assert program.line_end(branch) == len(_TEXT)


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
