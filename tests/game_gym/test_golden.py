"""Recorded games are played again: upstream's move for move, and our own word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.games import DECLARED
from tests.game_gym import golden
from tests.game_gym.play import make, pick

MORE = [pytest.mark.families, pytest.mark.sample]


@pytest.mark.parametrize(
    "game", [pytest.param(game, marks=MORE if game == "bridge" else []) for game in DECLARED]
)
def test_transcript_is_unchanged(game: str) -> None:
    assert golden.path(game).is_file(), "write it with: python -m tests.game_gym.golden"
    assert golden.path(game).read_text(encoding="utf-8") == golden.transcript(game)


def test_no_transcript_without_a_game() -> None:
    assert {file.stem for file in golden.FOLDER.glob("*.json")} == set(DECLARED)


# -- upstream's ----------------------------------------------------------------------------------------------


DATA = Path(__file__).parent.parent / "data"
GAMES: list[dict[str, Any]] = [
    json.loads(line) for line in (DATA / "affinetes_trajectories.jsonl").read_text().splitlines()
]
SESSION: list[dict[str, Any]] = json.loads((DATA / "affinetes_session.json").read_text())
HEAD = "Legal Actions:\n"


@pytest.mark.parametrize(
    "game",
    [
        pytest.param(
            game,
            id="-".join(str(game[key]) for key in ("protocol", "opponent", "task_id", "seed")),
            marks=MORE if game["protocol"] == "evaluate" else [],
        )
        for game in GAMES
    ],
)
def test_recorded_game(game: dict[str, Any]) -> None:
    opponent = {"mcts": "mcts-python"}.get(game["opponent"], game["opponent"])
    env = make(task_id=game["task_id"], seeding=game["protocol"], opponent=opponent)
    _, info = env.reset(seed=game["seed"])
    assert info["seat"] == game["seat"]
    terminated = False
    for turn, (count, action, *paid) in enumerate(game["turns"]):
        assert not terminated
        assert len(info["legal_actions"]) == count
        assert pick(info["legal_actions"], turn, game["seed"]) == action
        _, reward, terminated, _, info = env.step(action)
        if paid:
            assert info["upstream_reward"] == pytest.approx(paid[0], abs=1e-9)
    assert terminated
    assert reward == info["score"] == pytest.approx(game["score"], abs=1e-9)
    assert info["history"] == game["history"]
    assert info["returns"] == game["returns"]


def test_recorded_sessions_read_and_pay_as_ours() -> None:
    # The recorded replies, given to the same tasks: the same legal actions, rewards, errors and ends.
    env: Any = None
    for entry in SESSION:
        theirs = entry["response"]
        if entry["call"] == "reset":
            env = gym.make("GameSpielText-v0", task_id=entry["task_id"], opponent=entry["opponent"])
            text, info = env.reset(seed=entry["seed"])
        else:
            text, reward, terminated, truncated, info = env.step(entry["action"])
            assert reward == pytest.approx(theirs["reward"])
            assert (terminated, truncated) == (theirs["done"], theirs["truncated"])
        assert ("error" in info) == ("error" in theirs["info"])
        if "error" in info:
            assert info["error"]["type"] == theirs["info"]["error"]["type"]
        elif not theirs["done"]:
            assert text.partition(HEAD)[2] == theirs["observation"].partition(HEAD)[2] != ""
    assert sum("error" in entry["response"]["info"] for entry in SESSION) == 2
