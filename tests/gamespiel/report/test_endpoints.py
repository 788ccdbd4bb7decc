"""Measures of agents behind endpoints."""

from __future__ import annotations

from typing import Any

from gamespiel.report.endpoints import rows_of


def test_an_error_of_null_is_none() -> None:
    played: dict[str, Any] = {"score": 1.0, "success": True, "error": None, "extra": {"game": "a"}}
    failed: dict[str, Any] = {"score": 0.0, "success": False, "error": "away", "extra": {}}
    rows = rows_of([played, played, failed], lambda record: [record["extra"]["game"]])
    assert [(name, row.episodes, row.faults) for name, row in rows.items()] == [("a", 2, 0), ("all", 2, 1)]
    assert rows["all"].score is not None and rows["all"].score.mean == 1.0
