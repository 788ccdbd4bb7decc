"""Tests of upstream's injection against records from a Python that writes programs as 3.11 does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from task_gym.errors import ArgumentError, ProgramError
from trace_gym.inject import inject

_DATA = Path(__file__).parents[2] / "data" / "affinetes_injections.jsonl"
_RECORDS = [record for record in map(json.loads, _DATA.read_text().splitlines()) if "injected" in record]


def test_injection_is_upstreams() -> None:
    assert len(_RECORDS) == 75
    for record in _RECORDS:
        assert inject(record["source"], record["seed"], style="affine") == record["injected"]


def test_no_print_where_none_is_asked_for() -> None:
    # Upstream loses layout and comments; the prints do not.
    assert inject("x=1 # one\n", 0, style="affine", most=0) == "x = 1"


def test_a_fence_need_not_be_closed() -> None:
    assert inject("```py\nprint(2)\n", 0, style="affine") == "print(2)"


def test_most_is_a_bound() -> None:
    code = "x = 1\n" * 100
    assert inject(code, 0, style="affine").count("__DBG_") == 6
    assert inject(code, 0, style="affine", most=9).count("__DBG_") == 9


def test_what_cannot_be_injected_is_a_named_error() -> None:
    with pytest.raises(ProgramError, match="too deeply"):
        inject("-" * 20_000 + "1", 0, style="affine")
    with pytest.raises(ProgramError, match="not text"):
        inject("x = '\ud800'", 0, style="affine")
    with pytest.raises(
        ArgumentError, match="'affine2' was given, allowed: 'safe', 'affine'; did you mean 'affine'"
    ):
        inject("x = 1", 0, style="affine2")
    with pytest.raises(ArgumentError, match="-1 was given"):
        inject("x = 1", 0, most=-1)
