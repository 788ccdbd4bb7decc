"""Recorded numbers of every way to play and to learn, which no change of the code's shape may change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gamespiel.fixed_points import CASES, RECORDED, fingerprint, play, play_again
from tests.gamespiel.runs import mark_samples

SAMPLES = ("whole prompts", "text", "self-play against a pool")
"""Cases of ``make test``."""
SOLVED = ("default", "padded")
"""Cases with half a minute of exact values, which only ``python -m tests.gamespiel.fixed_points`` plays."""
COARSE = ("bfloat16", "bfloat16 text")
"""Cases whose numbers are other draws on another processor, so that only the repetition is compared."""


@pytest.mark.parametrize("name", mark_samples([name for name in CASES if name not in SOLVED], SAMPLES))
def test_numbers_are_the_recorded_ones_and_a_resume_repeats_them(name: str, tmp_path: Path) -> None:
    """The first step's numbers are compared with those of another processor, so within its rounding.

    The second step begins where the first one's rounding has led, and is compared with its repetition.
    """
    run = play(name, tmp_path / "run")
    numbers, expected = fingerprint(run), json.loads(RECORDED.read_text())[name]
    for row, recorded in zip(numbers["rows"], expected["rows"], strict=True):
        assert recorded.keys() - row.keys() == set()  # metrics may be added
    for key, value in expected["rows"][0].items():
        assert name in COARSE or numbers["rows"][0][key] == pytest.approx(value, rel=0.02, abs=1e-4), key
    play_again(run)
    assert fingerprint(run) == numbers
