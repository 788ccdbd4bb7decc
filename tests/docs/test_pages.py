"""The README shows what its example prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_environments_example_prints_what_is_shown() -> None:
    (code, shown), *others = re.findall(
        r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", README, re.DOTALL
    )
    assert not others
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == shown


def test_paths_that_it_names_are_there() -> None:
    root = Path(__file__).parents[1]
    rooms = "docs|configs|benchmarks|agents|gamespiel|game_gym|task_gym|trace_gym"
    named = re.findall(rf"`((?:{rooms})/[\w./-]*)`", README)
    named += re.findall(r"\]\(([\w./-]+)\)", README)
    assert named and [path for path in named if not (root / path).exists()] == []
