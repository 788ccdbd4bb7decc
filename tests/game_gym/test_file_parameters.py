"""Parameters of games that name a file: OpenSpiel opens it only where files are allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.exact import find_variant
from game_gym.games import find_game
from game_gym.spec import load_variant
from task_gym.errors import ArgumentError, GameError

TREE = """EFG 2 R "one" { "A" "B" }
p "" 1 1 "" { "l" "r" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -1 1 }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "one.efg"
    path.write_text(TREE)
    return str(path)


def test_a_file_is_opened_only_where_it_is_allowed(file: str) -> None:
    arguments: dict[str, Any] = {"game": "efg_game", "params": {"filename": file}}
    with pytest.raises(GameError, match=r"efg_game parameter 'filename': .*allowed: with allow_files=True"):
        gym.make("GameSpiel-v0", **arguments)
    with pytest.raises(GameError, match=r"env\.allow_files: true"):
        find_variant(**arguments)
    with pytest.raises(ArgumentError, match="allow_files: 1 was given"):
        gym.make("GameSpiel-v0", **arguments, allow_files=1)
    env = gym.make("GameSpiel-v0", **arguments, allow_files=True, opponent="first")
    assert env.reset(seed=0)[1]["admissible_commands"] == ["l", "r"]
    assert find_variant(**arguments, allow_files=True).players == 2


SECRET = "/etc/passwd"


@pytest.mark.parametrize(
    ("game", "params"),
    [
        ("efg_game", {"filename": SECRET}),
        ("nfg_game", {"filename": SECRET}),
        ("bargaining", {"instances_file": SECRET}),
        ("colored_trails", {"boards_file": SECRET}),
        ("misere", {"game": {"name": "efg_game", "filename": SECRET}}),
        ("misere", {"game": {"name": "misere", "game": {"name": "nfg_game", "filename": SECRET}}}),
        ("start_at", {"game": {"name": "misere", "game": f"efg_game(filename={SECRET})"}}),
        ("universal_poker", {"betting": f"efg_game( filename = {SECRET})"}),
    ],
)
def test_no_way_leads_to_a_file(game: str, params: dict[str, Any]) -> None:
    with pytest.raises(GameError) as refused:
        load_variant(find_game(game), params)
    assert "a file that OpenSpiel would open" in str(refused.value)


def test_every_parameter_of_a_game_that_is_a_file_is_known() -> None:
    """Those of the installed OpenSpiel, read by eye; a new one that is missed has another name."""
    import pyspiel

    words = ("file", "path", "root", "dir", "folder")
    found = {
        (kind.short_name, name)
        for kind in pyspiel.registered_games()
        for name in kind.parameter_specification
        if any(word in name.lower() for word in words)
    }
    for game, name in found:
        with pytest.raises(GameError, match="would open"):
            load_variant(find_game(game), {name: SECRET})
    assert {("efg_game", "filename"), ("nfg_game", "filename"), ("bargaining", "instances_file")} <= found


def test_parameters_that_are_no_files_are_as_before() -> None:
    assert load_variant(find_game("kuhn_poker"), {"players": 3}).players == 3
    assert load_variant(find_game("pathfinding"), {"grid": "A.*..**\n..*....\n....*a.\n"}).players == 1
