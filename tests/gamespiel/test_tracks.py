"""Tracks: masked, unmasked and unlisted, in options and results, and never put together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs import checkpoint
from gamespiel.cli import main
from gamespiel.comparison.contenders import enter
from gamespiel.comparison.options import CompareOptions
from gamespiel.config import ConfigError, resolve, saved_config
from gamespiel.environments import make_one_env, make_reply_env
from gamespiel.evaluation import evaluate
from gamespiel.options import EvalOptions
from gamespiel.tracks import TrackError, find_track, list_changes, require_one_track
from tests.gamespiel.endpoints.models import Body, ModelStub
from tests.gamespiel.runs import assert_same_run, quiet, rows_of, small, train_quietly

UNLISTED = {"env__list_actions": "false", "env__answer": "name"}


def test_the_three_tracks() -> None:
    assert find_track(writes=False, list_actions=True) == "masked"
    assert find_track(writes=False, list_actions=False) == "masked"
    assert find_track(writes=True, list_actions=True) == "unmasked"
    assert find_track(writes=True, list_actions=False) == "unlisted"
    assert require_one_track({"a": "masked", "random": None}) == "masked"
    assert require_one_track({"random": None}) is None
    with pytest.raises(TrackError, match=r"'a' \(masked\) and 'c' \(unlisted\) are on different tracks"):
        require_one_track({"a": "masked", "b": "masked", "c": "unlisted"})
    with pytest.raises(TrackError, match="did you mean 'unlisted'"):
        list_changes("unlistd")


def test_the_list_cannot_be_left_out_of_prompts_for_ids(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"env\.answer must be 'name', not 'id'"):
        small(tmp_path, env__list_actions="false")
    with pytest.raises(ConfigError, match=r"unlist_steps .* env\.list_actions: false"):
        small(tmp_path, curriculum__unlist_steps="[0, 2]")
    with pytest.raises(ConfigError, match="first < last"):
        small(tmp_path, curriculum__unlist_steps="[2, 2]", **UNLISTED)
    with pytest.raises(ConfigError, match=r"unlist_steps is for games against an opponent"):
        small(tmp_path, curriculum__unlist_steps="[0, 2]", env__opponent="self", **UNLISTED)


def test_a_policy_still_chooses_behind_its_mask(tmp_path: Path) -> None:
    config = small(tmp_path, **UNLISTED)
    text, info = make_one_env(config.env).reset(seed=1)
    assert text.endswith("How to write an action: Pass or Bet.\n\nYour choice (action name only):")
    assert list(text.names) == ["Pass", "Bet"] and info["legal_actions"] == [0, 1]
    env = make_reply_env(config.env)
    env.reset(seed=1)
    assert "error" in env.step("1")[-1] and "error" not in env.step("bet")[-1]


def test_training_takes_the_list_away_and_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """Steps 0 to 3 with the plan [0, 3]: shares 1, 2/3, 1/3, 0 of six games each, drawn by their address."""
    settings = UNLISTED | {
        "curriculum__unlist_steps": "[0, 3]", "ppo__num_train_steps": "4", "run__exact_every": "2",
        "ppo__legal_coef": "0.5",
    }  # fmt: skip
    whole = train_quietly(small(tmp_path / "whole", **settings))
    listed = [row["curriculum/listed"] for row in rows_of(whole)]
    assert listed[0] == 1 and listed[3] == 0 and all(0 <= share <= 1 for share in listed)
    # Exact values are those of prompts without the list, answered by name.
    assert any("eval/share" in row for row in rows_of(whole))
    part = tmp_path / "part"
    shutil.copytree(whole, part)
    for later in checkpoint.checkpoints(part)[3:]:  # of steps 3 and 4: killed after the second
        shutil.rmtree(later)
    assert_same_run(train_quietly(saved_config(part), resume=part), whole)


def test_results_say_their_track(finished: Path, tmp_path: Path, capsys: Any) -> None:
    games = tmp_path / "games.jsonl"
    common = ["--num_episodes", "2", "--output", str(tmp_path / "found.json")]
    given = ["eval", "--checkpoint", str(finished), *common]
    for track, part in (("masked", "sampled"), ("unmasked", "replies"), ("unlisted", "replies")):
        assert main([*given, "--track", track, "--save_games", str(games)]) == 0
        found = json.loads((tmp_path / "found.json").read_text())
        assert found["tracks"] == {part: track} and part in found
        rows = [json.loads(line) for line in games.read_text().splitlines()]
        assert {row["track"] for row in rows} == {track}
        assert ("Legal Actions" in rows[0]["turns"][0]["observation"]) == (track != "unlisted")
    options = EvalOptions(
        saved_config(finished), checkpoint=finished, num_episodes=1, unmasked=True, output=tmp_path / "u.json"
    )
    assert evaluate(options, quiet())["tracks"] == {"sampled": "masked", "replies": "unmasked"}
    assert EvalOptions(resolve("tiny"), agent="random").tracks == {}
    assert main([*given, "--track", "unlisted", "--decode", "text"]) == 2
    assert main(["eval", "--agent", "random", "--track", "masked", *common]) == 2
    assert main(["eval", "--env", "trace", "--model.model_name", "tiny", "--track", "unlisted"]) == 2
    assert "--track is for games, not for traces" in capsys.readouterr().err
    assert main([*given, "--track", "listed"]) == 2
    assert "allowed: 'masked', 'unmasked', 'unlisted'" in capsys.readouterr().err


def test_an_endpoint_plays_without_the_list(tmp_path: Path) -> None:
    """It says "Bet" each time, and then a number, which nobody showed it."""

    def answer(body: Body) -> str:
        assert all("Legal Actions" not in message["content"] for message in body["messages"])
        assert "How to write an action: Pass or Bet." in body["messages"][0]["content"]
        return "I say bet."

    with ModelStub(answer) as stub:
        command = [
            "eval",
            "--agent",
            f"openai:model@{stub.url}",
            "--game",
            "kuhn_poker",
            "--track",
            "unlisted",
        ]
        output = tmp_path / "found.json"
        assert main([*command, "--num_episodes", "2", "--output", str(output)]) == 0
        found = json.loads(output.read_text())
    assert found["tracks"] == {"endpoint": "unlisted"} and found["env"]["list_actions"] is False
    assert found["endpoint"]["all"]["episodes"] == 4


def test_comparisons_refuse_two_tracks(finished: Path) -> None:
    own = saved_config(finished)
    newest = sorted((finished / "checkpoints").glob("step-*"))[-1]
    other = resolve(None, base=own, overrides=[("env.list_actions", "false"), ("env.answer", "name")])
    both = (enter("a", own, own, newest), enter("b", own, other, newest))
    assert [one.track("text") for one in both] == ["unmasked", "unlisted"]
    with pytest.raises(TrackError, match=r"'a' \(unmasked\) and 'b' \(unlisted\) .* --track has all"):
        CompareOptions(own, both, decode="text")
    # Behind masks both are on one track: the mask decides what they may do.
    assert CompareOptions(own, both).contenders == both
