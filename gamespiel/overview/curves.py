"""``gamespiel plot``: the curves of one or several runs, those of several seeds as a band."""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel.config import InvalidValueError, to_dict
from gamespiel.overview.comparing import differing_keys
from gamespiel.overview.reading import Run, read_run
from gamespiel.overview.shares import draw_shares, find_shares
from gamespiel.report.plots import running_mean, stage_changes
from gamespiel.report.summary import SHARE
from task_gym.files import write_atomically
from task_gym.stats import mean_interval

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

WIDTH = 1.6
"""Of a group's curve, in points."""

DASH, SLOTS = 4, 4
"""The length of a dash in widths of the line, and how many equal curves are seen beside one another."""

LINE = 150
"""Characters of a label that fit the figure's width."""


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
    firsts = [own[0] for own in groups.values()]
    names = _shorten_paths([run.folder for run in firsts])
    return [
        Group(_make_label(own, firsts[0], name, len(groups)), own)
        for name, own in zip(names, groups.values(), strict=True)
    ]


def _shorten_paths(folders: Sequence[Path]) -> list[str]:
    """Returns the last parts of paths, as many as tell the paths from one another."""
    parts = [folder.resolve().parts for folder in folders]
    most = max(map(len, parts))
    for count in range(1, most + 1):
        short = ["/".join(own[-count:]) for own in parts]
        if len(set(short)) == len(set(parts)):
            break
    return short


def _make_label(runs: Sequence[Run], first: Run, name: str, groups: int) -> str:
    """Returns what tells a group from the first run: keys, or its folder; and the number of its seeds."""
    changed = [
        f"{key.partition('.')[2]} {value}"
        for key, _, value in differing_keys(first, runs[0])
        if key != "run.seed"
    ]
    named = ", ".join(changed) if groups > 1 and 0 < len(changed) <= 3 else name
    return named if len(runs) == 1 else f"{named}, {len(runs)} seeds"


def draw_groups(groups: Sequence[Group]) -> Any:
    """Returns the figure: a panel per metric against steps; panels of metrics that no run has are empty.

    Groups are named above all panels. Below are the shares of success by game, opponent and stage of each
    group that has several.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import; needs no display
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    shares = [
        (group, colour, found)
        for group, colour in zip(groups, COLOURS * len(groups), strict=False)
        for found in find_shares(group.runs)
    ]
    rows = -(-(len(PANELS) + len(shares)) // 2)
    labels = [_make_legible(group.label) for group in groups]
    lines = sum(label.count("\n") + 1 for label in labels)
    figure = Figure(figsize=(12, 3.25 * rows + 0.17 * lines), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    styles = [_find_style(place, len(groups)) for place in range(len(groups))]
    handles = [Line2D([], [], linewidth=WIDTH, **style) for style in styles]
    figure.legend(handles, labels, loc="outside upper left", fontsize=8, frameon=False, handlelength=4)
    panels = list(figure.subplots(rows, 2).flat)
    for axes, (group, colour, found) in zip(panels[len(PANELS) :], shares, strict=False):
        draw_shares(axes, found, colour)
        if len(groups) > 1:
            axes.set_xlabel(_make_legible(group.label, LINE // 2), fontsize=8, color=colour)
        _clear_frame(axes)
    for axes in panels[len(PANELS) + len(shares) :]:
        axes.set_axis_off()
    for axes, (metric, title) in zip(panels, PANELS, strict=False):
        drawn = [_draw_group(axes, group, metric, style) for group, style in zip(groups, styles, strict=True)]
        axes.set_title(title, loc="left", fontsize=11)
        axes.set_xlabel("steps")
        _clear_frame(axes)
        if not any(drawn):
            axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", color="0.5")
        elif axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, frameon=False)
        if len(groups) == len(groups[0].runs) == 1:
            _mark_stages(axes, groups[0].runs[0])
    return figure


def _clear_frame(axes: Any) -> None:
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _find_style(place: int, groups: int) -> dict[str, Any]:
    """Returns a curve's colour, dashes and size of points: all are seen where several curves are one."""
    slots = min(groups, SLOTS)
    slot = place % slots
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": (DASH * slot, (DASH, DASH * (slots - 1))) if place else "solid",
        "markersize": 3 * (1 + slots - slot),
    }


def _make_legible(label: str, width: int = LINE) -> str:
    """Returns a label in lines that fit the figure, and as Matplotlib shows it in full."""
    folded = "\n".join(textwrap.wrap(label, width)).replace("$", r"\$")
    return f"./{folded}" if folded.startswith("_") else folded  # which would leave it out of the legend


def _draw_group(axes: Any, group: Group, metric: str, style: Mapping[str, Any]) -> bool:
    """Draws a metric of a group, with a band; returns whether any of its runs has it.

    The band is from the least to the most of the seeds, or, of a run alone, the 95% interval: of an
    evaluation over its episodes, of rewards and successes over the steps of which a point is the mean. A run
    alone also has the score against each opponent and in each game.
    """
    colour = style["color"]
    curves = [curve for run in group.runs if (curve := read_curve(run, metric))]
    if not curves:
        return False
    steps = sorted(set.intersection(*(set(curve) for curve in curves)))
    if not steps:
        return False
    columns = [_smooth([curve[step] for step in steps], metric) for curve in curves]
    means = [sum(values) / len(values) for values in zip(*columns, strict=True)]
    marker = "." if metric.startswith("eval/") or len(steps) == 1 else None
    axes.plot(steps, means, linewidth=WIDTH, marker=marker, **style)
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
        for line, name in zip(("--", ":", "-.") * 3, _find_parts(group.runs[0], metric), strict=False):
            curve = read_curve(group.runs[0], name)
            label = name.removeprefix(f"{metric}/")
            axes.plot(list(curve), list(curve.values()), line, color=colour, linewidth=0.9, label=label)
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
    """Returns a metric by step, without steps that lack it. Evaluations are of the step before their row.

    The exact share is also measured after the last step, and is then in the run's summary.
    """
    shift = 1 if metric.startswith("eval/") else 0
    last = run.summary.get("after", {}).get(SHARE) if metric == "eval/share" else None
    return {
        row["step"] - shift: float(value)
        for row in run.rows
        if isinstance(value := row.get(metric), int | float) and not isinstance(value, bool)
        and math.isfinite(value)
    } | ({} if last is None else {run.summary["step"]: float(last)})  # fmt: skip


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
