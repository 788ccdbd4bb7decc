"""Pictures of runs: that of one at its end, and ``gamespiel plot`` of several, of seeds as a band."""

from __future__ import annotations

import io
import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel.agents.runs.loggers import Row
from gamespiel.config import Config, InvalidValueError
from gamespiel.overview.comparing import differing_keys
from gamespiel.overview.reading import Run, read_run
from gamespiel.report.text import print_plain
from gamespiel.runs import SHARE
from task_gym.arguments import is_number
from task_gym.files import write_atomically
from task_gym.stats import Interval, mean_interval, wilson

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""

PANELS = (
    ("rollout/reward", "reward"),
    ("rollout/success", "success rate"),
    ("eval/score", "held-out score"),
    ("eval/share", "share of best response"),
    ("eval/exploitability", "exploitability"),
    ("train/kl_ref", "KL to the base model"),
    ("train/entropy", "entropy"),
    ("rollout/legal_mass", "legal mass without mask"),
    ("train/explained_variance", "explained variance of the critic"),
    ("time/decisions_per_second", "decisions per second"),
)
"""The panels: metric and title. Those that no run has are left out."""

WIDTH = 1.6
"""Width of a group's curve, in points."""

DASH, SLOTS = 4, 4
"""The length of a dash in widths of the line, and how many equal curves are seen beside one another."""

LINE = 150
"""Characters of a label that fit the figure's width."""

PART = 5
"""The first and the last of so many parts of a run's steps are compared."""

MOST = 24
"""The most names of a panel of shares; the others are those with the fewest episodes."""


class Group(NamedTuple):
    """Runs that differ in their seed only.

    Attributes:
        label: What tells them from the other groups.
        runs: The runs.
    """

    label: str
    runs: list[Run]


Shares = tuple[str, Mapping[str, Interval], Mapping[str, Interval]]
"""(title, early, late): a title that says what the names are, and by name the share of successes in the first
and in the last part of the steps; ``early`` is empty where a name has one time only."""


def plot_run(folder: Path, picture: Path) -> None:
    """Draws a run, and writes the picture."""
    save_runs([read_run(folder)], [picture])


def plot_runs(console: Console, places: Sequence[Path], output: Path) -> None:
    """Draws runs, and writes a PNG and an SVG file.

    Args:
        console: The console to print on.
        places: The runs' folders.
        output: The file; its ending, if it has one, is replaced by both.

    Raises:
        TaskGymError: a place is no run, or no run has a step.
    """
    runs = [run for place in places if (run := read_run(place)).rows]
    if not runs:
        raise InvalidValueError("there is nothing to draw: none of the runs has made a step")
    pictures = [output.with_suffix(ending) for ending in (".png", ".svg")]
    save_runs(runs, pictures)
    for path in pictures:
        print_plain(console, f"written to {path}")


def save_runs(runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """Writes the figure of runs to files, of the forms that their endings say, each whole or not at all."""
    figure = draw_groups(group_seeds(runs))
    for path in paths:
        picture = io.BytesIO()
        figure.savefig(picture, format=path.suffix.removeprefix("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, picture.getvalue())


def group_seeds(runs: Sequence[Run]) -> list[Group]:
    """Returns the runs in groups that differ in more than the seed, in their order."""
    configs: list[Config] = []
    groups: list[list[Run]] = []
    for run in runs:
        config = replace(run.config, run=replace(run.config.run, seed=0, output_dir=None))
        if config not in configs:
            configs.append(config)
            groups.append([])
        groups[configs.index(config)].append(run)
    named = []
    for name, group in zip(_shorten_paths([group[0].folder for group in groups]), groups, strict=True):
        pairs = [
            (key, value) for key, _, value in differing_keys(groups[0][0], group[0]) if key != "run.seed"
        ]
        label = ", ".join(f"{key.partition('.')[2]} {value}" for key, value in pairs)
        label = label if 0 < len(pairs) <= 3 else name
        named.append(Group(label if len(group) == 1 else f"{label}, {len(group)} seeds", group))
    return named


def _shorten_paths(folders: Sequence[Path]) -> list[str]:
    """Returns the last parts of paths, as many as tell the paths from one another."""
    parts = [folder.resolve().parts for folder in folders]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-count:]) for path in parts]
        if len(set(names)) == len(set(parts)):
            break
    return names


