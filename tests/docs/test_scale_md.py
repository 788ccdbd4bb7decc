"""docs/scale.md: its Python block runs as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from task_gym.processes import OFFERED

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")
def test_the_block_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(block, "docs/scale.md", "exec"), namespace)
    counts = "Counts(workers_lost=0, games_replayed=0, steps_replayed=0, replay_seconds=0.0)"
    assert capsys.readouterr().out == f"4 {counts}\n"
