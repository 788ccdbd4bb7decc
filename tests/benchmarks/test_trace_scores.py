"""The answers of ``benchmarks.trace_scores``, on programs made up here, and how parts are merged."""

from __future__ import annotations

from benchmarks.trace_scores import chosen, measured
from trace_gym.backends import Trace


def trace(truth: str, *false: str) -> Trace:
    return Trace("name = 'apple'\nprint(name, 3)", "", truth, "strings", 1, None, 0, "none", false)


def test_a_choice_among_equals_counts_as_a_share() -> None:
    assert chosen(trace("apple 3", "apple 4", "pear", "4")) == {"random": 0.25, "words": 1.0}
    assert chosen(trace("apple 4", "apple 5", "pear")) == {"random": 1 / 3, "words": 0.5}
    assert chosen(trace("4", "apple 3")) == {"random": 0.5, "words": 0.0}


def test_a_row() -> None:
    row = measured("sorting", 2)
    # Nothing is never right: a program without output is no task.
    assert row["replies"]["empty"] == {"affine": 0.0, "exact": 0.0, "lines": 0.0}
    assert (row["family"], row["tasks"], set(row["choices"])) == ("sorting", 2, {"random", "words"})
    assert 1 / 8 <= row["choices"]["random"][0] <= 1 / 4
