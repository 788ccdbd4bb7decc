"""The episodes that evaluations and runs keep."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gamespiel.agents.rollout import Episode, Turn
from gamespiel.config import resolve, saved_config
from gamespiel.errors import InvalidValueError
from gamespiel.evaluation import evaluate
from gamespiel.options import EvalOptions
from gamespiel.records import add_records, read_records, records, variant_of, write_records
from gamespiel.replay.page import describe_record
from task_gym.contract import ILLEGAL_REWARD
from tests.gamespiel.runs import STEPS, quiet


def check(row: dict[str, Any]) -> None:
    """Checks what is true of every recorded game of Kuhn poker: it can be played again."""
    state = variant_of(row).game.new_initial_state()
    turns = iter(row["turns"])
    for action in row["history"]:
        if state.current_player() == row["seat"]:
            turn = next(turns)
            assert turn["action"] == action and str(action) == turn["answer"]
            assert turn["legal_actions"] == [0, 1] and turn["names"] == ["Pass", "Bet"]
        state.apply_action(action)
    assert state.is_terminal() and state.returns() == row["returns"] and next(turns, None) is None
    assert len(describe_record(row)["positions"]) == len(row["history"]) + 1


def test_a_run_keeps_games_from_before_and_after(finished: Path) -> None:
    rows = read_records(finished)
    # Three games per seat, before step 1 and after the last one.
    assert [row["step"] for row in rows] == [0] * 6 + [STEPS] * 6
    assert [row["seed"] for row in rows[:6]] == [row["seed"] for row in rows[6:]]
    for row in rows:
        check(row)
        assert all(sum(turn["probabilities"]) == pytest.approx(1) for turn in row["turns"])
        assert all(type(turn["value"]) is float for turn in row["turns"])


def kept(options: EvalOptions, file: Path) -> list[dict[str, Any]]:
    """Evaluates, and returns the records that the evaluation kept."""
    evaluate(dataclasses.replace(options, output=file.with_suffix(".json"), save_games=file), quiet())
    return read_records(file)


def test_an_evaluation_keeps_all(finished: Path, tmp_path: Path) -> None:
    config = saved_config(finished)
    for agent in ("first", None):
        file = tmp_path / f"{agent}.jsonl"
        options = EvalOptions(config, checkpoint=None if agent else finished, agent=agent, num_episodes=4)
        rows = kept(options, file)
        assert len(rows) == 8 and {row["seat"] for row in rows} == {0, 1}
        for row in rows:
            check(row)
            assert row["player"] == options.player and row["how"] == "sampled"
            assert all((turn["probabilities"] is None) == (agent is not None) for turn in row["turns"])


def test_an_evaluation_of_replies_says_how_each_episode_was_played(finished: Path, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    options = EvalOptions(
        saved_config(finished), checkpoint=finished, num_episodes=1, unmasked=True, max_new_tokens=1
    )
    rows = kept(options, file)
    # Two seats, each played three times from the same seed.
    assert [row["how"] for row in rows] == ["masked"] * 2 + ["sampled"] * 2 + ["greedy"] * 2
    assert [row["seed"] for row in rows] == [row["seed"] for row in rows[:2]] * 3
    assert [row["turns"][0]["probabilities"] is not None for row in rows] == [True] * 2 + [False] * 4


def test_a_game_given_up_at_the_first_position() -> None:
    config = resolve(overrides=[("env.game", "tic_tac_toe"), ("env.opponent", "first")]).env
    nothing = np.ones(0, dtype=bool)
    turns = [Turn("?", nothing, "none", reward=ILLEGAL_REWARD, refused=True) for _ in range(3)]
    env = gym.make("GameSpiel-v0", game="tic_tac_toe", opponent="first")
    env.reset(seed=0)
    *_, info = [env.step(9) for _ in turns][-1]
    (row,) = records([Episode(0, 0, info, turns, "over")], config, "me")
    assert [turn["action"] for turn in row["turns"]] == [None] * 3
    assert all(turn["legal_actions"] == list(range(9)) and turn["names"] for turn in row["turns"])


def test_later_steps_are_replaced(tmp_path: Path, finished: Path) -> None:
    row = read_records(finished)[0]
    file = tmp_path / "games.jsonl"
    for step in (0, 5, 9, 5):
        add_records(file, step, [row])
    assert [found["step"] for found in read_records(file)] == [0, 5]
    strange = row | {"player": "a\u2028b\x85c"}  # which other readers take for ends of lines
    assert read_records(write_records(tmp_path / "strange.jsonl", [strange])) == [strange]


def test_wrong_options_are_refused_before_play(finished: Path, tmp_path: Path) -> None:
    config = saved_config(finished)
    with pytest.raises(InvalidValueError, match=r"--save_games must end in \.jsonl, not 'games\.json'"):
        EvalOptions(config, agent="first", save_games=Path("games.json"))
    with pytest.raises(InvalidValueError, match="--exact plays nothing"):
        EvalOptions(config, agent="first", save_games=Path("games.jsonl"), exact=True)
    folder = tmp_path / "games.jsonl"
    folder.mkdir()
    options = EvalOptions(config, agent="first", save_games=folder, output=tmp_path / "result.json")
    with pytest.raises(InvalidValueError, match=r"--save_games '.*games.jsonl' cannot be written: Is a dir"):
        evaluate(options, quiet())
    assert not (tmp_path / "result.json").exists()
