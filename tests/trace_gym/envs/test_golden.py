"""Tests that every id reproduces its golden transcript."""

from __future__ import annotations

import pytest

from tests.trace_gym.golden import FOLDER, path, transcript
from tests.trace_gym.play import IDS


def test_every_id_has_a_transcript() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(IDS)


@pytest.mark.parametrize("name", IDS)
def test_transcript(name: str) -> None:
    assert transcript(name) == path(name).read_text(encoding="utf-8")
