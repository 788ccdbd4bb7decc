"""``gamespiel plot``: the curves of one or several runs, those of several seeds as a band."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel.agents.runs.stats import mean_interval
from gamespiel.config import InvalidValueError, to_dict
from gamespiel.overview.comparing import differing_keys
from gamespiel.overview.reading import Run, read_run
from gamespiel.overview.shares import draw_shares, find_shares
from gamespiel.report.plots import running_mean, stage_changes
from task_gym.files import write_atomically

PANELS = (
    ("rollout/reward", "reward"),
    ("rollout/success", "success rate"),
    ("eval/score", "held-out score"),
    ("eval/share", "share of best response"),
    ("train/kl_ref", "KL to the base model"),
    ("train/entropy", "entropy"),
    ("rollout/legal_mass", "legal mass without mask"),
    ("time/decisions_per_second", "decisions per second"),
)
"""The metric of each panel, and its title."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""


class Group(NamedTuple):
    """Runs that differ in their seed only.

    Attributes:
        label: What tells them from the other groups.
        runs: The runs.
    """

    label: str
    runs: list[Run]


def plot_runs(console: Console, places: Sequence[Path], output: Path) -> None:
    """Draws runs, and writes a PNG and an SVG file.

    Args:
        console: The console to print on.
        places: The runs' folders.
        output: The file; its ending, if it has one, is replaced by both.

    Raises:
        TaskGymError: a place is no run, or no run has a step.
    """
    runs = [read_run(place) for place in places]
    if not any(run.rows for run in runs):
        raise InvalidValueError("there is nothing to draw: none of the runs has made a step")
    groups = group_seeds([run for run in runs if run.rows])
    for path in save_groups(groups, [output.with_suffix(f".{form}") for form in ("png", "svg")]):
        console.print(f"written to {path}", soft_wrap=True, markup=False)


