"""Draws what goes wrong in runs, for docs/training.md: ``python -m docs.symptoms FOLDER`` has the runs.

The runs are the commands of that page's table, with ``--run.output_dir FOLDER/NAME``.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gamespiel.overview.plots import running_mean
from task_gym.files import write_atomically

ASSETS = Path(__file__).parent / "assets"
GOOD, BAD = "#0072B2", "#D55E00"
SYMPTOMS = {
    "saturated": ("collapse", "train/approx_kl", "change of the policy within a step, nats"),
    "legal-mass": ("mass", "rollout/legal_mass", "legal mass without the mask"),
    "certain": ("far", "train/entropy", "entropy, nats"),
    "gamed": ("gamed", "rollout/success", "success rate"),
}
"""By file: the run that has the symptom, the metric that shows it, and the metric's name."""


def draw(folder: Path, name: str) -> bytes:
    """Returns a PNG of two panels: the reward of a good run and of one with a symptom, and the metric."""
    run, metric, label = SYMPTOMS[name]
    figure = Figure(figsize=(8, 2.5), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    panels: Any = figure.subplots(1, 2)
    for axes, key, title in zip(panels, ("rollout/reward", metric), ("reward", label), strict=True):
        for subdir, colour, text in (("good", GOOD, "the preset tiny"), (run, BAD, "with the symptom")):
            rows = [json.loads(line) for line in (folder / subdir / "metrics.jsonl").read_text().splitlines()]
            rows = [row for row in rows if row["step"] <= 40]
            values = running_mean([row[key] for row in rows], 3)
            axes.plot([row["step"] for row in rows], values, color=colour, label=text, linewidth=1.4)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("step", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.25)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].legend(fontsize=8, frameon=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


if __name__ == "__main__":
    for name in SYMPTOMS:
        write_atomically(ASSETS / f"symptom-{name}.png", draw(Path(sys.argv[1]), name))
