"""From a configuration to the objects that run: environments, policy, algorithm."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import torch

from gamespiel.agents.kl_control import AdaptiveKLController
from gamespiel.agents.models import LoraSettings, ModelSettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.schedules import schedule
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import Config, InvalidValueError
from gamespiel.config.sections import EnvConfig
from gamespiel.kinds import kind_of
from task_gym.wrappers import NamedActions

ENVIRONMENTS_AT_ONCE = 1024
"""More episodes than this are played in waves; an environment costs tens of kilobytes."""

Wrap = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]


def settled(config: Config) -> Config:
    """Returns the configuration with names that mean the same tasks everywhere and at any time.

    Raises:
        SourceError: there are no programs of that name.
    """
    return dataclasses.replace(config, env=kind_of(config.env).settled(config.env))


def make_one_env(config: EnvConfig, wrap: Wrap | None = None) -> gym.Env[Any, Any]:
    """The configured environment in `wrap`; if actions are answered by name, what names them is outermost."""
    # Gymnasium's checker looks at every step of every copy; the environments pass it in the tests.
    kind = kind_of(config)
    env = gym.make(kind.environment, disable_env_checker=True, **kind.arguments(config))
    env = env if wrap is None else wrap(env)
    return NamedActions(env) if config.answer == "name" else env


def make_envs(config: EnvConfig, count: int, wrap: Wrap | None = None) -> TextVecEnv:
    """`count` copies of the configured environment, each in `wrap`; at most `ENVIRONMENTS_AT_ONCE`."""
    return TextVecEnv([lambda: make_one_env(config, wrap)] * min(count, ENVIRONMENTS_AT_ONCE))


def device_of(config: Config) -> torch.device:
    """The device that `run.device` names; `auto` is the first GPU, or the CPU where there is none.

    Raises:
        InvalidValueError: no device of that name is here.
    """
    name = config.run.device
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise InvalidValueError(f"run.device must be auto, cpu, cuda or cuda:N, not {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise InvalidValueError(f"run.device is {name!r}, but torch finds {found or 'no'} GPU here")
    return device


def policy_settings(config: Config) -> dict[str, Any]:
    """`LLMPolicy`'s keywords. `lora_dropout` is not among them: see `agents.models.LoraSettings`."""
    return {
        "model": ModelSettings(config.model.model_name, config.model.dtype, config.model.random_weights),
        "lora": LoraSettings(config.lora.r, config.lora.lora_alpha, tuple(config.lora.target_modules)),
        "answer": config.env.answer,
        "critic_lr_multiplier": config.ppo.critic_lr_multiplier,
        "seed": config.run.seed,
    }


def make_policy(config: Config, env: TextVecEnv | gym.Env[Any, Any]) -> LLMPolicy:
    """The policy alone, for evaluation and play."""
    return LLMPolicy(
        env.observation_space,
        env.action_space,
        lambda remaining: config.ppo.learning_rate,
        device=str(device_of(config)),
        **policy_settings(config),
    )


def make_algorithm(config: Config, wrap: Wrap | None = None) -> LLMPPO:
    """Environments (each in `wrap`), policy and algorithm, before their first step."""
    ppo = config.ppo
    envs = make_envs(config.env, ppo.batch_size, wrap)
    return LLMPPO(
        LLMPolicy,
        envs,
        schedule(ppo.lr_schedule, ppo.learning_rate),
        batch_size=ppo.batch_size,
        mini_batch_size=ppo.mini_batch_size,
        gradient_accumulation_steps=ppo.gradient_accumulation_steps,
        ppo_epochs=ppo.ppo_epochs,
        gamma=ppo.gamma,
        gae_lambda=ppo.lam,
        cliprange=ppo.cliprange,
        vf_coef=ppo.vf_coef,
        ent_coef=schedule(ppo.ent_schedule, ppo.ent_coef),
        max_grad_norm=ppo.max_grad_norm,
        kl=AdaptiveKLController(ppo.init_kl_coef, ppo.target_kl, ppo.kl_horizon if ppo.adaptive_kl else None),
        critic_warmup_steps=ppo.critic_warmup_steps,
        normalize_advantage=ppo.normalize_advantage,
        total_steps=ppo.num_train_steps,
        policy_kwargs=policy_settings(config),
        seed=config.run.seed,
        device=device_of(config),
    )
