"""Templates that are read out of somebody's Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

from task_gym.templates import read_template


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
