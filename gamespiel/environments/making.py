"""The environments of a configuration, and the workers that play them. They need no learning library."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import gymnasium as gym

from gamespiel.agents.envs import TextEnvs
from gamespiel.config import Config
from gamespiel.config.imports import import_modules
from gamespiel.config.sections import EnvConfig, RunConfig
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import TASK_IDS
from task_gym.workers import WorkerPool
from task_gym.workers.processes import make_launcher
from task_gym.wrappers import NamedActions

ENVIRONMENTS_AT_ONCE = 1024
"""The most environments of a run: more episodes are played in waves. One takes tens of kilobytes."""

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
    task_keys: Any = {name: getattr(run.env, name) for name in names}
    return dataclasses.replace(config, env=dataclasses.replace(config.env, **task_keys))


def evaluation_config(config: Config) -> Config:
    """Returns the configuration as evaluations play it: against a fixed opponent, also after self-play."""
    return dataclasses.replace(config, env=kind_of(config.env).evaluation_keys(config.env))


def make_one_env(config: EnvConfig) -> gym.Env[Any, Any]:
    """Returns the configured environment in the wrappers of how it is answered and shown.

    These are ``NamedActions`` for choices by name, and outermost those of a conversation. With ``env.decode:
    text`` it is the environment that takes replies as text.
    """
    if config.decode == "text":
        return make_reply_env(config)
    kind = kind_of(config)
    env = kind.make_env(config)
    return kind.wrap_conversation(config, NamedActions(env) if config.answer == "name" else env)


def make_reply_env(config: EnvConfig) -> gym.Env[Any, Any]:
    """Returns the configured environment as ``make_one_env`` does, but taking replies as text."""
    kind = kind_of(config)
    return kind.wrap_conversation(config, kind.make_reply_env(config))


def make_envs(config: EnvConfig, count: int, threads: int | None = None) -> TextEnvs:
    """Returns ``count`` copies of the configured environment, at most ``ENVIRONMENTS_AT_ONCE``.

    ``threads`` are those in which opponents search: ``run.env_threads``. The environments are in this
    process, for agents that read their state.
    """
    return TextEnvs([partial(make_one_env, config)] * min(count, ENVIRONMENTS_AT_ONCE), threads)


def make_played_envs(config: Config, count: int, *, replies: bool = False) -> TextEnvs:
    """Returns environments for a policy, as ``make_envs``, which the run's workers play if it has any.

    With ``replies`` they take replies as text.
    """
    return TextEnvs(*list_makers(config, count, replies=replies))


def list_makers(
    config: Config, count: int, *, replies: bool = False
) -> tuple[list[Make], int | None, WorkerPool | None]:
    """Returns the arguments of the ``TextEnvs`` that ``make_played_envs`` returns.

    Workers import the modules of ``run.imports`` before they make an environment.

    Raises:
        TaskGymError: the workers cannot be had.
    """
    run, pool = config.run, find_pool(config.run)
    make: Make = partial(make_reply_env if replies else make_one_env, config.env)
    if pool is not None and run.imports:
        make = partial(make_after_imports, run.imports, make)
    return [make] * min(count, ENVIRONMENTS_AT_ONCE), run.env_threads, pool


def make_after_imports(imports: tuple[str, ...], make: Make) -> gym.Env[Any, Any]:
    """Returns an environment that is made after modules were imported."""
    import_modules(imports)
    return make()


# -- workers: started once per process, for training and evaluations -----------------------------------------

MODULES = ("gamespiel", "gamespiel.environments.making")
"""The modules that workers import, which register every environment and opponent."""

_pools: dict[tuple[int, str | None, float], WorkerPool] = {}
_lock = Lock()


def find_pool(run: RunConfig) -> WorkerPool | None:
    """Returns the workers that a run asks for; None if this process plays its environments.

    Raises:
        TaskGymError: they cannot be had here.
    """
    if not run.env_workers:
        return None
    key = run.env_workers, run.ray_address, run.env_seconds
    with _lock:
        if key not in _pools:
            launcher = make_launcher(run.ray_address, MODULES)
            _pools[key] = WorkerPool(launcher, run.env_workers, seconds=run.env_seconds)
        return _pools[key]


def close_pools() -> None:
    """Ends all workers. The next run that asks for some starts new ones."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()
