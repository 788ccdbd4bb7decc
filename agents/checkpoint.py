"""Checkpoints: everything that a run needs to continue as if it had never stopped.

A checkpoint is a folder ``checkpoints/step-N`` of the run, written whole or not at all:

- ``adapter/``: the adapters in PEFT's own format, for anything that reads PEFT,
- ``value_head.safetensors``: the critic,
- ``optimizer.pt``: AdamW's state,
- ``state.json``: counters, the KL coefficient, and the base model.

There is no generator to save: every random number is addressed by seed, step, episode and turn
(``gamespiel.agents.noise``).
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gamespiel.agents.models import TINY
from gamespiel.agents.policy import LLMPolicy
from task_gym.errors import TaskGymError

if TYPE_CHECKING:
    from gamespiel.agents.ppo import LLMPPO

FOLDER = "checkpoints"
UNREADABLE = (OSError, EOFError, KeyError, RuntimeError, ValueError, SafetensorError, pickle.UnpicklingError)
"""Exceptions from reading a file that is missing, torn or of another model."""
_NAME = re.compile(r"step-(\d+)")


class CheckpointError(TaskGymError):
    """A folder without a checkpoint, or with one of another model."""


def save(model: LLMPPO, run: Path) -> Path:
    """Writes the state between two steps into the run's folder; returns the checkpoint's folder."""
    target = run / FOLDER / f"step-{model.step:06d}"
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # Without the flag, PEFT asks the model hub whether the vocabulary was resized.
    model.policy.model.save_pretrained(str(partial / "adapter"), save_embedding_layers=False)
    save_file(model.policy.value_head.state_dict(), partial / "value_head.safetensors")
    torch.save(model.policy.optimizer.state_dict(), partial / "optimizer.pt")
    state = {
        "step": model.step,
        "num_timesteps": model.num_timesteps,
        "n_updates": model._n_updates,
        "kl_coefficient": model.kl.coefficient,
        "seconds": model.seconds,
        "base": _base(model.policy),
    }
    (partial / "state.json").write_text(json.dumps(state, indent=2) + "\n")
    shutil.rmtree(target, ignore_errors=True)  # a step that was resumed with other settings
    os.replace(partial, target)
    return target


def find(run: Path) -> Path:
    """Returns the checkpoint at a path, made absolute, or the newest one if the path is a run's folder.

    Raises:
        CheckpointError: there is none.
    """
    if (run / "state.json").is_file():
        return run.resolve()
    kept = checkpoints(run)
    if not kept:
        raise CheckpointError(
            f"checkpoint: {str(run)!r} was given, which holds none; allowed: a run's folder with "
            f"{FOLDER}/step-N in it, or such a folder itself"
        )
    return kept[-1]


def checkpoints(run: Path) -> list[Path]:
    """Returns a run's checkpoints, oldest first, without partial ones."""
    found = [path for path in (run / FOLDER).glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def prune(run: Path, keep: int) -> None:
    """Removes all but the newest ``keep`` checkpoints.

    Each vanishes in one move, so whoever reads it meanwhile never finds half of it.
    """
    for old in checkpoints(run)[:-keep]:
        os.replace(old, old.with_name(f".{old.name}.removed"))
    for removed in (run / FOLDER).glob(".step-*.removed"):
        shutil.rmtree(removed)


def load_policy(policy: LLMPolicy, checkpoint: Path) -> None:
    """Loads a checkpoint's adapters and value head into a policy of the same model and LoRA settings.

    Raises:
        CheckpointError: a file is missing or torn, or was made for another model.
    """
    try:
        trained_on = json.loads((checkpoint / "state.json").read_text())["base"]
        if trained_on != _base(policy):
            raise ValueError(f"it was trained on {trained_on}, this policy is {_base(policy)}")
        adapters = load_file(checkpoint / "adapter" / "adapter_model.safetensors")
        head = load_file(checkpoint / "value_head.safetensors")
        policy.load_state_dict(
            {f"adapter.{k}": v for k, v in adapters.items()} | {f"value_head.{k}": v for k, v in head.items()}
        )
    except UNREADABLE as error:
        raise CheckpointError(f"checkpoint: {str(checkpoint)!r} does not fit this policy: {error}") from error


def load_newest(policy: LLMPolicy, run: Path) -> Path:
    """Loads the checkpoint that ``find`` returns, and returns it.

    A run that is training removes old checkpoints: one that vanishes is looked for again.

    Raises:
        CheckpointError: as ``find`` and ``load_policy``.
    """
    while True:
        found = find(run)
        try:
            load_policy(policy, found)
            return found
        except CheckpointError:
            if found.exists():
                raise


def _base(policy: LLMPolicy) -> dict[str, Any]:
    """Returns the base model and the adapters' scale, without which adapters mean nothing.

    Random weights are identified by their seed. The embedded model is identified by its content, since new
    builds of it keep its name.
    """
    settings = policy.model_settings
    drawn: dict[str, Any] = {}
    if settings.random_weights:
        drawn = {"random_weights": True, "seed": policy.seed}
    elif settings.model_name == "tiny":
        drawn = {"sha256": hashlib.sha256((TINY / "model.safetensors").read_bytes()).hexdigest()[:16]}
    lora = {"r": policy.lora_settings.r, "lora_alpha": policy.lora_settings.lora_alpha}
    return {"model_name": settings.model_name, **drawn, **lora}


def load(model: LLMPPO, checkpoint: Path) -> None:
    """Loads a checkpoint to continue from: weights, optimizer, counters and KL coefficient.

    Raises:
        CheckpointError: as ``load_policy`` does.
    """
    load_policy(model.policy, checkpoint)
    try:
        state: dict[str, Any] = json.loads((checkpoint / "state.json").read_text())
        moments = torch.load(checkpoint / "optimizer.pt", map_location="cpu", weights_only=True)
        scales = [group["lr_scale"] for group in model.policy.optimizer.param_groups]
        model.policy.optimizer.load_state_dict(moments)
        for group, scale in zip(model.policy.optimizer.param_groups, scales, strict=True):
            group["lr_scale"] = scale  # a setting, not a state: the resumed run may have another one
    except UNREADABLE as error:
        raise CheckpointError(f"checkpoint: {str(checkpoint)!r} cannot be continued: {error}") from error
    model.step, model.num_timesteps = state["step"], state["num_timesteps"]
    model._n_updates, model.seconds = state["n_updates"], state["seconds"]
    if model.kl.horizon is not None:  # without a horizon the coefficient is a setting
        model.kl.coefficient = state["kl_coefficient"]


def require_newest(checkpoint: Path) -> None:
    """Raises unless the checkpoint is its run's newest: later ones, and their metrics, would be lost.

    Raises:
        CheckpointError: the run has later checkpoints.
    """
    newest = checkpoints(checkpoint.parent.parent)[-1:]
    if newest and newest[0].name != checkpoint.name:
        raise CheckpointError(
            f"checkpoint: {str(checkpoint)!r} was given, but {newest[0].name} lies beside it and would be "
            "overtaken; resume from that one, or move the later ones away first"
        )
