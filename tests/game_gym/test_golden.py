"""Every declared game has a golden transcript, and still plays it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from game_gym.games import DECLARED
from tests.game_gym import golden
from tests.game_gym.play import DECLARED as SMALL


@pytest.mark.parametrize("game", DECLARED)
def test_transcript_is_unchanged(game: str) -> None:
    assert golden.path(game).is_file(), "write it with: python -m tests.game_gym.golden"
    assert golden.path(game).read_text(encoding="utf-8") == golden.transcript(game)


def test_no_transcript_without_a_game() -> None:
    assert {file.stem for file in golden.FOLDER.glob("*.json")} == set(DECLARED)


@pytest.mark.parametrize("game", DECLARED)
def test_every_variant_and_both_protocols_are_in_it(game: str) -> None:
    items: list[Any] = json.loads(golden.path(game).read_text(encoding="utf-8"))
    spec = DECLARED[game]
    entries = [item for item in items if isinstance(item, dict)]
    assert {"openenv", "evaluate"} == {entry["seeding"] for entry in entries if "seeding" in entry}
    if game in SMALL:
        assert spec.variants == 1
    else:
        told = [entry["params"] for entry in entries if "params" in entry]
        assert told == [spec.params(config) for config in range(spec.variants)]
        assert len(entries) == 3 * spec.variants  # the rules, and a game by each protocol
