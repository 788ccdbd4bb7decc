"""Runs on whole conversations: what they show, how they resume, and what becomes of their games."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.config import ConfigError, resolve, saved_config
from gamespiel.environments import make_one_env
from gamespiel.episodes import play_written
from gamespiel.records import read_records
from gamespiel.replay.export import make_rows
from gamespiel.warm_start import RowError, read_rows
from task_gym.wrappers import ConversationText
from tests.gamespiel.runs import assert_same_run, quiet, rows_of, small, steps_of, train_quietly

TALK = {"env__conversation": "true", "env__game": "kuhn_poker"}
WAYS: dict[str, dict[str, str]] = {
    "openenv": {},
    "evaluate": {"env__seeding": "evaluate"},
    "shared": {"model__reading": "shared", "ppo__tokens_per_forward": "200"},
    "names": {"env__answer": "name"},
    "texts": {"env__decode": "text", "ppo__max_new_tokens": "4", "env__seeding": "evaluate"},
    "self-play": {"env__opponent": "self"},
    "cut": {"env__context_tokens": "80"},
}


@pytest.mark.parametrize(
    "way",
    [way if way in ("openenv", "cut") else pytest.param(way, marks=pytest.mark.families) for way in WAYS],
)
def test_a_run_goes_on_bit_for_bit(way: str, tmp_path: Path) -> None:
    """Its state as after the first of three steps, and resumed, it is the run that was not stopped."""
    more: dict[str, Any] = TALK | WAYS[way] | {"run__eval_games": "0", "ppo__batch_size": "12"}
    whole = train_quietly(small(tmp_path / "whole", **more, ppo__num_train_steps="3"))
    run = shutil.copytree(whole, tmp_path / "run")
    for later in checkpoint.checkpoints(run)[2:]:
        shutil.rmtree(later)
    train_quietly(saved_config(run), resume=run)
    assert steps_of(run) == [0, 1, 2, 3]
    assert_same_run(run, whole)
    last = rows_of(run)[-1]
    assert (last["rollout/conversations_cut"] > 0) == (way == "cut")


@pytest.mark.parametrize("protocol", ["openenv", "evaluate"])
def test_games_are_recorded_exported_and_learned_as_conversations(protocol: str, tmp_path: Path) -> None:
    more = {"ppo__num_train_steps": "1", "env__seeding": protocol, "env__rules": "true"}
    config = small(tmp_path / "run", **TALK, **more)
    games = read_records(train_quietly(config))
    env, head = make_one_env(config.env), protocol == "evaluate"
    for game in games:
        said = game["conversation"]
        assert len(said) == head + 2 * len(game["turns"])
        for at, turn in enumerate(game["turns"]):
            asked, answered = said[head + 2 * at], said[head + 2 * at + 1]
            assert (asked["content"], answered["content"]) == (turn["observation"], turn["answer"])
    rows = list(make_rows(games))
    assert len(rows) == sum(len(game["turns"]) for game in games)
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row, read in zip(rows, read_rows(file), strict=True):
        *asked, answer = row["messages"]
        assert read.answer == answer["content"] and read.observation == asked[-1]["content"]
        if len(asked) > 1:
            assert isinstance(read.observation, ConversationText)
            assert list(read.observation.messages) == asked
    first, _ = env.reset(seed=games[0]["seed"])
    assert [m["content"] for m in first.messages] == [
        m["content"] for m in games[0]["conversation"][: head + 1]
    ]


@pytest.mark.parametrize("roles", ["u", "us", "suua", "su", "uau"])
def test_rows_of_other_roles_are_refused(roles: str, tmp_path: Path) -> None:
    names = {"u": "user", "a": "assistant", "s": "system"}
    row = {"messages": [{"role": names[r], "content": "x"} for r in roles]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(RowError, match="line 1 is no row"):
        read_rows(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"context_tokens": "900"}, "it needs env.conversation: true"),
        ({"seeding": "evaluate", "answer": "name"}, "env.answer must be 'id', not 'name'"),
        (
            {"seeding": "evaluate", "env_mode": "url", "base_url": "http://x"},
            "env.env_mode must be 'local', not 'url'",
        ),
    ],
)
def test_keys_that_do_not_fit(more: dict[str, str], message: str) -> None:
    talk = {} if "context_tokens" in more else {"env.conversation": "true"}
    overrides = talk | {f"env.{key}": value for key, value in more.items()}
    with pytest.raises(ConfigError, match=message):
        resolve("tiny", overrides=overrides.items())


def test_a_turn_that_can_never_fit_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **TALK, env__rules="true", env__context_tokens="60")
    with pytest.raises(ValueError, match=r"at most 60: env.context_tokens"):
        train_quietly(config)
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_replies_without_a_mask_are_measured_in_conversations(tmp_path: Path) -> None:
    config = small(tmp_path / "run", **TALK, env__seeding="evaluate", env__rules="true")
    policy = make_policy(config, make_one_env(config.env))
    episodes = play_written(config, policy, policy.free_text(3), 2, quiet())
    assert episodes and all(
        isinstance(turn.observation, ConversationText) and turn.observation.messages[0]["role"] == "system"
        for episode in episodes
        for turn in episode.turns
    )
    refused = [turn for episode in episodes for turn in episode.turns[1:] if episode.illegal]
    assert any("names no legal action" in turn.observation for turn in refused)
