"""Every declared game has a golden transcript, and still plays it."""

from __future__ import annotations

import pytest

from game_gym.games import DECLARED
from tests.game_gym import golden


@pytest.mark.parametrize("game", DECLARED)
def test_transcript_is_unchanged(game: str) -> None:
    assert golden.path(game).is_file(), "write it with: python -m tests.game_gym.golden"
    assert golden.path(game).read_text(encoding="utf-8") == golden.transcript(game)


def test_no_transcript_without_a_game() -> None:
    assert {file.stem for file in golden.FOLDER.glob("*.json")} == set(DECLARED)
