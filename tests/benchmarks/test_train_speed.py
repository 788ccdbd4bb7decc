"""The calculations of the benchmarks of speed."""

from __future__ import annotations

from benchmarks.scale import summarise
from benchmarks.train_speed import compare


def test_readings_are_compared_by_decision() -> None:
    """Shared takes 2 + 4 s for 20 decisions, padded 2 + 6 s for 10."""

    def steps(collecting: float, updating: float, decisions: int) -> dict[str, object]:
        step = {"collect_seconds": collecting, "update_seconds": updating, "seconds": collecting + updating}
        return {"steps": {"ppo_epochs_1": {**step, "decisions": decisions}}}

    ratios = compare({"shared": steps(2, 4, 20), "padded": steps(2, 6, 10)})
    assert ratios == {"ppo_epochs_1": {"collect_seconds": 2.0, "update_seconds": 3.0, "seconds": 2.67}}


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
