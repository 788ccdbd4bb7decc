"""The parts of the benchmark of learning from traces."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from benchmarks.trace_learning import HiddenProgram, configuration
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
