"""Measures of agents behind endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from gamespiel.endpoints.completion import Usage
from gamespiel.report.endpoints import endpoint_table, rows_of


def test_an_error_of_null_is_none() -> None:
    played: dict[str, Any] = {"score": 1.0, "success": True, "error": None, "extra": {"game": "a"}}
    failed: dict[str, Any] = {"score": 0.0, "success": False, "error": "away", "extra": {}}
    rows = rows_of([played, played, failed], lambda record: [record["extra"]["game"]])
    assert [(name, row.episodes, row.faults) for name, row in rows.items()] == [("a", 2, 0), ("all", 2, 1)]
    assert rows["all"].score is not None and rows["all"].score.mean == 1.0


def test_a_single_score_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    played: dict[str, Any] = {"score": 0.75, "success": True, "error": None, "extra": {}}
    rows = rows_of([played], lambda record: [])
    Console(width=100).print(endpoint_table("one", rows, Usage(), None))
    shown = capsys.readouterr().out
    assert "0.750" in shown and "inf" not in shown
