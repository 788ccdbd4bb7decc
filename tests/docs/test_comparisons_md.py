"""docs/comparisons.md: each section's blocks run in order and print what is shown.

TextArena and verifiers are only in the environment of `make comparisons`.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparisons.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", re.DOTALL)
SECTIONS = {
    part.partition("\n")[0]: BLOCK.findall(part) for part in PAGE.split("\n## ")[1:] if "```python" in part
}

NEEDS = {
    "OpenSpiel's own environment": "open_spiel",
    "TextArena": "textarena",
    "verifiers": "verifiers.v1",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_blocks_print_what_is_shown(section: str) -> None:
    pytest.importorskip(NEEDS[section])
    namespace: dict[str, Any] = {}
    for code, shown in SECTIONS[section]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/comparisons.md", "exec"), namespace)
        assert printed.getvalue() == shown


def test_every_block_shows_what_it_prints() -> None:
    assert sum(map(len, SECTIONS.values())) == PAGE.count("```python")
    assert list(SECTIONS) == list(NEEDS)


def test_the_versions_are_those_that_are_pinned() -> None:
    pins = "".join((ROOT / name).read_text("utf-8") for name in ("constraints.txt", "constraints-docs.txt"))
    told = re.search(r"They were run with ([\w-]+ [\d.]+), ([\w-]+ [\d.]+) and ([\w-]+ [\d.]+)\.", PAGE)
    assert told is not None
    for name, version in (words.split() for words in told.groups()):
        assert f"\n{name}=={version}\n" in pins
