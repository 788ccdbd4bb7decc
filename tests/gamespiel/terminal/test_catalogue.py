"""``gamespiel games``."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from game_gym.games import DECLARED, TABLE
from gamespiel.cli import main
from gamespiel.terminal.catalogue import show_games
from tests.gamespiel.terminal.conftest import printed


def test_every_declared_game_is_a_row(console: Console) -> None:
    show_games(console, as_json=False)
    rows = printed(console).splitlines()
    listed = [row.split()[0] for row in rows if row.split() and row.split()[0] in DECLARED]
    assert listed == [*TABLE, "kuhn_poker", "tic_tac_toe"]
    # Leduc poker: 2 seats, hidden cards, fold, call and raise, 2 deals, a public card and 2 x 3 bets at most.
    (leduc,) = (row.split() for row in rows if row.startswith("leduc_poker"))
    assert leduc == ["leduc_poker", "2", "hidden", "c", "3", "8", "1", "3000x200"]
    # Hex: a stone per field; boards of 5, 7, 9 and 11.
    (hexes,) = (row.split() for row in rows if row.startswith("hex"))
    assert hexes == ["hex", "2", "perfect", "25-121", "25-121", "4", "1000x50"]


def test_games_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games", "--json"]) == 0
    games = {game["game"]: game for game in json.loads(capsys.readouterr().out)}
    assert list(games)[: len(TABLE)] == list(TABLE)
    assert games["go"] == {
        "game": "go",
        "first_task_id": 1_100_000_000,
        "players": 2,
        "perfect_information": True,
        "chance": False,
        "simultaneous": False,
        "actions": [26, 50],  # 5 x 5 and 7 x 7 fields, and a pass
        "moves_at_most": [50, 98],  # twice the fields
        "variants": [DECLARED["go"].params(0), DECLARED["go"].params(1)],
        "parameters": {name: list(values) for name, values in DECLARED["go"].allowed.items()},
        "budget": [300, 30],
    }
    assert games["tic_tac_toe"]["first_task_id"] is None and games["2048"]["budget"] is None
    assert games["goofspiel"]["simultaneous"] and games["goofspiel"]["chance"]
