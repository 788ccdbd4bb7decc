"""`gamespiel train`: a run from its configuration to the table of before and after."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger

from gamespiel import exact
from gamespiel.agents import checkpoint
from gamespiel.agents.dashboard import Dashboard, summary_table
from gamespiel.agents.loggers import JSONLWriter, truncate_after
from gamespiel.agents.plots import learning_curve
from gamespiel.agents.ppo import LLMPPO
from gamespiel.assembly import make_algorithm, settled
from gamespiel.config import (
    SAVED_NAME,
    Config,
    InvalidValueError,
    notices,
    require_built,
    save,
    saved_config,
)
from gamespiel.evaluation import evaluation_envs, sample
from gamespiel.report import summary_rows, write_json

METRICS = "metrics.jsonl"
CURVE = "learning_curve.png"
SUMMARY = "summary.json"
RUNS = Path("runs")


def train(config: Config, resume: Path | None = None, console: Console | None = None) -> Path:
    """Train, or go on from `resume` (a run, or one of its checkpoints); the run's folder is returned.

    The folder holds `config.yaml` (resolved), `metrics.jsonl` (a row a step), `checkpoints/step-N`,
    `learning_curve.png` and `summary.json` (before and after). There is a checkpoint from the start (step 0),
    so that whatever ends the run, it can go on. Ctrl-C stops at the last whole step, with a checkpoint and
    the table; a second one stops at once.

    Raises:
        TaskGymError: a configuration that this version cannot run, or a checkpoint that does not fit.
        KeyboardInterrupt: stopped by Ctrl-C before the last step.
    """
    console = console or Console()
    require_built(config)
    if config.env.opponent == "open" and config.env.env_type == "openspiel":
        raise InvalidValueError("training needs an opponent; 'open' leaves every seat to the caller")
    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    start = checkpoint.find(resume) if resume is not None else None
    if start is not None:
        checkpoint.require_newest(start)
    folder, config = _run_folder(settled(config), start)
    model = make_algorithm(config)
    if start is not None:
        checkpoint.load(model, start)
        truncate_after(folder / METRICS, model.step)
    else:
        checkpoint.save(model, folder)
    save(config, folder / SAVED_NAME)
    for notice in notices(config):
        console.print(notice, soft_wrap=True)
    console.print(f"{_describe(model)}\nrun folder: {folder}", soft_wrap=True)

    before = _before(config, model, folder, resumed=start is not None)
    with Dashboard(config.ppo.num_train_steps, console=console) as dashboard, _interruptible() as stop:
        model.set_logger(Logger(str(folder), [JSONLWriter(folder / METRICS), _Display(dashboard, model)]))
        model.learn(callback=_BetweenSteps(folder, config, stop))
        if stop.asked:
            dashboard.message(f"stopped after step {model.step} of {config.ppo.num_train_steps}")
    model.logger.close()
    if (folder / METRICS).stat().st_size:
        learning_curve(folder / METRICS, folder / CURVE)
    _conclude(config, model, folder, before, console)
    if stop.asked and model.step < config.ppo.num_train_steps:
        raise KeyboardInterrupt
    return folder


def _run_folder(config: Config, start: Path | None) -> tuple[Path, Config]:
    """The run's folder, made where it is new, and the configuration that names it.

    Raises:
        InvalidValueError: a new run into a folder that holds one or is none, or a resumed one into another.
    """
    if start is not None:
        folder = start.parent.parent
        asked = config.run.output_dir  # the run's own, which moves with its folder, or one from the caller
        if (
            asked not in (None, saved_config(folder).run.output_dir)
            and Path(asked).resolve() != folder.resolve()
        ):
            raise InvalidValueError(
                f"run.output_dir cannot be {asked!r}: a resumed run stays in {str(folder)!r}"
            )
    elif config.run.output_dir is not None:
        folder = Path(config.run.output_dir)
    else:
        name = config.env.game or config.model.model_name.rsplit("/", 1)[-1]
        folder = RUNS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-seed{config.run.seed}"
    if start is None and (folder / SAVED_NAME).exists():
        raise InvalidValueError(
            f"run.output_dir {str(folder)!r} already holds a run: "
            f"go on with --resume {folder}, or name another folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValueError(f"run.output_dir {str(folder)!r}: {error.strerror}") from error
    run = dataclasses.replace(config.run, output_dir=str(folder))
    return folder, dataclasses.replace(config, run=run)


def _describe(model: LLMPPO) -> str:
    policy = model.policy
    total = sum(p.numel() for p in policy.model.parameters())
    trained = sum(p.numel() for p in policy.trainable_parameters())
    return (
        f"{policy.model_settings.model_name}: {total:,} parameters, {trained:,} of them trained, "
        f"on {policy.engine.device}, {torch.get_num_threads()} threads"
    )


def _before(config: Config, model: LLMPPO, folder: Path, *, resumed: bool) -> dict[str, float | str]:
    """The untrained policy's measures; a resumed run's are on disk, or, where that was removed, unknown."""
    path = folder / SUMMARY
    if resumed and path.exists():
        stored: dict[str, float | str] = json.loads(path.read_text())["before"]
        return stored
    if model.step:
        return {}
    rows = measures(config, model)
    write_json({"before": rows}, path)
    return rows


def measures(config: Config, model: LLMPPO) -> dict[str, float | str]:
    """How good the policy is now: by play, and exactly where the game is small enough."""
    sampled: Mapping[str, Any] = {}
    if config.run.eval_games:
        envs = evaluation_envs(config.env, config.run.eval_games)
        sampled = sample(config, envs, model.policy, None, config.run.eval_games)
    comparison = exact.of_policy(model.policy, config.env) if exact.is_enumerable(config.env) else None
    return summary_rows(sampled, comparison)


def _conclude(
    config: Config, model: LLMPPO, folder: Path, before: dict[str, float | str], console: Console
) -> None:
    after = measures(config, model)
    write_json(
        {"step": model.step, "decisions": model.num_timesteps, "before": before, "after": after},
        folder / SUMMARY,
    )
    console.print(summary_table(before, after))
    console.print(
        f"{model.num_timesteps:,} decisions in {model.seconds:.0f} s\n"
        f"python eval.py --checkpoint {folder}{' --exact' if 'share of best response' in after else ''}",
        soft_wrap=True,
    )


class _Stop:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextmanager
def _interruptible() -> Iterator[_Stop]:
    """Within it the first Ctrl-C only asks to stop; the next one is Python's own."""
    stop = _Stop()
    usual = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.asked = True
        signal.signal(signal.SIGINT, usual)

    try:
        signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread, where nobody presses Ctrl-C
        yield stop
        return
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, usual)


