"""Reports of a run to TensorBoard, Weights & Biases and trackio, which ``run.report_to`` names.

Each is written to by its own library, behind Stable-Baselines3's logger. What fails there never ends a run:
it is said, and after a few failures in a row that library is no longer asked.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.logger import KVWriter, filter_excluded_keys

from gamespiel import __version__
from gamespiel.agents.models.weights import find_version
from gamespiel.agents.ppo import LLMPPO
from gamespiel.config import Config, to_dict
from task_gym.errors import MissingPackageError
from task_gym.files import read_file, to_json, write_atomically

REPORTS = "reports.json"
"""The file of a run that keeps under which names it is reported, so that a resumed run goes on there."""

PROJECT = "gamespiel"
"""The project of reports, unless ``WANDB_PROJECT`` or ``TRACKIO_PROJECT`` names another."""

GAME_STEPS = 25
"""Steps between the games that are reported."""

PACKAGED = ("torch", "transformers", "peft", "open_spiel")
"""Packages whose versions are reported."""

FAILURES = 5
"""Failures in a row after which a library is no longer asked."""

Values = Mapping[str, float | str]


class Report(NamedTuple):
    """One library's report of a run. Its functions may raise anything.

    Attributes:
        log: Reports a step's metrics.
        add_text: Reports a text of several lines, such as a game, under a name at a step.
        close: Ends the report.
    """

    log: Callable[[Values, int], object]
    add_text: Callable[[str, str, int], object]
    close: Callable[[], object]


def open_tensorboard(folder: Path, facts: Mapping[str, Any], name: str, first: int) -> Report:
    """Returns event files in the run's folder ``tensorboard``."""
    from torch.utils.tensorboard import SummaryWriter

    # Steps from here on replace those of an earlier part of the run.
    writer: Any = SummaryWriter(str(folder / "tensorboard"), purge_step=first)

    def log(values: Values, step: int) -> None:
        for key, value in values.items():
            (writer.add_text if isinstance(value, str) else writer.add_scalar)(key, value, step)
        writer.flush()

    def add_text(key: str, text: str, step: int) -> None:
        writer.add_text(key, indent(text, "    ", lambda line: True), step)  # Markdown

    add_text("run", json.dumps(facts, indent=1), first)
    return Report(log, add_text, writer.close)


def open_wandb(folder: Path, facts: Mapping[str, Any], name: str, first: int) -> Report:
    """Returns a run of Weights & Biases; with ``WANDB_MODE=offline`` in the run's folder ``wandb``."""
    import wandb

    if os.environ.get("WANDB_MODE") not in ("offline", "disabled", "dryrun") and not wandb.api.api_key:
        raise RuntimeError("there is no API key: `wandb login`, or WANDB_MODE=offline")
    run: Any = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT), id=name, name=folder.name, dir=str(folder),
        config=dict(facts), resume="allow", settings=wandb.Settings(console="off", silent=True),
    )  # fmt: skip
    # A resumed run logs the steps after its checkpoint again, which W&B's own steps cannot.
    run.define_metric("step")
    run.define_metric("*", step_metric="step")
    return Report(
        lambda values, step: run.log({"step": step, **values}),
        lambda key, text, step: run.log({"step": step, key: wandb.Html(f"<pre>{escape(text)}</pre>")}),
        run.finish,
    )


def open_trackio(folder: Path, facts: Mapping[str, Any], name: str, first: int) -> Report:
    """Returns a run of trackio; its data are in ``TRACKIO_DIR``, or the user's cache."""
    import trackio

    run: Any = trackio.init(
        project=os.environ.get("TRACKIO_PROJECT", PROJECT), name=name, config=dict(facts), resume="allow",
        embed=False, auto_log_gpu=False, auto_log_cpu=False,
    )  # fmt: skip
    return Report(
        lambda values, step: run.log(dict(values), step=step),
        lambda key, text, step: run.log({key: trackio.Html(f"<pre>{escape(text)}</pre>")}, step=step),
        run.finish,
    )


LIBRARIES = {"tensorboard": open_tensorboard, "wandb": open_wandb, "trackio": open_trackio}
"""The values of ``run.report_to``, which are the names of packages, with what opens a report."""


