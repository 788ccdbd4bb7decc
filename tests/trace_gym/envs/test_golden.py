"""Tests that every id reproduces its golden transcript."""

from __future__ import annotations

import pytest

from tests.trace_gym.golden import path, transcript
from tests.trace_gym.play import IDS

DEAR = [pytest.mark.families, pytest.mark.sample]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=DEAR if name == "CodeTraceChoice-v0" else ()) for name in IDS]
)
def test_transcript(name: str) -> None:
    assert transcript(name) == path(name).read_text(encoding="utf-8")
