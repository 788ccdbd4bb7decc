"""The dashboard of training: a live display on a terminal, plain lines elsewhere (files, CI)."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gamespiel.report.console import make_console
from gamespiel.report.text import format_duration, keep_last_lines
from task_gym.visible import show_controls

Metrics = Mapping[str, float | str]


class Metric(NamedTuple):
    """A metric on display.

    Attributes:
        key: Key of the metric.
        label: Name on display.
        form: Format of the value.
        needs: The metric is left out unless the one of this key was logged; "" for one that is always there,
            as ``-`` if it was not logged.
    """

    key: str
    label: str
    form: str
    needs: str = ""


LINE = (
    Metric("rollout/reward", "reward", ".3f"),
    Metric("rollout/success", "success", ".3f"),
    Metric("train/kl_ref", "kl", ".4f"),
    Metric("train/entropy", "entropy", ".3f"),
    Metric("rollout/legal_mass", "legal_mass", ".3f"),
    Metric("time/decisions_per_second", "dec/s", ".0f"),
    Metric("curriculum/name", "stage", "", "curriculum/name"),
    Metric("curriculum/progress", "to_next_stage", ".2f", "curriculum/progress"),
    Metric("replay/share", "replays", ".2f", "replay/share"),
    Metric("pool/size", "pool", ".0f", "pool/size"),
    Metric("eval/score", "held_out", ".3f", "eval/score"),
    Metric("eval/exploitability", "exploitability", ".3f", "eval/exploitability"),
)
"""Metrics of a plain line, after ``step 12/100``, in this order."""

GRID = (
    Metric("rollout/reward", "reward", ".3f"),
    Metric("rollout/success", "success", ".1%"),
    Metric("rollout/turns", "turns per game", ".2f"),
    Metric("rollout/seat0_reward", "seat 0", ".3f"),
    Metric("rollout/seat1_reward", "seat 1", ".3f"),
    Metric("eval/share", "share of best", ".1%"),
    Metric("train/kl_ref", "KL to base", ".4f"),
    Metric("train/kl_coef", "KL weight", ".4f"),
    Metric("train/approx_kl", "KL of update", ".5f"),
    Metric("train/entropy", "entropy", ".3f"),
    Metric("rollout/legal_mass", "legal mass", ".3f"),
    Metric("train/clip_fraction", "clipped", ".1%"),
    Metric("train/value_loss", "value loss", ".4f"),
    Metric("train/explained_variance", "explained var", ".3f"),
    Metric("decisions", "decisions", ",.0f"),
    Metric("time/decisions_per_second", "decisions/s", ",.0f"),
    Metric("machine/tokens_per_second", "tokens/s", ",.0f"),
    Metric("machine/memory_gib", "memory, GiB", ".2f"),
    # A run that is evaluated while it trains.
    Metric("eval/score", "held-out score", ".3f", "eval/score"),
    Metric("eval/success", "held-out success", ".1%", "eval/score"),
    # A policy that writes.
    Metric("rollout/reply_tokens", "reply tokens", ".1f", "rollout/reply_tokens"),
    Metric("rollout/cut_share", "replies cut", ".1%", "rollout/reply_tokens"),
    Metric("rollout/illegal", "illegal replies", ".1%", "rollout/reply_tokens"),
    # A run with stages. Progress is 100% in the last stage.
    Metric("curriculum/name", "stage", "", "curriculum/name"),
    Metric("curriculum/progress", "to next stage", ".0%", "curriculum/name"),
    Metric("curriculum/success_rate", "stage success", ".1%", "curriculum/name"),
    # A run that replays failures.
    Metric("replay/share", "replays", ".1%", "replay/share"),
    Metric("replay/size", "failures kept", ",.0f", "replay/share"),
    Metric("replay/mastered", "mastered", ",.0f", "replay/share"),
    # A policy that plays itself.
    Metric("eval/exploitability", "exploitability", ".3f", "eval/exploitability"),
    Metric("train/kl_magnet", "KL to magnet", ".4f", "train/kl_magnet"),
    Metric("train/magnet_coef", "magnet weight", ".4f", "train/magnet_coef"),
    Metric("train/magnet_step", "magnet of step", ".0f", "train/magnet_step"),
    Metric("pool/size", "pool", ".0f", "pool/size"),
    Metric("pool/newest", "newest of step", ".0f", "pool/newest"),
    Metric("pool/hardest", "hardest of step", ".0f", "pool/hardest"),
)
"""Metrics of the live display, as many per row as fit."""

GROUP_SUCCESS = "curriculum/success/"
"""Before a group's name, the key of the success rate of a step's episodes from it."""

CELL = 26
"""Columns of a metric in the live display, for its label and its value."""

TEXT_LINES = 8
"""Last lines of a game on display."""

REWARDS = 200
"""The most steps whose rewards are on display."""

EVERY = 2.0
"""Least seconds between the plain lines of two steps."""

SILENCE = 30.0
"""Seconds without output after which a plain line shows a step's progress."""


