"""Evaluations of a run: their opponents, and tasks and seeds that its training does not play."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gamespiel.agents.sampling.noise import TrainingSeeds
from gamespiel.config import Config, InvalidValueError
from gamespiel.environments.curriculum import ranges_of, subtract_ranges
from gamespiel.environments.making import evaluation_config
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import list_ranges

_make_training_seeds = lru_cache(maxsize=16)(TrainingSeeds)
"""A cache, so that no step is gone through twice for the same seeds."""


def find_taken_seeds(config: Config, step: int, asked: Sequence[int]) -> frozenset[int]:
    """Returns those of some seeds that training has drawn before a step: evaluations leave them out."""
    seeds = _make_training_seeds(config.run.seed, config.ppo.batch_size, frozenset(asked))
    return seeds.find_drawn(step)


def hold_out_tasks(config: Config) -> Config:
    """Returns the configuration whose training never draws the tasks of ``run.eval_task_ids``.

    Raises:
        InvalidValueError: nothing is left to train on, or the tasks have no ids.
    """
    held = list_ranges(config.run.eval_task_ids)
    if not held:
        return config
    kind = kind_of(config.env)
    env_ranges = kind.task_ranges(config.env)
    if not env_ranges:  # a game by name: its episodes have no task ids
        return config
    left = subtract_ranges(env_ranges, held)
    if not left:
        raise InvalidValueError(
            "run.eval_task_ids holds out all tasks of the env section: nothing is left to train on"
        )
    stages = []
    for stage in config.curriculum.stages:
        named = ranges_of(stage)
        rest = subtract_ranges(named, held)
        if named and not rest:
            raise InvalidValueError(f"run.eval_task_ids holds out all tasks of the stage {stage.name!r}")
        changed = dataclasses.replace(stage, task_id_range=None, task_ids=tuple(rest))
        stages.append(stage if rest == named else changed)
    curriculum = dataclasses.replace(config.curriculum, stages=tuple(stages))
    config = dataclasses.replace(config, curriculum=curriculum)
    if left == env_ranges:
        return config
    return dataclasses.replace(config, env=kind.choose_tasks(config.env, left))


def evaluation_configs(config: Config) -> list[tuple[str, Config]]:
    """Returns what an evaluation while training plays: a configuration per opponent, by its name.

    Raises:
        TaskGymError: an opponent cannot play the tasks.
    """
    config, kind = evaluation_config(config), kind_of(config.env)
    env: Any = config.env
    if config.run.eval_task_ids:
        env = kind.choose_tasks(env, list_ranges(config.run.eval_task_ids))
    if not config.run.eval_opponents:
        return [("", dataclasses.replace(config, env=env))]
    if not kind.has_opponents:
        raise InvalidValueError(
            f"run.eval_opponents names {', '.join(config.run.eval_opponents)}, and {kind.unit} have none"
        )
    kind.check_opponents(env, config.run.eval_opponents)
    return [
        (name, dataclasses.replace(config, env=dataclasses.replace(env, opponent=name)))
        for name in config.run.eval_opponents
    ]


def explain_not_held_out(config: Config) -> str:
    """Returns why seeds that training has not drawn hold nothing out; "" if they do.

    In a game of few deals, other seeds deal the same cards.
    """
    if config.run.eval_steps is None or config.run.eval_task_ids:
        return ""
    if kind_of(config.env).explain_unsolved(evaluation_config(config).env):
        return ""
    return (
        "evaluations while training hold nothing out: the game is so small that training plays all its "
        "deals, whatever the seed. They measure what was learned; run.exact_every does without chance"
    )
