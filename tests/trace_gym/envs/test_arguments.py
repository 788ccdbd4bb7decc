"""Each disallowed argument, option and action has a named error; and ``TRACE_TASK_PATH``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import ArgumentError, EpisodeError, OptionError, SeedError, SourceError, TaskIdError
from tests.trace_gym.play import Make

CHOICE = "CodeTraceChoice-v0"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task_id": -1}, TaskIdError, "task id: -1 was given, allowed: whole numbers 0 … 99999999999"),
        ({"levle": 3}, ArgumentError, "'levle' was given, allowed: .*did you mean 'level'"),
        ({"task_id": 10**11}, TaskIdError, "100000000000 was given, allowed: whole numbers 0 … 99999999999"),
        ({"task_id": 1, "task_ids": [1]}, ArgumentError, "task_id and task_ids were given"),
        ({"task_id": 0, "level": 2}, TaskIdError, "holds no id of the kind asked for"),
        ({"level": 0}, ArgumentError, "level: 0 was given, allowed: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        ({"level": "3"}, ArgumentError, "level: '3' was given"),
        ({"family": "string"}, ArgumentError, "family: 'string' was given.*did you mean 'strings'"),
        ({"source": 5}, ArgumentError, "source: 5 was given, allowed: 'builtin', 'hub', 'hub@REVISION' or a"),
        ({"source": "hub@"}, ArgumentError, "'hub@' was given, allowed: 'hub@' and a commit"),
        ({"source": "no/such.jsonl"}, SourceError, "no such file"),
        ({"source": "rows.csv"}, ArgumentError, r"a path that ends in \.jsonl or \.parquet"),
        ({"source": "tests/data/programs.jsonl", "level": 1}, ArgumentError, "with source 'builtin' only"),
        ({"scoring": "affin"}, ArgumentError, "allowed: 'affine', 'exact', 'lines'; did you mean 'affine'"),
        ({"injector": "affine2"}, ArgumentError, "allowed: 'safe', 'affine'; did you mean 'affine'"),
        ({"require": "limit"}, ArgumentError, "did you mean 'limits'"),
        ({"base_url": "http://x"}, ArgumentError, "with backend 'local', allowed: with backend 'affinetes'"),
        ({"illegal": "raise"}, ArgumentError, "argument: 'illegal' was given"),
        ({"id": CHOICE, "illegal": "forfeits"}, ArgumentError, "did you mean 'forfeit'"),
        ({"id": CHOICE, "listed": "no"}, ArgumentError, "listed: 'no' was given, allowed: True, False"),
        ({"render_mode": "rgb"}, ArgumentError, "'rgb' was given, allowed: None, 'ansi', 'rgb_array'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render_mode.*:UserWarning")
def test_constructor(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gym.make(**{"id": "CodeTrace-v0", **arguments})


def test_an_option_is_a_task_of_the_level(make_env: Make) -> None:
    env = make_env(task_ids=[(160, 400)], level=1, family="strings")
    env.reset(seed=3, options={"task_id": np.int64(161)})
    for options, message in [
        (
            {"task_id": 177},
            "177 was given, allowed: 160 … 400 of level 1, family strings",
        ),  # of level 2
        ({"task": 1}, "reset option 'task' was given, allowed: task_id; did you mean 'task_id'"),
        ({"task_id": "5"}, "reset option 'task_id': task id: '5' was given, allowed: whole numbers 0 … 99"),
        ({"task_id": None}, "reset option 'task_id': task id: None was given"),
    ]:
        with pytest.raises(OptionError, match=message):
            env.reset(seed=8, options=options)
    with pytest.raises(SeedError, match="seed: -1 was given"):
        env.reset(seed=-1)
    assert env.np_random_seed == 3
    assert env.step("")[4]["task_id"] == 161  # the episode goes on
    drawn = {env.reset(seed=seed, options={})[1]["task_id"] for seed in range(9)}
    assert drawn == {161, 321}  # of all that have this level and family


def test_steps_outside_an_episode_and_wrong_actions(make_env: Make) -> None:
    env = make_env(task_id=0)
    with pytest.raises(EpisodeError, match="after reset and before the end"):
        env.step("")
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="action: 3 was given, allowed: a reply as text"):
        env.step(3)
    _, reward, over, _, info = env.step("")  # an empty reply is an answer
    assert (reward, over, info["result"], info["history"]) == (0.0, True, "loss", [""])
    with pytest.raises(EpisodeError, match="after reset and before the end"):
        env.step("")


# -- TRACE_TASK_PATH: questions in the words of a file of upstream's shape, which is never run -------------


def first(task_id: int) -> tuple[str, Any]:
    env: Any = gym.make("CodeTrace-v0").unwrapped
    return env.reset(seed=0, options={"task_id": task_id})[0], env.trace


def test_the_question_is_upstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace_task.py").write_text('prompt = f"Run {transformed} on {inputs}{{}}"')
    ours, _ = first(3)
    for place in (tmp_path, tmp_path / "trace_task.py"):
        monkeypatch.setenv("TRACE_TASK_PATH", str(place))
        text, trace = first(3)
        assert text == f"Run {trace.code} on {trace.stdin}{{}}"
    monkeypatch.setenv("TRACE_TASK_PATH", "")
    assert first(3)[0] == ours


def test_a_file_without_the_question_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.py"
    other.write_text("prompt = 'no places'\n")
    wrong = ((other, "has none, and 0 others"), (tmp_path, "No such file"), ("x\0", "null byte"))
    for place, message in wrong:
        monkeypatch.setattr("os.environ", {"TRACE_TASK_PATH": str(place)})
        with pytest.raises(ArgumentError, match=rf"TRACE_TASK_PATH: .* was given, allowed: .*{message}"):
            first(3)
