"""Functions that return a run's environment and its trained policy, for use from Python."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import gymnasium as gym

from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.config import ConfigError, from_dict, require_built, saved_config
from gamespiel.environments import make_one_env


def make_env(run: str | Path, **changes: Any) -> gym.Env[Any, Any]:
    """Returns the environment that a run was trained in.

    Args:
        run: A run's folder, or one of its checkpoints.
        **changes: Other values for keys of the configuration's ``env`` section.

    Raises:
        TaskGymError: there is no such run, key, opponent or game.
    """
    config = require_built(from_dict({"env": changes}, "make_env", base=saved_config(run)))
    return make_one_env(config.env)


def load_policy(run: str | Path, env: gym.Env[Any, Any] | None = None, *, device: str = "auto") -> LLMPolicy:
    """Returns the policy that a run has trained.

    ``policy.predict(observation, action_masks=mask)`` draws an action; with ``deterministic=True`` it takes
    the most probable one. ``policy.distribution([observation], [legal_actions])`` returns all probabilities.

    Args:
        run: A run's folder, whose newest checkpoint is loaded, or one of its checkpoints.
        env: The environment to play, if it is not the run's own; it may have other actions.
        device: "auto" (the first GPU, else the CPU), "cpu", "cuda" or "cuda:N".

    Raises:
        TaskGymError: there is no such run, checkpoint or device, or the base model cannot be loaded.
    """
    found = checkpoint.find(Path(run))
    config = require_built(saved_config(found))
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, device=device))
    played = make_one_env(config.env) if env is None else env
    writes = config.env.decode == "text"
    if isinstance(played.action_space, gym.spaces.Text) != writes:
        takes = "a number" if writes else "text"
        raise ConfigError(
            f"the policy of {str(run)!r} was trained with env.decode: {config.env.decode}, and this "
            f"environment takes {takes}: leave env.decode as it was"
        )
    policy = make_policy(config, played)
    checkpoint.load_newest(policy, Path(run))
    return policy
