"""SmolLM2-135M-Instruct for tests."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gamespiel.agents.models.loading import ModelSettings
from gamespiel.agents.policy import LLMPolicy

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def policy(**settings: Any) -> LLMPolicy:
    """Returns a policy on it, in bfloat16 unless ``dtype`` is given."""
    env = gym.make("game_gym:GameSpiel-v0", game="tic_tac_toe")
    model = ModelSettings(NAME, **{"dtype": "bfloat16", **settings})
    return LLMPolicy(env.observation_space, env.action_space, lambda _: 1e-4, model=model)