class ReportWriter(KVWriter):
    """A report behind Stable-Baselines3's logger. It is made at the first step, and its failures end nothing.

    Args:
        name: The report's name.
        make: Returns it, given the first step.
        game: Returns a game of the last step as text; None if there is none.
        say: Shows a sentence.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[int], Report],
        game: Callable[[], str | None],
        say: Callable[[str], None],
    ) -> None:
        self._name, self._make, self._game, self._say = name, make, game, say
        self._report: Report | None = None
        self._failures = 0

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Reports a row."""
        row = filter_excluded_keys(key_values, key_excluded, self._name)
        plain = {key: to_json(value) for key, value in row.items()}
        values = {key: value for key, value in plain.items() if isinstance(value, int | float | str)}
        number = int(values.pop("step", step))
        first = self._report is None
        self._try(lambda report: report.log(values, number), number)
        if (first or number % GAME_STEPS == 0) and (text := self._game()) is not None:
            self._try(lambda report: report.add_text("game", text, number), number)

    def finish(self) -> None:
        """Ends the report. The logger's ``close`` does not: after a divergence the run goes on with it."""
        if self._report is not None:
            self._try(lambda report: report.close(), 0)
        self._report = None

    def close(self) -> None:
        """Does nothing; see ``finish``."""

    def _try(self, do: Callable[[Report], object], step: int) -> None:
        if self._failures >= FAILURES:
            return
        try:
            if self._report is None:
                self._report = self._make(step)
            do(self._report)
            self._failures = 0
        except Exception as error:  # what others' code raises
            self._failures += 1
            last = self._failures == FAILURES
            ends = "it is no longer asked" if last else "the run goes on"
            if last or self._failures == 1:
                self._say(f"report_to {self._name}: {type(error).__name__}: {error!s:.300}; {ends}")


def check_reports(config: Config) -> None:
    """Raises unless the libraries of ``run.report_to`` are installed.

    Raises:
        MissingPackageError: one is not.
    """
    for name in _list_writers(config):
        if find_spec(name) is None:
            raise MissingPackageError(
                f"run.report_to names {name}, which is not installed; pip install 'gamespiel[{name}]'"
            )


@contextmanager
def reporting(
    config: Config, folder: Path, model: LLMPPO, say: Callable[[str], None]
) -> Iterator[list[ReportWriter]]:
    """Yields the writers of a run's reports, and ends the reports with the context.

    Args:
        config: The run's configuration.
        folder: The run's folder.
        model: The learner, whose games are reported.
        say: Shows a sentence.
    """
    if not (chosen := _list_writers(config)):
        yield []
        return

    def game() -> str | None:
        return None if model.last_episode is None else model.last_episode.transcript()

    names, facts = _read_names(folder, config), describe_run(config)
    writers = [
        ReportWriter(name, partial(LIBRARIES[name], folder, facts, names[name]), game, say) for name in chosen
    ]
    try:
        yield writers
    finally:
        for writer in writers:
            writer.finish()


def describe_run(config: Config) -> dict[str, Any]:
    """Returns what is reported of a run beside its metrics: configuration, versions, machine."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or "cpu"
    return {
        **to_dict(config),
        "versions": {"gamespiel": __version__, **{name: find_version(name) or "" for name in PACKAGED}},
        "git": _read_git_version(),
        "machine": {
            "system": platform.platform(), "python": platform.python_version(), "device": device,
            "cpus": os.cpu_count(),
        },
    }  # fmt: skip


def _read_names(folder: Path, config: Config) -> dict[str, str]:
    """Returns the names under which a run is reported, from its file, or new ones."""
    path = folder / REPORTS
    try:
        names = {key: str(value) for key, value in json.loads(read_file(path)).items()}
    except (OSError, ValueError, AttributeError, RecursionError):
        names = {}
    missing = sorted({name for name in _list_writers(config) if name not in names})
    if missing:
        names |= dict.fromkeys(missing, f"{folder.resolve().name}-{secrets.token_hex(4)}")
        write_atomically(path, json.dumps(names) + "\n")
    return names


def _list_writers(config: Config) -> list[str]:
    return [name for name in config.run.report_to if name != "none"]


def _read_git_version() -> str:
    """Returns the working directory's commit, with "+" if files differ from it; "" outside a repository."""

    def ask(*command: str) -> str:
        answer = subprocess.run(["git", *command], capture_output=True, text=True, timeout=10, check=True)
        return answer.stdout.strip()

    try:
        changed = bool(ask("status", "--porcelain", "--untracked-files=no"))
        return ask("rev-parse", "HEAD") + "+" * changed
    except (OSError, subprocess.SubprocessError):
        return ""
