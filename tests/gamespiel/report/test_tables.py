"""Tables: paired scores of the same episodes before and after training, and agents behind endpoints."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from gamespiel.endpoints.completion import Usage
from gamespiel.report.endpoints import endpoint_table, rows_of
from gamespiel.report.paired import pair_scores, render_pairs

BEFORE = [("hex", 0.0), ("go", 0.5), ("hex", 1.0), ("chess", 0.5), ("go", 0.25)]
AFTER = [("hex", 1.0), ("go", 0.5), ("hex", 1.0), ("chess", None), ("go", 0.75)]


def test_differences_are_by_game_and_over_all() -> None:
    """hex: 1 and 0, mean 1/2, deviation 1/√2, error 1/2; go: 0 and 1/2, half of that; chess: a fault."""
    rows = pair_scores(BEFORE, AFTER)
    assert list(rows) == ["go", "hex", "all"]
    assert rows["hex"][:3] == (2, 0.5, 1.0) and rows["go"][:3] == (2, 0.375, 0.625)
    assert rows["hex"].change == pytest.approx((0.5, 0.5 - 0.98, 0.5 + 0.98), abs=1e-3)
    assert rows["go"].change == pytest.approx((0.25, 0.25 - 0.49, 0.25 + 0.49), abs=1e-3)
    # All: 1, 0, 0, 1/2: mean 3/8; the squares of the deviations sum to 25/64 + 2 × 9/64 + 1/64 = 11/16.
    error = 1.96 * (11 / 16 / 3 / 4) ** 0.5
    assert rows["all"].change == pytest.approx((0.375, 0.375 - error, 0.375 + error), abs=1e-3)
    assert rows["all"].episodes == 4


def test_other_episodes_are_not_compared() -> None:
    """One game; other numbers of episodes; other games, as after a change of eval_games."""
    assert pair_scores([("hex", 0.0)], [("hex", 1.0)]) == {}
    assert pair_scores(BEFORE, AFTER[:-1]) == pair_scores(BEFORE, AFTER[::-1]) == pair_scores([], AFTER) == {}


def test_the_table() -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(render_pairs(pair_scores(BEFORE, AFTER)))
    lines = [line.split() for line in console.file.getvalue().splitlines() if line.strip()]  # type: ignore[attr-defined]
    assert lines[0] == ["score", "episodes", "before", "after", "change", "95%", "interval"]
    console.print(render_pairs(pair_scores([("a", 0.0), ("b", 0.0)], [("a", 0.0), ("b", 1.0)])))
    last = console.file.getvalue().splitlines()[-3].split()  # type: ignore[attr-defined]
    assert last[:4] == ["b", "1", "0.000", "1.000"] and last[-1] == "-"
    assert lines[3] == ["hex", "2", "0.500", "1.000", "+0.500", "-0.480", "…", "+1.480"]


def test_an_error_of_null_is_none() -> None:
    played: dict[str, Any] = {"score": 1.0, "success": True, "error": None, "extra": {"game": "a"}}
    failed: dict[str, Any] = {"score": 0.0, "success": False, "error": "away", "extra": {}}
    rows = rows_of([played, played, failed], lambda record: [record["extra"]["game"]])
    assert [(name, row.episodes, row.faults) for name, row in rows.items()] == [("a", 2, 0), ("all", 2, 1)]
    assert rows["all"].score is not None and rows["all"].score.mean == 1.0


def test_a_single_score_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    played: dict[str, Any] = {"score": 0.75, "success": True, "error": None, "extra": {}}
    Console(width=100).print(endpoint_table("one", rows_of([played], lambda record: []), Usage(), None))
    shown = capsys.readouterr().out
    assert "0.750" in shown and "inf" not in shown
