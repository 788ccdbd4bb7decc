"""The metrics file: its rows, and how it is cut back."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.logger import Logger

from gamespiel.agents.runs.loggers import JSONLWriter, MetricsFileError, read_rows, truncate_after


def test_a_row_through_the_sb3_logger(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    logger = Logger(None, [JSONLWriter(path)])
    logger.record("train/kl_ref", float("nan"))
    logger.record("rollout/reward", np.float32(0.5))
    logger.record("train/loss", torch.tensor(0.25))
    logger.record("decisions", np.int64(96))
    logger.record("bins", np.array([1.0, np.inf]))
    logger.record("secret", 1, exclude="json")
    logger.dump(step=3)
    line = '{"step": 3, "bins": [1.0, null], "decisions": 96, "rollout/reward": 0.5, "train/kl_ref": null, '
    assert path.read_text() == line + '"train/loss": 0.25}\n'
    logger.close()


def test_a_recorded_step_takes_the_place_of_the_dumps(tmp_path: Path) -> None:
    """Stable-Baselines3 dumps by environment steps; the row's step is the training step."""
    path = tmp_path / "metrics.jsonl"
    writer = JSONLWriter(path)
    writer.write({"a": 1, "step": 2}, {}, step=4096)
    assert path.read_text() == '{"step": 2, "a": 1}\n'  # flushed before it is closed
    with pytest.raises(TypeError, match="must be a number, text, or a list of them, not set"):
        writer.write({"a": {1}}, {}, step=1)
    writer.close()
    writer.close()
    assert read_rows(path) == [{"step": 2, "a": 1}]


def test_truncate_drops_later_rows_and_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "x": 1.50}\n{"step": 2}\n{"step": 3}\n{"ste')
    assert [row["step"] for row in read_rows(path)] == [1, 2, 3]
    assert truncate_after(path, 2) == 2  # step 3 and the torn line
    assert path.read_text() == '{"step": 1, "x": 1.50}\n{"step": 2}\n'  # byte for byte
    assert truncate_after(path, 2) == 0
    assert truncate_after(path, 0) == 2 and path.read_text() == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.jsonl"]
    assert truncate_after(tmp_path / "absent.jsonl", 2) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"step": 1}\noops\n{"step": 2}\n', "line 2: not JSON: 'oops"),
        ('{"stp": 1}\n', "line 1: not an object with an integer 'step'"),
        ("[1]\n", "line 1: not an object"),
    ],
)
def test_a_damaged_file_is_an_error(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(text)
    with pytest.raises(MetricsFileError, match=message):
        truncate_after(path, 1)
    assert path.read_text() == text


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30))
def test_cutting_and_logging_again_is_the_same_file(
    tmp_path_factory: pytest.TempPathFactory, done: int, cut: int, torn: int
) -> None:
    """A run killed after ``done`` steps, inside the next line, and resumed from step ``cut`` <= done."""
    path = tmp_path_factory.mktemp("run") / "metrics.jsonl"
    whole = "".join(json.dumps({"step": step, "x": step / 3}) + "\n" for step in range(1, 14))
    lines = whole.splitlines(keepends=True)
    path.write_text("".join(lines[:done]) + lines[done][: min(torn, len(lines[done]) - 1)])
    truncate_after(path, min(cut, done))
    writer = JSONLWriter(path)
    for step in range(min(cut, done) + 1, 14):
        writer.write({"x": step / 3}, {}, step=step)
    writer.close()
    assert path.read_text() == whole
