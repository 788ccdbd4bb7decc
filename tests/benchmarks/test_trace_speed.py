"""The benchmark's parts."""

from __future__ import annotations

import pytest

from benchmarks import trace_speed
from benchmarks.trace_speed import PROGRAMS, Contestant, check, race, summary


def test_the_rate_is_that_of_the_median_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three programs a round; one contestant takes 2 seconds for each, the other a quarter of one.

    In the second of three rounds the machine is busy, and everything takes ten times as long.
    """
    now, executions = 0.0, 0
    monkeypatch.setattr(trace_speed.time, "perf_counter", lambda: now)

    def taking(seconds: float) -> trace_speed.Execute:
        def execute(program: str) -> str:
            nonlocal now, executions
            now += seconds * (10 if 6 <= executions < 12 else 1)
            executions += 1
            return ""

        return execute

    found = [Contestant("subprocess", None, taking(2)), Contestant("run, limits", "limits", taking(0.25))]
    race(found, rounds=3)
    assert [contestant.seconds for contestant in found] == [[6, 60, 6], [0.75, 7.5, 0.75]]
    assert summary(found) == {
        "subprocess": {"level": None, "executions_per_second": 0.5, "times_subprocess": 1.0},
        "run, limits": {"level": "limits", "executions_per_second": 4.0, "times_subprocess": 8.0},
    }


def test_who_prints_something_else_does_not_compete() -> None:
    answers = {program: expected for program, expected in PROGRAMS.values()}
    check(Contestant("right", None, lambda program: answers[program]))
    with pytest.raises(ValueError, match="wrong: print printed 'y', not 'x"):
        check(Contestant("wrong", None, lambda program: "y"))