def save_groups(groups: Sequence[Group], paths: Sequence[Path]) -> Sequence[Path]:
    """Writes the figure of groups to files, of the forms that their endings say; returns them."""
    figure = draw_groups(groups)
    for path in paths:
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix.removeprefix("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, picture.getvalue())
    return paths


def group_seeds(runs: Sequence[Run]) -> list[Group]:
    """Returns the runs in groups that differ in more than the seed, in their order."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        keys = to_dict(run.config)
        for name in ("seed", "output_dir"):
            del keys["run"][name]
        groups.setdefault(json.dumps(keys, sort_keys=True), []).append(run)
    first = next(iter(groups.values()))[0]
    return [Group(_make_label(own, first, len(groups)), own) for own in groups.values()]


def _make_label(runs: Sequence[Run], first: Run, groups: int) -> str:
    """Returns what tells a group from the first run: keys, or its folder; and the number of its seeds."""
    changed = [
        f"{key.partition('.')[2]} {value}"
        for key, _, value in differing_keys(first, runs[0])
        if key != "run.seed"
    ]
    named = ", ".join(changed) if groups > 1 and 0 < len(changed) <= 3 else runs[0].folder.name
    return named if len(runs) == 1 else f"{named}, {len(runs)} seeds"


def draw_groups(groups: Sequence[Group]) -> Any:
    """Returns the figure: a panel per metric against steps; panels of metrics that no run has are empty.

    Below are the shares of success by game, opponent and stage of each group that has several.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import; needs no display
    from matplotlib.figure import Figure

    shares = [
        (group, colour, found)
        for group, colour in zip(groups, COLOURS * len(groups), strict=False)
        for found in find_shares(group.runs)
    ]
    rows = -(-(len(PANELS) + len(shares)) // 2)
    figure = Figure(figsize=(12, 3.25 * rows), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(rows, 2).flat)
    for axes, (group, colour, found) in zip(panels[len(PANELS) :], shares, strict=False):
        draw_shares(axes, found, colour)
        if len(groups) > 1:
            axes.set_title(group.label, loc="right", fontsize=8, color=colour)
        _clear_frame(axes)
    for axes in panels[len(PANELS) + len(shares) :]:
        axes.set_axis_off()
    for axes, (metric, title) in zip(panels, PANELS, strict=False):
        drawn = [
            _draw_group(axes, group, metric, COLOURS[place % len(COLOURS)])
            for place, group in enumerate(groups)
        ]
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("steps")
        _clear_frame(axes)
        if not any(drawn):
            axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", color="0.5")
        elif metric == PANELS[0][0] or len(axes.get_legend_handles_labels()[1]) > len(groups):
            axes.legend(fontsize=8, frameon=False)
        if len(groups) == len(groups[0].runs) == 1:
            _mark_stages(axes, groups[0].runs[0])
    return figure


def _clear_frame(axes: Any) -> None:
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_group(axes: Any, group: Group, metric: str, colour: str) -> bool:
    """Draws a metric of a group, with a band; returns whether any of its runs has it.

    The band is from the least to the most of the seeds, or, of a run alone, the 95% interval: of an
    evaluation over its episodes, of rewards and successes over the steps of which a point is the mean. A run
    alone also has the score against each opponent and in each game.
    """
    curves = [curve for run in group.runs if (curve := read_curve(run, metric))]
    if not curves:
        return False
    steps = sorted(set.intersection(*(set(curve) for curve in curves)))
    if not steps:
        return False
    columns = [_smooth([curve[step] for step in steps], metric) for curve in curves]
    means = [sum(values) / len(values) for values in zip(*columns, strict=True)]
    marker = "." if metric.startswith("eval/") or len(steps) == 1 else None
    axes.plot(steps, means, color=colour, linewidth=1.6, marker=marker, label=group.label)
    if len(columns) > 1:
        low, high = ([pick(values) for values in zip(*columns, strict=True)] for pick in (min, max))
        axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    elif metric in ("rollout/reward", "rollout/success"):
        (curve,) = curves
        bounds = _intervals([curve[step] for step in steps])
        low, high = ([pair[end] for pair in bounds] for end in (0, 1))
        axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
    elif metric == "eval/score":
        widths = read_curve(group.runs[0], "eval/interval")
        half = [widths.get(step, 0.0) for step in steps]
        low, high = ([m + sign * h for m, h in zip(means, half, strict=True)] for sign in (-1, 1))
        axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
        for style, name in zip(("--", ":", "-.") * 3, _find_parts(group.runs[0], metric), strict=False):
            curve = read_curve(group.runs[0], name)
            label = name.removeprefix(f"{metric}/")
            axes.plot(list(curve), list(curve.values()), style, color=colour, linewidth=0.9, label=label)
    return True


def _intervals(values: Sequence[float]) -> list[tuple[float, float]]:
    """Returns the 95% interval of each point's mean over its steps; of a single step, the point itself."""
    window = _window_of(values)
    found = []
    for end in range(1, len(values) + 1):
        mean, low, high = mean_interval(values[max(0, end - window) : end])
        found.append((low, high) if math.isfinite(low) else (mean, mean))
    return found


def read_curve(run: Run, metric: str) -> dict[int, float]:
    """Returns a metric by step, without steps that lack it. Evaluations are of the step before their row."""
    shift = 1 if metric.startswith("eval/") else 0
    return {
        row["step"] - shift: float(value)
        for row in run.rows
        if isinstance(value := row.get(metric), int | float) and not isinstance(value, bool)
        and math.isfinite(value)
    }  # fmt: skip


def _find_parts(run: Run, metric: str) -> list[str]:
    return sorted({key for row in run.rows for key in row if key.startswith(f"{metric}/")})


def _smooth(values: Sequence[float], metric: str) -> list[float]:
    """Returns the running mean over a twentieth of the steps; evaluations are as they were measured."""
    return list(values) if metric.startswith("eval/") else running_mean(values, _window_of(values))


def _window_of(values: Sequence[float]) -> int:
    return max(1, len(values) // 20)


def _mark_stages(axes: Any, run: Run) -> None:
    for at, name in stage_changes(run.rows):
        axes.axvline(run.rows[at]["step"], color="0.45", linestyle=":", linewidth=1.0)
        axes.annotate(
            name, (run.rows[at]["step"], 0.03), xycoords=("data", "axes fraction"), xytext=(3, 0),
            textcoords="offset points", rotation=90, fontsize=7, color="0.35", va="bottom",
        )  # fmt: skip
