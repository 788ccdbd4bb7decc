"""docs/scores.md is current, and the benchmark behind it merges parts."""

from __future__ import annotations

from typing import Any

from benchmarks.scores import merged
from docs import generate_scores


def row(game: str, agent: str, mean: float = 0.5) -> dict[str, Any]:
    return {"game": game, "agent": agent, "score": [mean, mean, mean]}


def test_it_is_current() -> None:
    text = generate_scores.PAGE.read_text(encoding="utf-8")
    assert generate_scores.page() == text, "write it anew with: python -m docs.generate_scores"


def test_what_is_not_measured_and_what_is_refused() -> None:
    assert generate_scores.cells(None) == ("-", "-")
    assert generate_scores.cells({"refused": "moves at once"}) == ("refused", "refused")
    shown = generate_scores.cells({"score": [0.5, 0.401, 0.6], "success": [0.45, 0.355, 0.55]})
    assert shown == ("0.50 [0.40, 0.60]", "45% [36%, 55%]")


def test_parts_are_merged_in_the_tables_order() -> None:
    """A new row takes the place of the old one of its game and player; other rows stay."""
    old = [row("hex", "random"), row("leduc_poker", "mcts:50x1", 0.9)]
    new = [row("leduc_poker", "first"), row("hex", "random", 0.6), row("leduc_poker", "random")]
    found = [(each["game"], each["agent"], each["score"][0]) for each in merged(old, new)]
    assert found == [
        ("leduc_poker", "random", 0.5),
        ("leduc_poker", "mcts:50x1", 0.9),
        ("leduc_poker", "first", 0.5),
        ("hex", "random", 0.6),
    ]
