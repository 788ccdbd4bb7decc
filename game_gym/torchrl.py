"""Games for TorchRL: tensors, with TorchRL's own ``ActionMask``."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from game_gym.wrappers import TensorObservation
from task_gym.errors import ImportNameError
from task_gym.wrappers import DictObservation

try:
    from torchrl.envs import ActionMask, GymWrapper, TransformedEnv
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.torchrl: TorchRL is not installed; pip install 'gamespiel[torchrl]'"
    ) from error


def torchrl_env(**arguments: Any) -> Any:
    """Returns a game with the keys ``observation`` (the flat tensor), ``action_mask`` and ``action``.

    The action spec always has the mask of the position, so that ``rand_action`` is legal. For a policy, give
    the mask to ``torchrl.modules.MaskedCategorical``.

    Args:
        **arguments: Those of ``GameSpiel-v0``.
    """
    env = gym.make("GameSpiel-v0", disable_env_checker=True, **arguments)
    masked = _OpenEnd(TensorObservation(env))
    return TransformedEnv(GymWrapper(masked, categorical_action_encoding=True), ActionMask())


class _OpenEnd(DictObservation):
    """Allows every action after the end, because ActionMask refuses a mask without one."""

    def show(self, observation: Any, info: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the dictionary; its mask has an action, also when nothing is left to choose."""
        seen, info = super().show(observation, info)
        if not seen["action_mask"].any():
            seen["action_mask"][:] = 1
        return seen, info
