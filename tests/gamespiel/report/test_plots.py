"""The learning curve, drawn from any metrics that were logged."""

import json
import math
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from gamespiel.report.plots import learning_curve, running_mean, stage_changes
from tests.task_gym.test_files import files_of_at_most


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    figures: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda own, *a, **k: (figures.append(own), save(own, *a, **k)))
    return figures


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"step": 1, "rollout/reward": None}, {"step": 2, "rollout/reward": 0.5}],
        [{"step": 1, "decisions": 5, "train/entropy": 1.0}, {"step": 2, "train/entropy": 0.5}],
    ],
)
def test_robust_to_missing_keys(rows: list[dict[str, object]], tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", rows)
    path.write_text(path.read_text() + '{"step": 3, "roll')  # a line that a kill cut
    with Image.open(learning_curve(path, tmp_path / "new" / "curve.png")) as image:
        assert image.size == (1200, 768)


def test_a_metric_of_some_steps_is_drawn_as_joined_points(tmp_path: Path, drawn: list[Figure]) -> None:
    """Steps 1, 10 and 20 of 25: a line through all rows would have no two neighbours to join."""
    rows = [{"step": s, "rollout/reward": 0.5} for s in range(1, 26)]
    for step in (1, 10, 20):
        rows[step - 1]["train/kl_ref"] = step / 100
    learning_curve(write(tmp_path / "metrics.jsonl", rows), tmp_path / "curve.png")
    (line,) = drawn[0].axes[1].get_lines()
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1, 10, 20], [0.01, 0.1, 0.2])
    assert line.get_marker() == "."


def test_without_space_the_last_picture_remains(tmp_path: Path) -> None:
    path, png = write(tmp_path / "metrics.jsonl", [{"step": 1}]), tmp_path / "curve.png"
    png.write_bytes(b"older")
    with files_of_at_most(1000), pytest.raises(OSError, match=r"File too large: '.*/curve\.png'"):
        learning_curve(path, png)
    assert png.read_bytes() == b"older"


def staged_rows(stages: list[int]) -> list[dict[str, object]]:
    return [
        {"step": step, "decisions": 10 * step, "rollout/reward": 0.5, "curriculum/stage": stage}
        | {"curriculum/name": ("easy", "medium", "hard")[stage]}
        for step, stage in enumerate(stages, start=1)
    ]


def test_changes_of_the_stage_are_found() -> None:
    """Also one in the first step, and back; rows of a run without stages have none."""
    assert stage_changes(staged_rows([1, 1, 2, 1])) == [(0, "medium"), (2, "hard"), (3, "medium")]
    assert stage_changes(staged_rows([0, 0])) == stage_changes([{"step": 1}, {"step": 2}]) == []


def test_promotions_are_marked(tmp_path: Path, drawn: list[Figure]) -> None:
    """A dotted line in each of the four panels at the decisions of the row; one panel has the name."""
    learning_curve(write(tmp_path / "metrics.jsonl", staged_rows([0, 0, 1, 2])), tmp_path / "curve.png")
    lines = [line.get_xdata() for axes in drawn[0].axes for line in axes.lines if line.get_linestyle() == ":"]
    assert sorted(x[0] for x in lines) == [30.0] * 4 + [40.0] * 4
    texts = [text.get_text() for axes in drawn[0].axes for text in axes.texts if text.get_rotation()]
    assert texts == ["medium", "hard"]


def test_running_mean() -> None:
    """Window 2 over 1, 3, gap, 5, 7: 1, (1+3)/2, gap, 5 alone, (5+7)/2."""
    means = running_mean([1.0, 3.0, math.nan, 5.0, 7.0], 2)
    assert means[:2] == [1.0, 2.0] and math.isnan(means[2]) and means[3:] == [5.0, 6.0]
