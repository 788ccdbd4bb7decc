"""The progress bar of ``learn(progress_bar=True)``."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback, ProgressBarCallback
from stable_baselines3.common.type_aliases import MaybeCallback


def list_callbacks(callback: MaybeCallback) -> list[Any]:
    """Returns callbacks as a list, whatever form ``learn`` was given them in."""
    if isinstance(callback, list):
        return callback
    if callback is None or isinstance(callback, BaseCallback):
        return [] if callback is None else [callback]
    return [ConvertCallback(callback)]


class ProgressBar(ProgressBarCallback):
    """Counts decisions, or steps if that is how ``learn`` was told when to end.

    Stable-Baselines3's own counts an environment's step per environment, also of those that are over.
    """

    def __init__(self, by_steps: bool) -> None:
        super().__init__()
        self._by_steps = by_steps

    @property
    def _done(self) -> int:
        model: Any = self.model
        return int(model.step if self._by_steps else model.num_timesteps)

    def _on_training_start(self) -> None:
        model: Any = self.model
        self._begun = self._done
        if self._by_steps:
            left = model.total_steps - model.step
            self.locals = {**self.locals, "total_timesteps": left + model.num_timesteps}
        super()._on_training_start()

    def _on_rollout_start(self) -> None:
        self._on_step()

    def _on_step(self) -> bool:
        self.pbar.update(self._done - self._begun - self.pbar.n)
        return True

    def _on_training_end(self) -> None:
        self._on_step()
        super()._on_training_end()
