"""Checks of what ``LLMPPO`` is given, before anything is learned from it."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import EXPECTED_METHOD_NAME

from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.self_play import check_learns
from gamespiel.agents.starts import check_not_sampled
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.arguments import check_least
from task_gym.errors import ArgumentError


def check_arguments(env: Any, total_steps: int | None) -> None:
    """Raises ArgumentError unless there is an environment, and the number of steps is one."""
    if env is None:
        raise ArgumentError("env: none was given, allowed: a TextVecEnv, or one environment of texts")
    if total_steps is not None:
        check_least("total_steps", total_steps, 1)


def check_env(env: Any, self_play: SelfPlaySettings | None) -> None:
    """Raises ArgumentError or SeatsError if no step can be learned from these environments."""
    check_not_sampled(env)
    space = getattr(env, "action_space", None)
    if isinstance(env, TextVecEnv) and isinstance(space, spaces.Discrete):
        if not env.has_attr(EXPECTED_METHOD_NAME):
            raise ArgumentError(
                f"env: {env.envs[0]} was given, which has no {EXPECTED_METHOD_NAME}(); allowed: "
                "environments of Discrete actions with this method, which returns true = legal"
            )
        if space.start != 0:
            raise ArgumentError(f"env: actions {space} were given, allowed: Discrete(n), which starts at 0")
    if self_play is not None:
        check_learns(env, self_play)


def check_device(device: torch.device | str) -> torch.device | str:
    """Returns the device, after checking that it is there: Stable-Baselines3 would take the CPU silently.

    Raises:
        ArgumentError: it is a GPU, and torch finds none.
    """
    if device != "auto" and torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError(
            f"device: {str(device)!r} was given, and torch finds no GPU here; allowed: 'cpu' or 'auto'"
        )
    return device


def check_magnet(model: Any) -> None:
    """Raises ArgumentError if the divergence of replies from a learner's magnet would leave out its head.

    The exact one is found from the magnet's hidden states, behind the head without adapters.
    """
    numbers = model.hyperparameters
    head = model.policy.model.get_base_model().get_output_embeddings()
    exact = not model.policy.answers.masked and numbers.kl_estimator == "exact"
    if model.magnet is not None and exact and hasattr(head, "base_layer"):
        raise ArgumentError(
            f"magnet_coef: {numbers.magnet_coef!r} was given with adapters on the model's head and "
            "kl_estimator 'exact', which reads replies behind the head without them; allowed: "
            "kl_estimator 'k3', or adapters elsewhere (target_modules)"
        )
