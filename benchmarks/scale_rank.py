"""One rank's part of ``benchmarks.scale``: ``torchrun … -m benchmarks.scale_rank FILE PRESET STEPS``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from gamespiel.agents.launch import read_launch
from gamespiel.assembly import make_algorithm
from gamespiel.config import resolve
from gamespiel.training.launching import divide_threads, joining


class Clock(BaseCallback):
    """Notes, per step, this rank's seconds: of the clock, of the processor, and of exchanges."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, float]] = []
        self._begun: tuple[float, float] | None = None

    def _on_rollout_start(self) -> None:
        self._note()
        self._begun = time.perf_counter(), time.process_time()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._note()

    def _note(self) -> None:
        if self._begun is None:
            return
        named = {
            key.partition("/")[2]: float(value)
            for key, value in self.logger.name_to_value.items()
            if key.startswith("time/") and key.endswith("_seconds")
        }
        seconds, busy = time.perf_counter() - self._begun[0], time.process_time() - self._begun[1]
        self.steps.append({"seconds": seconds, "cpu_seconds": busy, **named})
        self.logger.name_to_value.clear()


def train(path: Path, preset: str, steps: int) -> None:
    """Trains as one of the ranks; the first writes the steps of all."""
    changes = {
        "run.device": "cpu", "run.num_threads": "1", "run.seed": "0", "ppo.num_train_steps": str(steps)
    }  # fmt: skip
    config, launch = resolve(preset, overrides=changes.items()), read_launch()
    divide_threads(config, launch)
    with joining(config, launch) as ranks:
        model, clock = make_algorithm(config, ranks=ranks), Clock()
        model.set_logger(Logger(None, []))
        model.learn(callback=clock, log_interval=None)
        record = {
            "steps": ranks.gather(clock.steps),
            "decisions": model.num_timesteps,
            "gradients": sum(parameter.numel() for parameter in model.policy.trainable_parameters()),
        }
    if launch.leads:
        path.write_text(json.dumps(record))


if __name__ == "__main__":
    train(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
