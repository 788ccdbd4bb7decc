"""docs/plug-in.md: its Python blocks run in order, as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "plug-in.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pettingzoo")
    namespace: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/plug-in.md", "exec"), namespace)
    assert capsys.readouterr().out == "8 (8, 3)\n"
    # Every action behind the mask was legal: an illegal one would have been an error.
    assert namespace["model"].num_timesteps == 64


def test_every_library_has_a_version() -> None:
    pins = (
        (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    )
    rows = re.findall(r"^\| ([\w -]+)[^|]* \| (\d[\d.]+) \|", PAGE, re.MULTILINE)
    assert len(rows) >= 5
    for name, version in rows:
        assert f"{name.split(',')[0].strip().lower()}=={version}" in pins, name
