"""The calculations of the benchmark of several ranks."""

from __future__ import annotations

import pytest

from benchmarks.scale import compare, compare_shares, project


def test_a_step_on_more_ranks_by_amdahls_law() -> None:
    """Of 10 s and 6 s, 2 (10 - 6) = 8 s are shared and 2 s are each rank's own: 8 / 8 + 2 = 3 s."""
    found = project(10.0, 6.0)
    assert found == {"ranks": 8, "seconds": 3.0, "speedup": pytest.approx(10 / 3), "shared": 0.8}
    assert project(10.0, 4.9) is None and project(10.0, 10.1) is None  # other work was measured


def test_rows_are_compared_with_one_rank() -> None:
    one = {"ranks": 1, "seconds": 4.0, "busy_seconds": 3.0, "exchange_seconds": 0.0}
    two = {"ranks": 2, "seconds": 2.5, "busy_seconds": 2.0, "exchange_seconds": 0.5}
    first, second = compare([one, two])
    assert (first["speedup"], first["busy_speedup"], first["exchange_share"]) == (1.0, 1.0, 0.0)
    assert (second["speedup"], second["busy_speedup"], second["exchange_share"]) == (1.6, 1.5, 0.2)


def test_shares_within_the_range_of_the_seeds() -> None:
    found = compare_shares([0.5, 0.7, 0.6], [0.705])
    assert found["within"] and found["of_several"] == [0.705]
    assert not compare_shares([0.5, 0.7, 0.6], [0.72])["within"]
