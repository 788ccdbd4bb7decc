"""Callbacks of a run: what happens between its steps, and what is shown of them."""

from __future__ import annotations

import dataclasses
import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from gamespiel import __version__
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.rollout import OnStep
from gamespiel.agents.runs import catalog, checkpoint
from gamespiel.agents.runs.card import Facts
from gamespiel.agents.runs.catalog import Best
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import SAVED_NAME, Config, card_facts, save
from gamespiel.environments.making import evaluation_config
from gamespiel.kinds import kind_of
from gamespiel.runs import METRICS, SHARE
from gamespiel.stopping import Stop, Stopped, name_of
from gamespiel.training.dashboard import Dashboard
from gamespiel.training.measures import measure_held_out
from task_gym.remote.loop import AbandonedWaitError


def save_first(config: Config, model: LLMPPO, folder: Path) -> Config:
    """Writes what a new run begins with: its first checkpoint, and its configuration, which is returned."""
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, output_dir=str(folder)))
    checkpoint.save(model, folder, Facts(__version__, card_facts(config)))
    save(config, folder / SAVED_NAME)
    return config


class _Stopping(Exception):
    """An evaluation that is given up, because the run is asked to stop."""


class BetweenSteps(BaseCallback):
    """Saves checkpoints and evaluates between steps, and stops the run when asked to.

    An interrupted step is discarded, and played again on resume. Of several ranks the first alone saves and
    evaluates, and each that is asked to stop tells the others. An update can go on for minutes after the
    signal, whose handler must not print. After SIGTERM it is given up when the time of grace is over.

    Args:
        folder: The run's folder.
        config: The run's configuration.
        stop: Whether the run is asked to stop.
        before: The measures before training, among them the exact values of step 0 if they are known.
        dashboard: Shows what is done.

    Attributes:
        saved: The step of the newest checkpoint.
        metrics: The newest step's metrics, for its checkpoint's card.
        best: The best evaluation while training.
        ended: Whether the run ends because its evaluations no longer get better.
    """

    def __init__(
        self, folder: Path, config: Config, stop: Stop, before: Mapping[str, Any], dashboard: Dashboard
    ) -> None:
        super().__init__()
        self._before, self._dashboard = before, dashboard
        self._folder, self._run, self._stop, self._config = folder, config.run, stop, config
        self.best, self.ended = Best(), False
        self._saved_at = time.monotonic()
        self._kind, self._measured_env = kind_of(config.env), evaluation_config(config).env
        self._itself = self._kind.plays_itself(config.env)
        self._facts = Facts(__version__, card_facts(config))
        self.saved, self.metrics = -1, dict[str, Any]()

    def show_activity(self, phase: str, done: int, total: int) -> None:
        """Shows how far a phase is, and says once that the run is stopping."""
        self.notice_stop()
        self._dashboard.activity(phase, done, total)

    def notice_stop(self) -> None:
        """Says once that the run is stopping.

        Raises:
            Stopped: its time of grace is over.
        """
        stop = self._stop
        if stop.number is None:
            return
        if not stop.told:
            stop.told = True
            once_more = "; Ctrl-C once more stops at once" if stop.number == signal.SIGINT else ""
            self._dashboard.message(f"{name_of(stop.number)}: stopping with a checkpoint{once_more}")
        if stop.late:
            self._dashboard.message(
                f"the step did not end within {stop.grace:g} s (run.grace_seconds): "
                f"the checkpoint is that of step {self.saved}"
            )
            raise Stopped(stop.number)

    def _on_training_start(self) -> None:
        self.saved = self._model.step  # new or resumed, a run begins at a checkpoint
        if self._run.eval_steps is not None and self._model.ranks.leads:
            metric, step = f"eval/{self._run.metric_for_best_model}", self._model.step
            self.best = Best.find_best(read_rows(self._folder / METRICS), metric, step)

    def _on_rollout_start(self) -> None:
        if self._model.ranks.leads:
            minutes = self._run.checkpoint_minutes
            is_old = minutes is not None and time.monotonic() - self._saved_at >= 60 * minutes
            if is_old or self._model.step % self._run.checkpoint_every == 0:
                self._save()
            with suppress(AbandonedWaitError):  # the step's collection is then given up, too
                self._measure()
        if self._run.early_stopping_patience is not None:
            self.ended = self._model.ranks.lead(lambda: self.ended)

    def _measure(self) -> None:
        every = self._run.exact_every
        if every and self._model.step % every == 0:
            # Logged with the next step's row: the value of the weights before that step.
            if not self._model.step and SHARE in self._before:  # these weights were solved before training
                share, exploitability = self._before[SHARE], self._before.get("exploitability", math.nan)
            else:
                adapters = self._model.publish_result()
                distribution = partial(self._model.policy.distribution, adapters=adapters)
                solved = self._kind.exact_game(self._measured_env).evaluate(distribution)
                share, exploitability = solved.share, solved.exploitability
            self.logger.record("eval/share", share)
            if self._itself:
                self.logger.record("eval/exploitability", exploitability)
        if self._run.eval_steps is not None and self._model.step % self._run.eval_steps == 0:
            self._evaluate()

    def _evaluate(self) -> None:
        """Logs an evaluation with the next step's row, keeps the best checkpoint, and may end the run."""
        try:
            values = measure_held_out(self._config, self._model, self._show_evaluation)
        except _Stopping:
            return
        for name, value in values.items():
            self.logger.record(name, value)
        metric, step = f"eval/{self._run.metric_for_best_model}", self._model.step
        if metric not in values:  # every episode was a fault
            return
        if self.best.add(step, values[metric]):
            self._save()
            catalog.mark_best(self._folder, step, metric, values[metric])
        patience = self._run.early_stopping_patience
        self.ended = patience is not None and self.best.since >= patience

    @contextmanager
    def _show_evaluation(self, episodes: int) -> Iterator[OnStep]:
        done = 0

        def on_step(over: bool, turns: int) -> None:
            nonlocal done
            done += over
            if self._stop.asked:
                raise _Stopping
            self._model.on_progress("episodes evaluated", done, episodes)

        yield on_step

    def _on_step(self) -> bool:
        if self._stop.asked:
            self._model.ranks.ask_stop()
        return not (self._stop.asked or self.ended or self._model.ranks.is_stop_asked)

    def _on_training_end(self) -> None:
        if self._model.ranks.leads:
            self._save()

    @property
    def _model(self) -> LLMPPO:
        model: LLMPPO = self.model  # type: ignore[assignment]
        return model

    def _save(self) -> None:
        if self.saved == self._model.step:
            return
        checkpoint.save(self._model, self._folder, dataclasses.replace(self._facts, metrics=self.metrics))
        checkpoint.prune(self._folder, self._run.keep_checkpoints)
        self.saved, self._saved_at = self._model.step, time.monotonic()


class DisplayWriter(KVWriter):
    """Passes each step's metrics to the dashboard, with the step's first episode, and to the callback."""

    def __init__(self, dashboard: Dashboard, model: LLMPPO, between: BetweenSteps) -> None:
        self._dashboard, self._model, self._between = dashboard, model, between
        self._solved: dict[str, float | str] = {}

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        metrics = {key: value for key, value in key_values.items() if isinstance(value, int | float | str)}
        self._solved |= {k: v for k, v in metrics.items() if k.startswith("eval/")}  # until the next
        self._between.metrics = metrics
        episode = self._model.last_episode
        self._dashboard.update(self._solved | metrics, episode.transcript() if episode is not None else None)

    def close(self) -> None:
        """Does nothing: the caller closes the dashboard."""
