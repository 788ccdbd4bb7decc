"""A process's place among those that ``torchrun`` started, from its environment. This needs no PyTorch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from task_gym.errors import ArgumentError


@dataclass(frozen=True)
class Launch:
    """The place of this process among those that were started together.

    Attributes:
        rank: Its number among all.
        size: How many there are.
        local_rank: Its number among those of this machine.
        local_size: How many those are.
        restarts: How often all of them have been started again.
        run_id: The launcher's name of the start.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    restarts: int = 0
    run_id: str = ""

    @property
    def leads(self) -> bool:
        """Returns whether this is the process that writes files and shows the run."""
        return self.rank == 0


_NAMES = {
    "rank": "RANK",
    "size": "WORLD_SIZE",
    "local_rank": "LOCAL_RANK",
    "local_size": "LOCAL_WORLD_SIZE",
    "restarts": "TORCHELASTIC_RESTART_COUNT",
}


def read_launch(environ: Mapping[str, str] | None = None) -> Launch:
    """Returns what the launcher says; one process alone without ``torchrun``.

    Other launchers set variables of some of these names, so only those that ``torchrun`` started count.

    Raises:
        ArgumentError: a variable is missing, or is no number.
    """
    variables = os.environ if environ is None else environ
    if "TORCHELASTIC_RUN_ID" not in variables:
        return Launch()
    numbers: dict[str, int] = {}
    for field, name in _NAMES.items():
        text = variables.get(name)
        if text is None or not text.isdecimal():
            raise ArgumentError(
                f"{name}: {text!r} is in the environment, allowed: a number, as torchrun sets it"
            )
        numbers[field] = int(text)
    return Launch(run_id=variables["TORCHELASTIC_RUN_ID"], **numbers)
