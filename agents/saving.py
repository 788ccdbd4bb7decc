"""The archive that ``LLMPPO.save`` writes and ``LLMPPO.load`` reads, without pickles."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from gamespiel.agents.archive import (
    PLAIN,
    Archive,
    ArchiveError,
    Place,
    Tensors,
    describe_space,
    make_space,
    write_archive,
)
from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Shaped
from gamespiel.agents.learning.divergence import Backoff
from gamespiel.agents.learning.snapshots import Member, Snapshot
from gamespiel.agents.models.optimizer import join_state, split_state
from gamespiel.agents.policy import LLMPolicy
from task_gym.errors import ArgumentError, unknown

Model = Any
"""An ``LLMPPO``, whose module imports this one."""

KIND = "LLMPPO"

_COUNTERS = (
    "step", "seconds", "num_timesteps", "_n_updates", "_episode_num", "_total_timesteps",
    "_num_timesteps_at_start", "_current_progress_remaining", "start_time",
)  # fmt: skip

_PLAIN_ARGUMENTS = ("total_steps", "policy_kwargs", "seed", "verbose", "tensorboard_log")

_GIVEN = {*_PLAIN_ARGUMENTS, "learning_rate", "ent_coef", "kl", "policy_class", "self_play", "starts"}
"""Arguments of ``load`` that replace saved values, beside attributes."""

_SCHEDULES = {"Shaped": Shaped, "LinearSchedule": LinearSchedule, "ConstantSchedule": ConstantSchedule}


def write_model(model: Model, path: Place) -> None:
    """Writes a learner: settings, counters, weights, the optimizer's state and snapshots.

    Raises:
        ArgumentError: a setting is neither a number, a text nor made of them.
    """
    moments, groups = split_state(model.policy.optimizer.state_dict())
    snapshots, described = _take_snapshots(model)
    policy = model.policy_class
    data = {
        "policy_class": None if policy is LLMPolicy else f"{policy.__module__}.{policy.__qualname__}",
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
        "n_envs": model.n_envs,
        "hyperparameters": dataclasses.asdict(model.hyperparameters),
        "learning_rate": _describe_schedule(model.learning_rate),
        "ent_coef": _describe_schedule(model.entropy_schedule),
        "self_play": model.self_play and dataclasses.asdict(model.self_play.settings),
        "kl": dataclasses.asdict(model.kl) if type(model.kl) is AdaptiveKLController else repr(model.kl),
        "total_steps": model.total_steps,
        "policy_kwargs": _plain(model.policy_kwargs),
        "seed": model.seed,
        "verbose": model.verbose,
        "tensorboard_log": model.tensorboard_log and str(model.tensorboard_log),
        "counters": {name: getattr(model, name) for name in _COUNTERS},
        **describe_adaptation(model),
        "episodes": _describe_episodes(model),
        "optimizer": groups,
        "snapshots": described,
    }
    tensors: dict[str, Tensors] = {
        "policy": model.policy.state_dict(),
        "policy.optimizer": moments,
        **snapshots,
    }
    write_archive(path, KIND, data, tensors, suffix="zip")


def parameters_of(archive: Archive) -> dict[str, Any]:
    """Returns an archive's weights and optimizer state, as ``get_parameters`` returns them."""
    return {
        "policy": archive.tensors["policy"],
        "policy.optimizer": join_state(archive.tensors["policy.optimizer"], archive.data["optimizer"]),
    }


def make_model(
    cls: type[Model], archive: Archive, env: Any, device: torch.device | str, given: Mapping[str, Any]
) -> Model:
    """Returns the learner of an archive.

    Args:
        cls: The class to make.
        archive: What was read.
        env: The environments, or None for a learner that only predicts.
        device: Its device.
        given: Constructor's arguments and attributes to take in the place of what was written.

    Raises:
        ArchiveError: the archive is damaged.
        ArgumentError: something was written by its name only, and is not given; or is given and unknown.
    """
    data, given = archive.data, dict(given)
    try:
        arguments = _arguments_of(data, given)
        model = cls(env=None, device=device, _init_setup_model=False, **arguments)
        model.observation_space = make_space(data["observation_space"])
        model.action_space = make_space(data["action_space"])
        model.n_envs = data["n_envs"]
        if env is not None:
            model.set_env(env)
        model._setup_model()
        for name, value in given.items():
            if not hasattr(model, name):
                raise ArgumentError(unknown("argument of load", name, sorted(_GIVEN)))
            setattr(model, name, value)
        model.set_parameters(parameters_of(archive), exact_match=True, device=device)
        _restore(model, archive)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArchiveError(f"load: the archive does not have what {cls.__name__} needs: {error!r}") from error
    return model


