"""Recorded games as rows in chat format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gamespiel.cli import main
from gamespiel.records import write_records
from tests.gamespiel.replay.games import record


def test_a_row_per_legal_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    won = record([4, 4, 2, 6], game="tic_tac_toe")  # the second 4 is illegal
    lost = record([4, 4, 4, 4], game="tic_tac_toe")  # given up
    games, out = write_records(tmp_path / "games.jsonl", [won, lost]), tmp_path / "rows.jsonl"
    assert main(["export", str(games), "--output", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["messages"][1]["content"] for row in rows] == ["4", "2", "6", "4"]
    assert [row["turn"] for row in rows] == [0, 2, 3, 0]
    assert rows[0]["messages"][0] == {"role": "user", "content": won["turns"][0]["observation"]}
    assert rows[0]["result"] == "win" and rows[-1]["result"] == "loss"
    assert main(["export", str(games), "--output", str(out), "--result", "loss"]) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--output", "rows.json"], "--output must end in .jsonl, not 'rows.json'"),
        (["--output", "rows.jsonl", "--result", "won"], "--result must be one of win, draw, loss, cut, not"),
    ],
)
def test_errors(argv: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), *argv]) == 2
    assert message in capsys.readouterr().err
