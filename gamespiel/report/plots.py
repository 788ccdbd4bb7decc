"""The learning curve as a picture, drawn from a run's metrics file."""

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gamespiel.agents.runs.loggers import Row, read_rows
from task_gym.files import write_atomically

PANELS: tuple[tuple[str, Sequence[tuple[str, str]], Sequence[tuple[str, str]]], ...] = (
    (
        "Score",
        [("rollout/reward", "reward"), ("rollout/success", "success rate"), ("eval/score", "held-out score")],
        [("eval/share", "share of best"), ("eval/exploitability", "exploitability")],
    ),
    (
        "KL",
        [("train/kl_ref", "KL to base"), ("train/approx_kl", "KL of the update")],
        [("train/kl_coef", "KL weight")],
    ),
    (
        "Policy",
        [("train/entropy", "entropy")],
        [("rollout/legal_mass", "legal mass")],
    ),
    (
        "Critic",
        [("train/value_loss", "value loss")],
        [("train/explained_variance", "explained variance")],
    ),
)
"""Title of each panel, then (metric, label) pairs of its left and of its right axis."""

COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""From Okabe and Ito's palette, which colour-blind readers can tell apart."""

FURTHER = ("#CC79A7", "#56B4E9")
"""The next ones of that palette, for a panel with more lines."""


def learning_curve(metrics_path: str | os.PathLike[str], png_path: str | os.PathLike[str]) -> Path:
    """Draws four panels against decisions (or steps, if a row lacks decisions); returns ``png_path``.

    Metrics that were not logged are left out. Null is a gap, except in metrics that are measured only at some
    steps, as those of ``eval/`` and a KL without weight: their points are joined. A faint line is the value,
    a strong one its running mean over a twentieth of the rows. A dotted line across is a change of a
    curriculum's stage, with the new stage's name.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import; needs no display
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    rows = read_rows(metrics_path)
    x_key = "decisions" if rows and all(_is_number(row.get("decisions")) for row in rows) else "step"
    x = [float(row[x_key]) for row in rows]

    changes = stage_changes(rows)
    figure = Figure(figsize=(10, 6.4), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, left, right) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        drawn = _draw_curves(axes, x, rows, left, COLOURS)
        _mark_stages(axes, [(x[at], name) for at, name in changes], named=title == PANELS[0][0])
        if any(_is_number(row.get(metric)) for row in rows for metric, _ in right):
            twin = axes.twinx()
            drawn += _draw_curves(twin, x, rows, right, (*COLOURS, *FURTHER)[len(left) :])
            twin.set_ylabel(", ".join(label for _, label in right))
            twin.spines["top"].set_visible(False)
            axes.set_ylabel(", ".join(label for _, label in left))
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel(x_key if x_key == "decisions" else "steps")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))  # "140k": whole numbers ran into one another
        axes.grid(alpha=0.25)
        axes.spines["top"].set_visible(False)
        if drawn:
            above = {
                "loc": "lower right",
                "bbox_to_anchor": (1.0, 0.98),
                "handlelength": 1.2,
                "columnspacing": 1.2,
            }
            axes.legend(handles=drawn, fontsize=8, frameon=False, ncols=len(drawn), **above)
        else:
            axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", color="0.5")
    png_path = Path(png_path)
    png_path.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(png_path, picture.getvalue())
    return png_path


def stage_changes(rows: Sequence[Row]) -> list[tuple[int, str]]:
    """Returns each row at whose end a curriculum's stage had changed, with the name of the new stage."""
    found, before = [], 0  # a run begins in the first stage
    for at, row in enumerate(rows):
        stage = row.get("curriculum/stage", before)
        if stage != before:
            found.append((at, str(row.get("curriculum/name", stage))))
        before = stage
    return found


def _mark_stages(axes: Any, changes: Sequence[tuple[float, str]], *, named: bool) -> None:
    for x, name in changes:
        axes.axvline(x, color="0.45", linestyle=":", linewidth=1.0)
        if named:
            axes.annotate(
                name,
                (x, 0.03),
                xycoords=("data", "axes fraction"),
                xytext=(3, 0),
                textcoords="offset points",
                rotation=90,
                fontsize=8,
                color="0.35",
                va="bottom",
            )


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """Returns means of each value and the ``window - 1`` before it; a NaN is in no mean and stays NaN."""
    means = []
    for end in range(1, len(values) + 1):
        recent = [value for value in values[max(0, end - window) : end] if not math.isnan(value)]
        means.append(sum(recent) / len(recent) if recent and not math.isnan(values[end - 1]) else math.nan)
    return means


def _draw_curves(
    axes: Any, x: list[float], rows: list[Row], metrics: Sequence[tuple[str, str]], colours: Sequence[str]
) -> list[Any]:
    handles = []
    for (metric, label), colour in zip(metrics, colours, strict=False):
        y = [float(row[metric]) if _is_number(row.get(metric)) else math.nan for row in rows]
        if all(math.isnan(value) for value in y):
            continue
        absent = sum(metric not in row for row in rows)
        if metric.startswith("eval/") or 2 * absent > len(rows):
            known = [(at, value) for at, value in zip(x, y, strict=True) if not math.isnan(value)]
            handles += axes.plot(
                *zip(*known, strict=True), color=colour, linewidth=1.2, marker=".", label=label
            )
            continue
        window = max(1, len(rows) // 20)
        if window > 1:
            axes.plot(x, y, color=colour, alpha=0.25, linewidth=0.8)
        marker = "o" if len(rows) == 1 else None
        mean = running_mean(y, window)
        handles += axes.plot(x, mean, color=colour, linewidth=1.6, label=label, marker=marker)
    return handles


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