def draw_groups(groups: Sequence[Group]) -> Any:
    """Returns the figure: a panel per metric against steps.

    Groups are named above all panels. Below are the shares of success by game, opponent and stage of each
    group that has several.
    """
    from matplotlib.figure import Figure  # slow to import; needs no display
    from matplotlib.lines import Line2D

    panels_of_shares = [
        (group, colour, shares)
        for group, colour in zip(groups, COLOURS * len(groups), strict=False)
        for shares in find_shares(group.runs)
    ]
    runs = [run for group in groups for run in group.runs]
    metrics = [(metric, title) for metric, title in PANELS if any(read_curve(run, metric) for run in runs)]
    rows = max(1, -(-(len(metrics) + len(panels_of_shares)) // 2))
    labels = [_make_legible(group.label) for group in groups]
    lines = sum(label.count("\n") + 1 for label in labels)
    figure = Figure(figsize=(12, 3.25 * rows + 0.17 * lines), dpi=120, layout="constrained")
    styles = [_find_style(place, len(groups)) for place in range(len(groups))]
    handles = [Line2D([], [], linewidth=WIDTH, **style) for style in styles]
    figure.legend(handles, labels, loc="outside upper left", fontsize=8, frameon=False, handlelength=4)
    panels = iter(figure.subplots(rows, 2).flat)
    for (metric, title), axes in zip(metrics, panels, strict=False):
        for group, style in zip(groups, styles, strict=True):
            _draw_group(axes, group, metric, style)
        _name_panel(axes, title, "steps")
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, frameon=False)
        if len(runs) == 1:
            _mark_stages(axes, runs[0].rows)
    for (group, colour, shares), axes in zip(panels_of_shares, panels, strict=False):
        draw_shares(axes, shares, colour)
        if len(groups) > 1:
            axes.set_xlabel(_make_legible(group.label, LINE // 2), fontsize=8, color=colour)
    for axes in panels:
        axes.set_axis_off()
    return figure


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


def _draw_group(axes: Any, group: Group, metric: str, style: Mapping[str, Any]) -> None:
    """Draws a metric of a group, with a band, if its runs have it.

    The band is from the least to the most of the seeds, or, of a run alone, the 95% interval: of an
    evaluation over its episodes, of rewards and successes over the steps of which a point is the mean (of a
    single step, the point itself). A run alone also has the score against each opponent and in each game.
    """
    curves = [curve for run in group.runs if (curve := read_curve(run, metric))]
    steps = sorted(set.intersection(*map(set, curves))) if curves else []
    if not steps:
        return
    columns = [[curve[step] for step in steps] for curve in curves]
    is_evaluation, window = metric.startswith("eval/"), max(1, len(steps) // 20)
    smooth = columns if is_evaluation else [running_mean(column, window) for column in columns]
    means = [sum(values) / len(values) for values in zip(*smooth, strict=True)]
    marker = "." if is_evaluation or len(steps) == 1 else None
    axes.plot(steps, means, linewidth=WIDTH, marker=marker, **style)
    run, band, parts = group.runs[0], list[tuple[float, float]](), list[str]()
    if len(columns) > 1:
        band = [(min(values), max(values)) for values in zip(*smooth, strict=True)]
    elif metric in ("rollout/reward", "rollout/success"):
        ends = range(1, len(steps) + 1)
        intervals = [mean_interval(columns[0][max(0, end - window) : end]) for end in ends]
        band = [(low, high) if math.isfinite(low) else (mean, mean) for mean, low, high in intervals]
    elif metric == "eval/score":
        widths = read_curve(run, "eval/interval")
        band = [(m - widths.get(s, 0.0), m + widths.get(s, 0.0)) for s, m in zip(steps, means, strict=True)]
        parts = sorted({key for row in run.rows for key in row if key.startswith(f"{metric}/")})
    if band:
        axes.fill_between(steps, *zip(*band, strict=True), color=style["color"], alpha=0.18, linewidth=0)
    for dashes, name in zip(("--", ":", "-.") * 3, parts, strict=False):
        curve, label = read_curve(run, name), name.removeprefix(f"{metric}/")
        axes.plot(curve.keys(), curve.values(), dashes, color=style["color"], linewidth=0.9, label=label)


def read_curve(run: Run, metric: str) -> dict[int, float]:
    """Returns a metric by step, without steps that lack it. Evaluations are of the step before their row.

    The exact share is also measured after the last step, and is then in the run's summary.
    """
    shift = 1 if metric.startswith("eval/") else 0
    last = run.summary.get("after", {}).get(SHARE) if metric == "eval/share" else None
    values = {row["step"] - shift: row.get(metric) for row in run.rows}
    curve = {step: float(value) for step, value in values.items() if is_number(value)}
    return curve if last is None else curve | {run.summary["step"]: float(last)}


def find_shares(runs: Sequence[Run]) -> Iterator[Shares]:
    """Yields the success of runs by game, by opponent and by stage, of those that have several."""
    rows = [row for run in runs for row in run.rows]
    steps = max((row["step"] for row in rows), default=0)
    length = max(1, steps // PART)
    early = [row for row in rows if row["step"] <= length]
    late = [row for row in rows if row["step"] > steps - length]
    for title, prefix in (("game", "rollout/game/"), ("opponent", "rollout/against/")):
        shares = [_count_successes(_list_groups(part, prefix)) for part in (early, late)]
        if len(shares[0].keys() | shares[1].keys()) > 1:
            yield f"success by {title}", shares[0], shares[1]
    stages = _count_successes(
        (row["curriculum/name"], row["rollout/success"], row["rollout/episodes"])
        for row in rows
        if isinstance(row.get("curriculum/name"), str) and row.get("rollout/episodes")
    )
    if len(stages) > 1:
        yield "success by stage, all of its steps", {}, stages


def _list_groups(rows: Sequence[Row], prefix: str) -> Iterator[tuple[str, float, int]]:
    """Yields the name, the share of successes and the episodes of each row's groups."""
    for row in rows:
        for key, episodes in row.items():
            if key.startswith(prefix) and key.endswith("/episodes"):
                name = key.removeprefix(prefix).removesuffix("/episodes")
                yield name, row[f"{prefix}{name}/success"], episodes


def _count_successes(groups: Iterable[tuple[Any, ...]]) -> dict[str, Interval]:
    """Returns shares by name, those with most episodes first, or as they came if there are few."""
    won, played = defaultdict[str, float](float), Counter[str]()
    for name, success, episodes in groups:
        won[name] += success * episodes
        played[name] += int(episodes)
    counts = played.most_common() if len(played) > MOST else played.items()
    # A mean of booleans times their number is a whole number, but for the last bits of a float.
    return {name: wilson(min(round(won[name], 6), count), count) for name, count in counts if count}


def draw_shares(axes: Any, shares: Shares, colour: str) -> None:
    """Draws a line per name: the share late in the run, filled, and early, hollow, with 95% intervals."""
    title, early, late = shares
    names = list(dict.fromkeys([*late, *early]))[:MOST]
    for place, name in enumerate(names):
        for part, offset, face in ((early, -0.15, "white"), (late, 0.15, colour)):
            if name not in part:
                continue
            mean, low, high = part[name]
            y = place + offset if early else place
            axes.plot([low, high], [y, y], color=colour, linewidth=1.2, alpha=0.6)
            axes.plot([mean], [y], "o", color=colour, markerfacecolor=face, markersize=4.5)
    axes.set_yticks(range(len(names)), [f"{name:.40}" for name in names], fontsize=7 if len(names) > 8 else 9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    _name_panel(axes, f"{title}, first fifth of the steps (hollow) and last" if early else title)


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """Returns means of each value and the ``window - 1`` before it; a NaN is in no mean and stays NaN."""
    means = []
    for end in range(1, len(values) + 1):
        recent = [value for value in values[max(0, end - window) : end] if not math.isnan(value)]
        means.append(sum(recent) / len(recent) if recent and not math.isnan(values[end - 1]) else math.nan)
    return means


def _mark_stages(axes: Any, rows: Sequence[Row]) -> None:
    """Draws a line at each row at whose end a curriculum's stage had changed, with the new stage's name."""
    before = 0  # a run begins in the first stage
    for row in rows:
        stage = row.get("curriculum/stage", before)
        if stage != before:
            axes.axvline(row["step"], color="0.45", linestyle=":", linewidth=1.0)
            axes.annotate(
                str(row.get("curriculum/name", stage)), (row["step"], 0.03),
                xycoords=("data", "axes fraction"), xytext=(3, 0), textcoords="offset points",
                rotation=90, fontsize=7, color="0.35", va="bottom",
            )  # fmt: skip
        before = stage


def _name_panel(axes: Any, title: str, x: str = "") -> None:
    """Gives a panel its title, its grid and the name of its axis."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(x)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