class Dashboard:
    """Shows a run's progress. It is a context manager, which restores the terminal however the run ends.

    A terminal shows one display that redraws in place: time left, metrics, rewards so far and the last game.
    Elsewhere a step prints a line, at most one per ``EVERY`` seconds, but always for the first and the last
    step. Within a long step, a line is printed every ``SILENCE`` seconds.

    Args:
        total_steps: Steps of the run.
        done: Steps that are done before it begins, as in a resumed run.
        console: The console to print to.
        clock: Returns seconds, from any start.
    """

    def __init__(
        self,
        total_steps: int,
        *,
        done: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total_steps
        self._console = console or make_console()
        self._clock = clock
        self._pace = Pace(done)
        self._rewards: deque[float] = deque(maxlen=REWARDS)
        self._metrics: Metrics = {}
        self._text: str | None = None
        self._activity = ""
        self._line_at = -math.inf
        self._spoke_at = -math.inf
        self._live: Live | None = None

    def __enter__(self) -> "Dashboard":
        self._pace.start(self._clock())
        self._spoke_at = self._clock()
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._render,
                console=self._console,
                refresh_per_second=4,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, metrics: Metrics, text: str | None = None) -> None:
        """Shows a step's metrics (with ``step``) and, if given, the text of a game just played."""
        self._metrics = dict(metrics)
        self._activity = ""
        self._text = text if text is not None else self._text
        self._pace.add(int(metrics["step"]), self._clock())
        reward = metrics.get("rollout/reward")
        if isinstance(reward, int | float) and math.isfinite(reward):
            self._rewards.append(reward)
        now, last = self._clock(), self._pace.step >= self._total
        if self._live is None and (now - self._line_at >= EVERY or last):
            self._line_at = self._spoke_at = now
            line = plain_line(self._metrics, self._total, self._pace.seconds_left(self._total))
            self._console.print(Text(line), soft_wrap=True)

    def activity(self, phase: str, done: int, total: int) -> None:
        """Shows how far the step under way is, as "20 of 64 episodes played"."""
        passes = ", each once per pass" if phase == "turns learned from" else ""
        self._activity = f"{done:,} of {total:,} {phase}{passes}"
        if self._live is None and self._clock() - self._spoke_at >= SILENCE:
            self._spoke_at = self._clock()
            self._console.print(
                Text(f"step {self._pace.step + 1}/{self._total} under way: {self._activity}"), soft_wrap=True
            )

    def message(self, text: str) -> None:
        """Prints a lasting line of text, above the live display or among the plain lines."""
        self._console.print(Text(text))

    def _render(self) -> RenderableType:
        step = self._pace.step
        head = Table.grid(expand=True, padding=(0, 1))
        for ratio in (None, 1, None):
            head.add_column(ratio=ratio, no_wrap=True)
        left = format_duration(self._pace.seconds_left(self._total))
        head.add_row(
            f"step {step}/{self._total}",
            ProgressBar(total=self._total, completed=step, complete_style="cyan", finished_style="green"),
            f"{left} left" if step < self._total else "done",
        )
        width = self._console.width
        grid = _make_grid(self._metrics, max(1, width // CELL))
        activity = f"step {step + 1} under way: {self._activity}" if self._activity else ""
        parts: list[RenderableType] = [head, Text(activity, style="dim"), grid]
        if any(name.startswith(GROUP_SUCCESS) for name in self._metrics):
            parts += ["", groups_line(self._metrics)]
        if len(self._rewards) > 1:
            recent = list(self._rewards)[-max(2, width - 30) :]
            ends = f"  {min(recent):.2f} to {max(recent):.2f}"
            line = Text.assemble(("reward  ", "dim"), (sparkline(recent), "cyan"), (ends, "dim"))
            parts += ["", line]
        panel = partial(Panel, title_align="left", box=box.ROUNDED, width=width)
        panels = [panel(Group(*parts), title="GameSpiel")]
        if self._text:
            game = Text(keep_last_lines(self._text, TEXT_LINES), overflow="ellipsis", no_wrap=True)
            panels.append(panel(game, title="last game", border_style="dim"))
        return Group(*panels)


class Pace:
    """The pace of the last steps of this process; a resumed run's earlier steps do not count.

    Args:
        step: Steps that are done already.
        window: Number of marks that are kept; their steps count.
    """

    def __init__(self, step: int = 0, window: int = 30) -> None:
        self.step = step
        self._started = 0.0
        self._marks: deque[tuple[int, float]] = deque(maxlen=window)

    def start(self, now: float) -> None:
        """Starts the clock."""
        self._started = now

    def add(self, step: int, now: float) -> None:
        """Marks that ``step`` steps are done."""
        if not self._marks:
            self._marks.append((step - 1, self._started))
        self._marks.append((step, now))
        self.step = step

    def seconds_left(self, total: int) -> float | None:
        """Returns the seconds until ``total`` steps are done, or None without a pace so far."""
        if not self._marks:
            return None
        (first, begun), (last, now) = self._marks[0], self._marks[-1]
        return (now - begun) / (last - first) * max(0, total - last) if last > first else None


def plain_line(metrics: Metrics, total: int, seconds_left: float | None) -> str:
    """Returns ``step 12/100  reward 0.512  ...  left 0:31``: two spaces between pairs, one within."""
    pairs = [f"{label} {value}" for label, value in _format_metrics(LINE, metrics)]
    return "  ".join(
        [f"step {int(metrics['step'])}/{total}", *pairs, f"left {format_duration(seconds_left)}"]
    )


def groups_line(metrics: Metrics) -> Text:
    """Returns the success rate of the step's episodes from each group."""
    line = Text("success", style="dim")
    for key, success in metrics.items():
        if key.startswith(GROUP_SUCCESS) and not isinstance(success, str):
            name = _one_line(key.removeprefix(GROUP_SUCCESS))
            line.append(f"  {name} {success:.0%}", style="not dim")
    return line


def sparkline(values: Sequence[float]) -> str:
    """Returns one block per value, ▁ for the lowest and █ for the highest; all ▁ if they are equal."""
    low, high = min(values), max(values)
    scale = 7 / (high - low) if high > low else 0.0
    return "".join("▁▂▃▄▅▆▇█"[round((value - low) * scale)] for value in values)


def _make_grid(metrics: Metrics, columns: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in range(columns):
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(justify="right", no_wrap=True, ratio=1)
    cells = _format_metrics(GRID, metrics)
    for row in range(0, len(cells), columns):
        grid.add_row(*chain.from_iterable(cells[row : row + columns]))
    return grid


def _format_metrics(listed: Sequence[Metric], metrics: Metrics) -> list[tuple[str, str]]:
    """Returns the label and the value of each metric that is not left out."""
    cells = []
    for key, label, form, needs in listed:
        if not needs or needs in metrics:
            value = metrics.get(key, math.nan)
            if isinstance(value, str):
                cells.append((label, _one_line(value)))
            else:
                cells.append((label, format(value, form) if math.isfinite(value) else "-"))
    return cells


def _one_line(text: str) -> str:
    return " ".join(show_controls(text).split())
