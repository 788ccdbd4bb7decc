"""The check that the trainer's packages are installed."""

from __future__ import annotations

from importlib.util import find_spec

from task_gym.errors import MissingPackageError

TRAINER = ("torch", "transformers", "peft", "stable_baselines3", "sb3_contrib", "matplotlib", "filelock")
"""Import names of packages of the extra "train". The others of that extra come with these."""


def check_trainer(what: str) -> None:
    """Raises if a package of the trainer is not installed.

    Args:
        what: The command or function that needs the packages, for the message.

    Raises:
        MissingPackageError: the message names the packages and the pip command.
    """
    missing = [name for name in TRAINER if find_spec(name) is None]
    if missing:
        *others, last = missing
        named = f"the packages {', '.join(others)} and {last} are" if others else f"the package {last} is"
        raise MissingPackageError(f"{what}: {named} not installed; pip install 'gamespiel[train]'")
