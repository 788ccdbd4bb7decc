"""The benchmarks of traces: their parts, and a run that is far too short to learn anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from benchmarks import trace_learning
from benchmarks.trace_learning import HiddenProgram, configuration
from benchmarks.trace_scores import measured
from gamespiel.config import ConfigError


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (("env.task_ids", "[[0, 5000000000]]"), r"must leave out .*: env.task_ids was \[\(0, 5000000000\)\]"),
        (("env.task_ids", "[7, 5999999999]"), "must leave out the task ids"),
        (("env.task_id", "5000000001"), r"env.task_ids was \[5000000001\]"),
        (("env.task_ids", "[]"), r"env.task_ids was \[\]"),  # all of them
        (("env.env_type", "openspiel"), "env.env_type must be 'trace', not 'openspiel'"),
    ],
)
def test_training_leaves_out_what_is_held_out(override: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configuration([override])


@pytest.mark.trains
@pytest.mark.sample
def test_the_hidden_program_is_hidden_and_the_rest_is_as_it_was() -> None:
    plain, hidden = (gym.make("CodeTraceChoice-v0", level=1, family="stdin") for _ in range(2))
    hidden, before = HiddenProgram(hidden), set()
    for seed in range(2):
        text, info = plain.reset(seed=seed)
        shown, same = hidden.reset(seed=seed)
        trace: Any = plain.unwrapped.trace  # type: ignore[attr-defined]
        assert trace.code in text and trace.stdin in text
        before.add(shown.partition("Output 0:")[0])
        assert all(output in shown for output in info["admissible_commands"])
        assert same["admissible_commands"] == info["admissible_commands"]
        assert text.partition("Output 0:")[2] == shown.partition("Output 0:")[2] != ""
        # An action that is no option changes nothing in the observation.
        refused, _, terminated, _, after = hidden.step(8)
        assert (refused, terminated) == (shown, False) and "error" in after
        assert hidden.get_wrapper_attr("action_masks")().sum() == len(info["legal_actions"])
        right = info["admissible_commands"].index(trace.truth)
        assert hidden.step(right)[1:3] == plain.step(right)[1:3] == (1.0, True)
    assert len(before) == 1  # what stands before the outputs is the same for every program


@pytest.mark.trains
def test_a_short_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [
        "--ppo.num_train_steps=2",
        "--ppo.batch_size=4",
        "--ppo.ppo_epochs=1",
        "--env.task_ids=[[0, 319]]",
    ]
    found = trace_learning.main(["--traces", "3", "--threads", "1", "--out", str(tmp_path / "new"), *small])
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[-1]) == found == json.loads((tmp_path / "new/trace_learning.json").read_text())
    assert list(found["arms"]) == ["shown", "hidden"]
    for name, arm in found["arms"].items():
        assert arm["decisions"] == 8 and len(arm["rewards"]) == 2
        assert sum(line.startswith(f"{name}: step ") for line in printed) == 2
        for mode in ("sampled", "greedy"):
            for found_share in (arm[mode], arm["untrained"][mode]):
                assert found_share["share"][0] == pytest.approx(found_share["right"] / 3, abs=1e-4)
    # The best constant is right at least once in three traces.
    assert found["constant"]["right"] >= 1 and 1 / 8 <= found["uniform"] <= 1 / 4
    assert found["settings"]["ppo"]["batch_size"] == 4 and found["held_out"]["traces"] == 3


@pytest.mark.trains
@pytest.mark.sample
def test_a_row_of_scores() -> None:
    row = measured("sorting", 2)
    # Nothing is never right: a program without output is no task.
    assert row["replies"]["empty"] == {"affine": 0.0, "exact": 0.0, "lines": 0.0}
    assert (row["family"], row["tasks"], set(row["choices"])) == ("sorting", 2, {"random", "words"})
    assert 1 / 8 <= row["choices"]["random"][0] <= 1 / 4
