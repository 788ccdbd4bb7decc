"""SmolLM2-135M-Instruct for tests, which is read from its file once per process: that takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium as gym
import torch

from gamespiel.agents import policy as policies
from gamespiel.agents.models import loading as models
from gamespiel.agents.models.loading import ModelSettings, load_tokenizer
from gamespiel.agents.models.patches import replace_names
from gamespiel.agents.policy import LLMPolicy

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"

_from_file = models._load_unpacked
_tokenizer = cache(load_tokenizer)


@cache
def _sixteen_bits(settings: ModelSettings, plan: models._LoadPlan) -> Any:
    return _from_file(settings, plan, 0)


def _copied(settings: ModelSettings, plan: models._LoadPlan, seed: int) -> Any:
    """Returns a copy of the file's weights, in the bits that were asked for."""
    if plan.dtype != torch.bfloat16:
        return _from_file(settings, plan, seed)
    own = ModelSettings(settings.model_name, dtype="bfloat16")
    plain = _sixteen_bits(own, replace(plan, quantization=None))
    return models._place_model(deepcopy(plain), plan)


@contextmanager
def read_once() -> Iterator[None]:
    """Makes policies of copies of one base model, and of one tokenizer, within the context."""
    with replace_names(models, _load_unpacked=_copied), replace_names(policies, load_tokenizer=_tokenizer):
        yield


def policy(**settings: Any) -> LLMPolicy:
    """Returns a policy on it, in bfloat16 unless ``dtype`` is given."""
    env = gym.make("game_gym:GameSpiel-v0", game="tic_tac_toe")
    model = ModelSettings(NAME, **{"dtype": "bfloat16", **settings})
    with read_once():
        return LLMPolicy(env.observation_space, env.action_space, lambda _: 1e-4, model=model)
