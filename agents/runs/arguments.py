"""The constructor's arguments of a learner as JSON: with a checkpoint, all that ``LLMPPO.load`` needs.

Code is not written. A function, a controller or a class of somebody's own is there by its name, and must be
given again.
"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings
from gamespiel.agents.learning.coefficients import AdaptiveKLController, Shaped
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs.catalog import CheckpointError
from task_gym.errors import ArgumentError, TaskGymError, explain_unknown
from task_gym.spaces import UnicodeText

Model = Any
"""An ``LLMPPO``, whose module is above this one."""

_PLAIN = ("total_steps", "policy_kwargs", "seed", "verbose", "tensorboard_log")

_OVERRIDES = {*_PLAIN, "learning_rate", "ent_coef", "kl", "policy_class", "self_play", "starts"}
"""Arguments of ``load`` that replace saved values, beside attributes."""

_SCHEDULES = {"Shaped": Shaped, "LinearSchedule": LinearSchedule, "ConstantSchedule": ConstantSchedule}


def describe_arguments(model: Model) -> dict[str, Any]:
    """Returns what a learner was made with.

    Raises:
        ArgumentError: a setting is neither a number, a text nor made of them.
    """
    policy = model.policy_class
    return {
        "policy_class": None if policy is LLMPolicy else f"{policy.__module__}.{policy.__qualname__}",
        "observation_space": describe_space(model.observation_space),
        "action_space": describe_space(model.action_space),
        "n_envs": model.n_envs,
        "hyperparameters": dataclasses.asdict(model.hyperparameters),
        "learning_rate": _describe_schedule(model.learning_rate),
        "ent_coef": _describe_schedule(model.entropy_schedule),
        "self_play": model.self_play and dataclasses.asdict(model.self_play.settings),
        "kl": dataclasses.asdict(model.kl) if type(model.kl) is AdaptiveKLController else repr(model.kl),
        **{name: _to_plain(name, getattr(model, name)) for name in _PLAIN},
        "system": describe_system(),
    }


def make_model(
    cls: type[Model],
    data: Mapping[str, Any],
    env: Any,
    device: torch.device | str,
    overrides: Mapping[str, Any],
) -> Model:
    """Returns a learner with new weights.

    Args:
        cls: The class to make.
        data: What ``describe_arguments`` returned, or what a stranger's file has.
        env: The environments, or None for a learner that only predicts.
        device: Its device.
        overrides: Constructor's arguments and attributes to take in the place of what was written.

    Raises:
        CheckpointError: the data lack something, or have something of another type.
        ArgumentError: something was written by its name only, and is not given; or is given and unknown.
    """
    overrides = dict(overrides)
    with _explain_errors(cls):
        model = cls(env=None, device=device, _init_setup_model=False, **_list_arguments(data, overrides))
        model.observation_space = make_space(data["observation_space"])
        model.action_space = make_space(data["action_space"])
        model.n_envs = data["n_envs"]
    if env is not None:
        model.set_env(env)
    with _explain_errors(cls):
        model._setup_model()
    for name, value in overrides.items():
        if not hasattr(model, name):
            raise ArgumentError(explain_unknown("argument of load", name, sorted(_OVERRIDES)))
        setattr(model, name, value)
    return model


@contextmanager
def _explain_errors(cls: type[Model]) -> Iterator[None]:
    """Turns errors of a stranger's arguments, or of those that replace them, into CheckpointError."""
    try:
        yield
    except TaskGymError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        said = f"load: {cls.__name__} takes no such arguments, saved or given: {error!r:.300}"
        raise CheckpointError(said) from error


def _list_arguments(data: Mapping[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Returns the constructor's arguments, and takes them out of ``overrides``."""
    if data["policy_class"] is not None and not overrides.get("policy_class"):
        raise ArgumentError(_ask_for("policy_class", data["policy_class"]))
    arguments: dict[str, Any] = {
        "policy": overrides.pop("policy_class", None) or LLMPolicy,
        "hyperparameters": Hyperparameters(**data["hyperparameters"]),
        "self_play": data["self_play"] and SelfPlaySettings(**data["self_play"]),
        **{name: data[name] for name in _PLAIN},
        "starts": None,
    }
    kwargs = _to_plain("policy_kwargs", overrides.get("policy_kwargs"))
    if "policy_kwargs" in overrides and kwargs != data["policy_kwargs"]:
        raise ArgumentError(
            f"load: policy_kwargs={overrides['policy_kwargs']} was given, allowed: the saved model's own, "
            f"{data['policy_kwargs']}"
        )
    makers = {"learning_rate": _make_schedule, "ent_coef": _make_schedule, "kl": _make_kl}
    arguments |= {name: make(name, data[name]) for name, make in makers.items() if name not in overrides}
    return arguments | {name: overrides.pop(name) for name in {*arguments, *makers} & overrides.keys()}


def describe_system() -> str:
    """Returns the operating system and the versions of Python and PyTorch, in a line."""
    return f"{platform.platform()}; Python {platform.python_version()}; PyTorch {torch.__version__}"


def _describe_schedule(schedule: Any) -> Any:
    """Returns a number or a known schedule as JSON takes it; of any other function only its name."""
    while isinstance(schedule, FloatSchedule):
        schedule = schedule.value_schedule
    for name, known in _SCHEDULES.items():
        if type(schedule) is known:
            return {"type": name, **vars(schedule)}
    return {"type": "function", "name": repr(schedule)} if callable(schedule) else float(schedule)


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
    """Returns the error of code that was written by its name."""
    return (
        f"load: the model was saved with {argument} {name}, which is code and not kept: give it again, as "
        f"load(path, {argument}=...)"
    )


def _to_plain(name: str, value: Any) -> Any:
    """Returns a setting as JSON has it: mappings for data classes, lists for tuples."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _to_plain(name, dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _to_plain(name, one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(name, one) for one in value]
    if isinstance(value, Path):
        return str(value)
    value = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(value)
    except TypeError as error:
        raise ArgumentError(
            f"save: {name} has {value!r:.80}, allowed: settings, numbers, texts, lists and mappings"
        ) from error
    return value


# -- spaces --------------------------------------------------------------------------------------------------


def describe_space(space: spaces.Space[Any]) -> dict[str, Any]:
    """Returns a space that a policy takes, as JSON has it.

    Raises:
        ArgumentError: it is another one.
    """
    if isinstance(space, UnicodeText):
        return {"type": "UnicodeText", "max_length": space.max_length, "min_length": space.min_length}
    if isinstance(space, spaces.Text):
        bounds = {"max_length": space.max_length, "min_length": space.min_length}
        return {"type": "Text", **bounds, "charset": space.characters}
    if isinstance(space, spaces.Discrete):
        return {"type": "Discrete", "n": int(space.n), "start": int(space.start)}
    raise ArgumentError(f"save: {space} was given, allowed: {', '.join(_SPACES)}")


_SPACES: Mapping[str, Callable[..., spaces.Space[Any]]] = {
    "UnicodeText": UnicodeText,
    "Text": spaces.Text,
    "Discrete": spaces.Discrete,
}


def make_space(described: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that ``describe_space`` described.

    Raises:
        CheckpointError: nothing was described so.
    """
    try:
        arguments = dict(described)
        return _SPACES[arguments.pop("type")](**arguments)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError) as error:
        raise CheckpointError(f"load: no space is {described!r:.80}: {error}") from error
