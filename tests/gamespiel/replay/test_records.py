"""The episodes that evaluations and runs keep, and records from strangers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gamespiel.agents.rollout import Episode, Turn
from gamespiel.cli import main
from gamespiel.config import resolve, saved_config
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from gamespiel.measure.records import add_records, read_records, records, variant_of, write_records
from gamespiel.replay.page import describe_record, export_turns, write_page
from task_gym.contract import ILLEGAL_REWARD
from task_gym.errors import TaskGymError
from tests.consoles import quiet
from tests.gamespiel.replay.games import record
from tests.gamespiel.runs import STEPS

pytestmark = [pytest.mark.trains, pytest.mark.sample]


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


def record_games(options: EvalOptions, file: Path) -> list[dict[str, Any]]:
    """Evaluates, and returns the records that the evaluation kept."""
    evaluate(dataclasses.replace(options, output=file.with_suffix(".json"), save_games=file), quiet())
    return read_records(file)


def test_an_evaluation_keeps_all(finished: Path, tmp_path: Path) -> None:
    config = saved_config(finished)
    for agent in ("first", None):
        file = tmp_path / f"{agent}.jsonl"
        options = EvalOptions(config, checkpoint=None if agent else finished, agent=agent, num_episodes=4)
        rows = record_games(options, file)
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
    rows = record_games(options, file)
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
    assert [line["step"] for line in read_records(file)] == [0, 5]
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


# -- records from strangers: each is replayed and exported, or refused with its line and the reason --------


@pytest.fixture(scope="module")
def game() -> dict[str, Any]:
    return record([1], game="kuhn_poker", params={"players": 2})


def write_lines(folder: Path, *rows: dict[str, Any] | bytes) -> Path:
    path = folder / "games.jsonl"
    path.write_bytes(b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in rows))
    return path


HISTORIES: dict[str, tuple[list[Any], str]] = {
    "illegal": ([0, 1, 7], r"action 7 was given, legal: 0, 1, in 'kuhn_poker'"),
    "no chance": ([9], r"action 9 was given, legal: 0, 1, 2"),
    "too long": ([0, 1, 0, 0, 0, 0], "6 actions were given, and 'kuhn_poker' is over after 4"),
    "a fraction": ([0, 1.0], "action 1.0 was given, legal: 1, 2"),
    "true": ([True], "action True was given"),
    "huge": ([10**30], "action 1000000000000000000000000000000 was given"),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_the_game_does_not_have_is_named(
    name: str, game: dict[str, Any], tmp_path: Path
) -> None:
    history, message = HISTORIES[name]
    path = write_lines(tmp_path, game, game | {"history": history})
    with pytest.raises(ConfigError, match=f"game 2 cannot be replayed: history: .*{message}"):
        write_page(path, tmp_path / "page.html", quiet())
    assert not (tmp_path / "page.html").exists()
    assert main(["replay", str(path), "--html", str(tmp_path / "page.html")]) == 2
    export_turns(path, tmp_path / "rows.jsonl", console=quiet())  # which plays nothing again


def test_a_history_that_ends_within_a_simultaneous_move_is_named(tmp_path: Path) -> None:
    row = record([0], game="matrix_rps", params={})
    assert write_page(write_lines(tmp_path, row), tmp_path / "page.html", quiet())
    path = write_lines(tmp_path, row | {"history": row["history"][:1]})
    with pytest.raises(ConfigError, match="it ends with 1 of the 2 actions of a move in 'matrix_rps'"):
        write_page(path, tmp_path / "page.html", quiet())


LINES: dict[str, tuple[Any, str]] = {
    "a list": (b"[]", "it: Input should be a valid dictionary"),
    "a turn without an answer": ({"turns": [{}]}, "turns.0.observation: Field required"),
    "a seat as text": ({"seat": "0"}, "seat: Input should be a valid integer"),
    "messages without roles": ({"conversation": [{}]}, "conversation.0.role: Field required"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_another_shape_is_named(name: str, game: dict[str, Any], tmp_path: Path) -> None:
    line, message = LINES[name]
    path = write_lines(tmp_path, game, line if isinstance(line, bytes) else game | line)
    with pytest.raises(ConfigError) as refused:
        read_records(path)
    assert "line 2 is no recorded game: " in str(refused.value) and message in str(refused.value)
    for call in (
        lambda: write_page(path, tmp_path / "page.html", quiet()),
        lambda: export_turns(path, tmp_path / "rows.jsonl", console=quiet()),
    ):
        with pytest.raises(TaskGymError, match="line 2 is no recorded game"):
            call()


def test_a_replay_opens_no_file_that_a_record_names(game: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0")
    other = {"task_id": None, "game": "efg_game", "params": {"filename": str(secret)}, "history": []}
    path = write_lines(tmp_path, game | other)
    with pytest.raises(ConfigError, match=r"efg_game parameter 'filename': .* would open") as refused:
        write_page(path, tmp_path / "page.html", quiet())
    assert "root:x" not in str(refused.value)


def test_half_a_surrogate_pair_in_a_reply_is_shown_and_exported(game: dict[str, Any], tmp_path: Path) -> None:
    turns = [turn | {"answer": "\ud800"} for turn in game["turns"]]
    path = write_lines(tmp_path, game | {"turns": turns})
    assert "\ud800" not in write_page(path, tmp_path / "page.html", quiet()).read_text(encoding="utf-8")
    rows = export_turns(path, tmp_path / "rows.jsonl", console=quiet()).read_text(encoding="utf-8")
    assert json.loads(rows.splitlines()[0])["messages"][1]["content"] == "?"
