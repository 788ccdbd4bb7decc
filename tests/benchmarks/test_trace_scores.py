"""The answers of ``benchmarks.trace_scores``, on programs made up here, and how parts are merged."""

from __future__ import annotations

from benchmarks.trace_scores import measured


def test_a_row() -> None:
    row = measured("sorting", 2)
    # Nothing is never right: a program without output is no task.
    assert row["replies"]["empty"] == {"affine": 0.0, "exact": 0.0, "lines": 0.0}
    assert (row["family"], row["tasks"], set(row["choices"])) == ("sorting", 2, {"random", "words"})
    assert 1 / 8 <= row["choices"]["random"][0] <= 1 / 4
