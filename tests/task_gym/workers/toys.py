"""Small environments that end, stop or refuse at a chosen moment, for the tests of workers."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from task_gym.spaces import UnicodeText


class Walk(gym.Env[str, int]):
    """Three to five turns. A turn shows seed, options, actions and a number that the seed draws.

    Args:
        trap: A file. The first step of seed 5 after two actions removes it, and does as its content says:
            "kill" ends the process, "hang" never ends, "exit" ends the process whenever it comes there.
    """

    observation_space = UnicodeText(500)
    action_space = gym.spaces.Discrete(4)
    resets = 0
    steps = 0

    def __init__(self, trap: Path | None = None) -> None:
        self.trap = trap

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        self.seat, self.options = int(self.np_random.integers(2)), options
        self.seed, self.length = seed, 3 + int(self.np_random.integers(3))
        self.played: list[int] = []
        return self._text(), {"seat": self.seat, "pid": os.getpid()}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == 3:
            raise ValueError(f"action 3 after {self.played}")
        if self.seed == 5 and len(self.played) == 2 and self.trap is not None:
            self._fall()
        self.steps += 1
        self.played.append(int(action))
        over = len(self.played) == self.length
        return self._text(), float(sum(self.played) * over), over, False, {"pid": os.getpid()}

    def _text(self) -> str:
        return f"{self.seed} {self.options} {self.played} of {self.length}: {self.np_random.integers(1000)}"

    def _fall(self) -> None:
        assert self.trap is not None
        with suppress(FileNotFoundError):
            how = self.trap.read_text()
            if how != "exit":
                self.trap.unlink()
            if how == "hang":
                time.sleep(3000)
            os.kill(os.getpid(), signal.SIGKILL)

    def action_masks(self) -> np.ndarray[Any, Any]:
        return np.arange(4) < 3
