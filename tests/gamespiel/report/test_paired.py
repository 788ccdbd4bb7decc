"""Paired scores of the same episodes before and after training."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

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
