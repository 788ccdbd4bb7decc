"""The agents that are measured: baselines, models behind endpoints, checkpoints and untrained models."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from rich.console import Console

from gamespiel.agents.models.weights import describe_model
from gamespiel.agents.runs import catalog, manifest
from gamespiel.config import Config, InvalidValueError, saved_config
from gamespiel.endpoints import PREFIX
from gamespiel.environments.making import make_one_env
from task_gym.errors import nearest, quote

if TYPE_CHECKING:  # baselines are measured without a learning library
    from gamespiel.agents.policy import LLMPolicy

UNTRAINED = "model:"
"""The prefix of an untrained model's name; the name of a preset follows."""


@dataclass(frozen=True)
class Agent:
    """One agent of a comparison or a board.

    Attributes:
        name: Its name in the results.
        spec: What it is: a baseline, an endpoint, a run or an untrained model.
        config: The configuration with which it plays: the common tasks, and of a model how it is asked. A
            board's baselines and endpoints need none.
        checkpoint: The checkpoint of its weights; None for others.
    """

    name: str
    spec: str
    config: Any = None
    checkpoint: Path | None = None

    @property
    def kind(self) -> str:
        """The kind: "checkpoint", "endpoint", "model" (untrained) or "baseline"."""
        if self.checkpoint is not None:
            return "checkpoint"
        prefixes = {PREFIX: "endpoint", UNTRAINED: "model"}
        return next((kind for prefix, kind in prefixes.items() if self.spec.startswith(prefix)), "baseline")

    def identify(self) -> dict[str, Any]:
        """Returns what identifies its weights: of a checkpoint its name and the digest of its files."""
        if self.checkpoint is None:
            return {}
        return {"checkpoint": self.checkpoint.name, "sha256": digest_checkpoint(self.checkpoint)}


def find_checkpoint(option: str, name: str, others: str, near: Sequence[str]) -> Path:
    """Returns the checkpoint that a name means.

    Args:
        option: The option with which it was given, for the error.
        name: RUN, RUN@STEP or RUN@best.
        others: What else would have been allowed.
        near: Names of which the nearest is shown.

    Raises:
        InvalidValueError: there is no such run.
    """
    place = catalog.read_place(name)
    if not place.exists():
        raise InvalidValueError(
            f"{option} {quote(name)}: there is no such run, and no such agent; allowed: RUN, RUN@STEP, "
            f"RUN@best, {others}{nearest(name, near)}"
        )
    return catalog.find(place)


def digest_checkpoint(checkpoint: Path) -> str:
    """Returns the digest of a checkpoint's manifest, which has those of its files.

    Raises:
        CheckpointError: it has none, or not one of each file that makes the policy.
    """
    try:
        return manifest.digest_manifest(checkpoint)
    except manifest.ManifestError as error:
        raise catalog.CheckpointError(f"checkpoint: {str(checkpoint)!r}: {error}") from error


def load_policy(
    config: Config, place: Path | None, console: Console, env: gym.Env[Any, Any] | None = None
) -> tuple[LLMPolicy, str | None]:
    """Returns the policy of a checkpoint or of the untrained model, and the checkpoint's name.

    The policy samples where the configuration says.

    Args:
        config: The configuration with which it plays.
        place: A run, whose newest checkpoint is loaded, or a checkpoint; None for the untrained model.
        console: Says what is loaded.
        env: The environment that it plays; None for one that is made, and closed.
    """
    import torch

    from gamespiel.agents.models import NEWEST
    from gamespiel.agents.runs import checkpoint
    from gamespiel.assembly import connect_sampler, make_policy

    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    run, weights = config.run, ""
    if place is not None:
        checkpoint.find(place)  # before the model is loaded, which can take minutes
        weights = f" with {place}"
        # --seed is the games'; random base weights are still those of the run's own seed.
        run = dataclasses.replace(run, seed=saved_config(place).run.seed)
    console.print(f"loading {describe_model(config.model.model_name)}{weights}", soft_wrap=True, markup=False)
    played = make_one_env(config.env) if env is None else env
    policy = make_policy(dataclasses.replace(config, run=run), played)
    if env is None:
        played.close()
    name = None if place is None else checkpoint.load_newest(policy, place).name
    connect_sampler(config, policy)
    policy.sampler.publish(NEWEST, policy.adapters.learning)
    return policy, name