class _BetweenSteps(BaseCallback):
    """What happens between steps: checkpoints, exact evaluations, and the stop when asked to.

    A step that was stopped half way leaves no trace.
    """

    def __init__(self, folder: Path, config: Config, stop: _Stop) -> None:
        super().__init__()
        self._folder, self._run, self._env, self._stop = folder, config.run, config.env, stop
        self._exact_every = config.run.exact_every if exact.is_enumerable(config.env) else 0
        self._saved = -1

    def _on_training_start(self) -> None:
        self._saved = self._model.step  # new or resumed, there is a checkpoint of where it begins

    def _on_rollout_start(self) -> None:
        if self._model.step % self._run.checkpoint_every == 0:
            self._save()
        if self._exact_every and self._model.step % self._exact_every == 0:
            # In the row of the step that it comes before, which the next dump writes.
            self.logger.record("eval/share", exact.share(self._model.policy, self._env))

    def _on_step(self) -> bool:
        return not self._stop.asked

    def _on_training_end(self) -> None:
        self._save()

    @property
    def _model(self) -> LLMPPO:
        model: LLMPPO = self.model  # type: ignore[assignment]
        return model

    def _save(self) -> None:
        if self._saved == self._model.step:
            return
        checkpoint.save(self._model, self._folder)
        checkpoint.prune(self._folder, self._run.keep_checkpoints)
        self._saved = self._model.step


class _Display(KVWriter):
    """Passes each step's metrics on to the dashboard, with the text of the step's first game."""

    def __init__(self, dashboard: Dashboard, model: LLMPPO) -> None:
        self._dashboard, self._model = dashboard, model
        self._share: dict[str, float] = {}

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        metrics = {key: float(value) for key, value in key_values.items() if isinstance(value, int | float)}
        if "eval/share" in metrics:
            self._share["eval/share"] = metrics["eval/share"]  # shown until the next one
        episode = self._model.last_episode
        self._dashboard.update(self._share | metrics, episode.transcript() if episode is not None else None)

    def close(self) -> None:
        """Nothing to close: the dashboard is the caller's."""
