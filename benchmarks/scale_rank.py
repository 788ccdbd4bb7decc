"""One rank's part of ``benchmarks.scale``: ``torchrun … -m benchmarks.scale_rank FILE SETTINGS``.

SETTINGS are JSON, a list of runs. Each has a preset, the keys that are changed in it, and whether exact
values are asked for at its end. The first rank writes each run's figures and share of best response to FILE.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from gamespiel.agents.launch import read_launch
from gamespiel.agents.ppo import LLMPPO
from gamespiel.assembly import make_algorithm
from gamespiel.config import Config, resolve
from gamespiel.environments import evaluation_config
from gamespiel.kinds import kind_of
from gamespiel.launching import divide_threads, joining


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


def solve(model: LLMPPO, config: Config) -> float:
    """Returns the exact share of best response of what was learned."""
    adapters = model.publish_result()
    game = kind_of(config.env).player.exact_game(evaluation_config(config).env)
    return float(game.solve(model.policy, adapters=adapters).share)


def learn(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of one run, the steps' by rank."""
    config, launch = resolve(settings["preset"], overrides=settings["changes"].items()), read_launch()
    divide_threads(config, launch)
    with joining(config, launch) as ranks:
        model, clock = make_algorithm(config, ranks=ranks), Clock()
        model.set_logger(Logger(None, []))
        model.learn(callback=clock, log_interval=None)
        return {
            "steps": ranks.gather(clock.steps),
            "share": ranks.lead(lambda: solve(model, config)) if settings["solve"] else None,
            "decisions": model.num_timesteps,
            "gradients": sum(parameter.numel() for parameter in model.policy.trainable_parameters()),
        }


def play() -> None:
    found = [learn(settings) for settings in json.loads(sys.argv[2])]
    if read_launch().leads:
        Path(sys.argv[1]).write_text(json.dumps(found))


if __name__ == "__main__":
    play()