def _arguments_of(data: Mapping[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Returns the constructor's arguments, and takes those that are given out of ``given``."""
    if data["policy_class"] is not None and not given.get("policy_class"):
        raise ArgumentError(_ask_for("policy_class", data["policy_class"]))
    arguments: dict[str, Any] = {
        "policy": given.pop("policy_class", None) or LLMPolicy,
        "hyperparameters": Hyperparameters(**data["hyperparameters"]),
        "self_play": data["self_play"] and SelfPlaySettings(**data["self_play"]),
        **{name: data[name] for name in _PLAIN_ARGUMENTS},
        "starts": None,
    }
    if "policy_kwargs" in given and _plain(given["policy_kwargs"]) != data["policy_kwargs"]:
        raise ArgumentError(
            f"load: policy_kwargs={given['policy_kwargs']} was given, allowed: the saved model's own, "
            f"{data['policy_kwargs']}"
        )
    makers = {"learning_rate": _make_schedule, "ent_coef": _make_schedule, "kl": _make_kl}
    arguments |= {name: make(name, data[name]) for name, make in makers.items() if name not in given}
    return arguments | {name: given.pop(name) for name in {*arguments, *makers} & given.keys()}


def _restore(model: Model, archive: Archive) -> None:
    """Restores counters and snapshots."""
    data = archive.data
    for name in _COUNTERS:
        setattr(model, name, data["counters"][name])
    restore_adaptation(model, data)
    if data["episodes"] is not None:
        size = model._stats_window_size
        model.ep_info_buffer = deque(data["episodes"]["infos"], maxlen=size)
        model.ep_success_buffer = deque(data["episodes"]["successes"], maxlen=size)
    for name, kept in data["snapshots"].items():
        snapshot = Snapshot(kept["step"], archive.tensors[name])
        if name == "magnet" and model.magnet is not None:
            model.magnet.snapshot = snapshot
        elif name == "average" and model.average is not None:
            model.average.snapshot = snapshot
        elif model.self_play is not None and model.self_play.pool is not None:
            model.self_play.pool.members.append(Member(snapshot, kept["games"], kept["win_rate"]))


def describe_adaptation(model: Model) -> dict[str, Any]:
    """Returns, as JSON has it, what a learner has changed about how it works: no weights and no counters."""
    return {
        "parts": model.parts,
        "skipped_in_a_row": model.skipped.in_a_row,
        "backoff": dataclasses.asdict(model.backoff),
        "tokens": model.policy.budgets.state_dict(),
    }


def restore_adaptation(model: Model, state: Mapping[str, Any]) -> None:
    """Puts in force what ``describe_adaptation`` returned."""
    model.parts = state["parts"] or model.parts
    model.skipped.in_a_row = state["skipped_in_a_row"]
    model.backoff = Backoff(**state["backoff"])
    model.policy.budgets.load_state_dict(state["tokens"])


def pool_members(model: Model) -> list[Member]:
    """Returns the snapshots of self-play's pool; none without one."""
    pool = None if model.self_play is None else model.self_play.pool
    return [] if pool is None else pool.members


def _take_snapshots(model: Model) -> tuple[dict[str, Tensors], dict[str, dict[str, Any]]]:
    """Returns the tensors of all snapshots and what belongs to them, by name, the pool's in its order."""
    found: dict[str, tuple[Snapshot, dict[str, Any]]] = {}
    for name, holder in (("magnet", model.magnet), ("average", model.average)):
        if holder is not None and holder.snapshot is not None:
            found[name] = (holder.snapshot, {})
    for member in pool_members(model):
        found[member.name] = (member.snapshot, {"games": member.games, "win_rate": member.win_rate})
    return (
        {name: snapshot.adapters for name, (snapshot, _) in found.items()},
        {name: {"step": snapshot.step, **more} for name, (snapshot, more) in found.items()},
    )


def _describe_schedule(given: Any) -> Any:
    """Returns a number or a known schedule as JSON takes it; of any other function only its name."""
    while isinstance(given, FloatSchedule):
        given = given.value_schedule
    for name, known in _SCHEDULES.items():
        if type(given) is known:
            return {"type": name, **vars(given)}
    return {"type": "function", "name": repr(given)} if callable(given) else float(given)


def _make_schedule(argument: str, described: Any) -> Any:
    if not isinstance(described, dict):
        return described
    arguments = dict(described)
    kind = arguments.pop("type")
    if kind == "function":
        raise ArgumentError(_ask_for(argument, described["name"]))
    return _SCHEDULES[kind](**arguments)


def _make_kl(argument: str, described: Any) -> AdaptiveKLController:
    if isinstance(described, str):
        raise ArgumentError(_ask_for(argument, described))
    return AdaptiveKLController(**described)


def _ask_for(argument: str, name: str) -> str:
    """Returns the error of code, of which an archive has only the name."""
    return (
        f"load: the model was saved with {argument} {name}, which is code, and an archive has none: give it "
        f"again, as load(path, {argument}=...)"
    )


def _describe_episodes(model: Model) -> dict[str, Any] | None:
    """Returns the last episodes' rewards and lengths, of which Stable-Baselines3 logs means."""
    if model.ep_info_buffer is None or model.ep_success_buffer is None:
        return None
    kept = ("r", "l", "t")
    return {
        "infos": [{key: float(info[key]) for key in kept if key in info} for info in model.ep_info_buffer],
        "successes": [float(success) for success in model.ep_success_buffer],
    }


def _plain(value: Any) -> Any:
    """Returns settings as JSON has them: mappings for data classes, lists for tuples."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Path):
        return str(value)
    try:
        json.dumps(value)
    except TypeError as error:
        raise ArgumentError(f"save: policy_kwargs has {value!r:.80}, allowed: settings, {PLAIN}") from error
    return value
