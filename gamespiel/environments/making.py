"""The environments of a configuration, for training and evaluation. They need no learning library."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym

from gamespiel.agents.envs import TextEnvs
from gamespiel.config import Config
from gamespiel.config.imports import import_modules
from gamespiel.config.sections import EnvConfig
from gamespiel.environments.workers import find_pool
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import TASK_IDS
from task_gym.workers import WorkerPool
from task_gym.wrappers import NamedActions

ENVIRONMENTS_AT_ONCE = 1024
"""The most environments of a run: more episodes are played in waves. One takes tens of kilobytes."""

Wrap = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]
Make = Callable[[], gym.Env[Any, Any]]


def pin_tasks(config: Config) -> Config:
    """Returns the configuration with names that mean the same tasks on any machine and at any time.

    Raises:
        SourceError: there is no program source of that name.
    """
    return dataclasses.replace(config, env=kind_of(config.env).pin_tasks(config.env))


def take_tasks(config: Config, run: Config) -> Config:
    """Returns a configuration with the tasks of a run, and their seeds."""
    kind = kind_of(run.env)
    names = ("env_type", *TASK_IDS, *kind.choosing, *kind.belonging, "seeding", "seeds")
    task_keys: Any = {name: getattr(run.env, name) for name in names if hasattr(run.env, name)}
    return dataclasses.replace(config, env=dataclasses.replace(config.env, **task_keys))


def plays_itself(config: Config) -> bool:
    """Returns whether the policy in training plays every seat."""
    return kind_of(config.env).plays_itself(config.env)


def evaluation_config(config: Config) -> Config:
    """Returns the configuration as evaluations play it: against a fixed opponent, also after self-play."""
    return dataclasses.replace(config, env=kind_of(config.env).evaluation_keys(config.env))


def make_one_env(config: EnvConfig, wrap: Wrap | None = None) -> gym.Env[Any, Any]:
    """Returns the configured environment in ``wrap`` and the wrappers of how it is answered and shown.

    These are ``NamedActions`` for choices by name, and outermost those of a conversation. With ``env.decode:
    text`` it is the environment that takes replies as text.
    """
    if config.decode == "text":
        return make_reply_env(config, wrap)
    kind = kind_of(config)
    env = kind.make_env(config)
    env = env if wrap is None else wrap(env)
    return kind.wrap_conversation(config, NamedActions(env) if config.answer == "name" else env)


def make_reply_env(config: EnvConfig, wrap: Wrap | None = None) -> gym.Env[Any, Any]:
    """Returns the configured environment as ``make_one_env`` does, but taking replies as text."""
    kind = kind_of(config)
    env = kind.make_reply_env(config)
    return kind.wrap_conversation(config, env if wrap is None else wrap(env))


def make_envs(
    config: EnvConfig, count: int, wrap: Wrap | None = None, threads: int | None = None
) -> TextEnvs:
    """Returns ``count`` copies of the configured environment, at most ``ENVIRONMENTS_AT_ONCE``.

    ``threads`` are those in which opponents search: ``run.env_threads``. The environments are in this
    process, for agents that read their state.
    """
    return TextEnvs(copies(config, count, wrap), threads)


def make_played_envs(config: Config, count: int, *, replies: bool = False) -> TextEnvs:
    """Returns environments for a policy, as ``make_envs``, which the run's workers play if it has any.

    With ``replies`` they take replies as text.
    """
    make = partial(make_reply_env, config.env) if replies else partial(make_one_env, config.env)
    makers: list[Make] = [make] * min(count, ENVIRONMENTS_AT_ONCE)
    return TextEnvs(*add_workers(config, makers))


def add_workers(
    config: Config, makers: Sequence[Make]
) -> tuple[Sequence[Make], int | None, WorkerPool | None]:
    """Returns the arguments of a ``TextEnvs`` whose environments the run's workers play, if it has any.

    Workers import the modules of ``run.imports`` before they make an environment.

    Raises:
        TaskGymError: the workers cannot be had.
    """
    run = config.run
    pool = find_pool(run)
    if pool is not None and run.imports:
        after = {id(make): partial(make_after_imports, run.imports, make) for make in makers}
        makers = [after[id(make)] for make in makers]
    return makers, run.env_threads, pool


def make_after_imports(imports: tuple[str, ...], make: Make) -> gym.Env[Any, Any]:
    """Returns an environment that is made after modules were imported."""
    import_modules(imports)
    return make()


def copies(config: EnvConfig, count: int, wrap: Wrap | None = None) -> list[Make]:
    """Returns functions that make ``count`` copies of an environment, at most ``ENVIRONMENTS_AT_ONCE``."""
    return [partial(make_one_env, config, wrap)] * min(count, ENVIRONMENTS_AT_ONCE)
