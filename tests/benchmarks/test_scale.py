"""The calculations of the benchmark of several ranks."""

from __future__ import annotations

from benchmarks.scale import compare, summarise


def test_a_row_leaves_the_first_step_out() -> None:
    """Two ranks, two timed steps of 2 and 4 s; the busiest has 3 and 1 s, or less than the other."""

    def step(seconds: float, busy: float) -> dict[str, float]:
        return {"seconds": seconds, "cpu_seconds": busy, "collect_seconds": 1.0, "update_seconds": 1.0}

    ranks = [[step(90, 90), step(2, 3), step(4, 1)], [step(90, 90), step(2, 1), step(4, 2)]]
    row = summarise(2, 2, {"steps": ranks, "decisions": 30, "gradients": 5})
    assert row == {
        "ranks": 2, "seconds": 3.0, "collect_seconds": 1.0, "update_seconds": 1.0, "exchange_seconds": 0.0,
        "busy_seconds": 2.5, "decisions_per_step": 10.0, "gradient_bytes": 20,
    }  # fmt: skip


def test_rows_are_compared_with_one_rank() -> None:
    one = {"ranks": 1, "seconds": 4.0, "busy_seconds": 3.0, "exchange_seconds": 0.0}
    two = {"ranks": 2, "seconds": 2.5, "busy_seconds": 2.0, "exchange_seconds": 0.5}
    first, second = compare([one, two])
    assert (first["speedup"], first["busy_speedup"], first["exchange_share"]) == (1.0, 1.0, 0.0)
    assert (second["speedup"], second["busy_speedup"], second["exchange_share"]) == (1.6, 1.5, 0.2)
