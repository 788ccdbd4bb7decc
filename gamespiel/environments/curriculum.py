"""The samplers of a run, made from the ``curriculum`` section of its configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gamespiel.agents.starts import Starts
from gamespiel.config import Config, InvalidValueError
from gamespiel.config import Stage as StageConfig
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import Ranges, list_ranges, names_of
from task_gym.samplers import Failures, Stage, Stages, TaskSampler, Uniform, Unlisting


def add_stage_tasks(config: Config) -> Config:
    """Returns the configuration whose ``env`` section may draw the tasks of all stages.

    Raises:
        InvalidValueError: the section chooses other tasks.
    """
    env: Any = config.env
    named = [pair for stage in config.curriculum.stages for pair in ranges_of(stage)]
    if not named or env.allowed_game_indices:
        return config
    if not (env.task_ids or env.task_id is not None or env.game is not None):
        if any((stage.level or stage.family) and not ranges_of(stage) for stage in config.curriculum.stages):
            return config  # such a stage draws among all tasks, and so must the section
        chosen = tuple(dict.fromkeys(named))
        return dataclasses.replace(config, env=dataclasses.replace(env, task_ids=chosen))
    env_ranges = kind_of(env).task_ranges(env)
    for stage in config.curriculum.stages:
        for first, last in ranges_of(stage):
            if subtract_ranges([(first, last)], env_ranges):
                raise InvalidValueError(
                    f"curriculum.stages: stage {stage.name!r} draws {first} … {last}, which the env section "
                    "excludes; let env choose no tasks (all stages' are then its own), or a set with these"
                )
    return config


def ranges_of(stage: StageConfig) -> Ranges:
    """Returns the ranges of task ids that a stage names."""
    further = () if stage.task_id_range is None else (stage.task_id_range,)
    return list_ranges((*stage.task_ids, *further))


def make_starts(config: Config) -> Starts | None:
    """Returns the samplers of a run's episodes; None if the ``env`` section chooses them.

    Raises:
        TaskGymError: a stage, threshold, opponent or success score cannot be had.
    """
    section, kind = config.curriculum, kind_of(config.env)
    scores = {kind.read_task(name): score for name, score in section.success_scores.items()}
    stages = failures = None
    if section.stages:
        stages = _make_sampler(config, scores)
        kind.check_opponents(config.env, stage_opponents(config))
    if section.replays > 0:
        failures = Failures(
            section.failure_buffer_size,
            section.replays,
            section.max_replays,
            seed=config.run.seed,
            success_scores=scores,
        )
    unlisting = None
    if section.unlist_steps is not None:
        unlisting = Unlisting(*section.unlist_steps, seed=config.run.seed)
    samplers = (stages, failures, unlisting)
    return None if samplers == (None, None, None) else Starts(*samplers)


def _make_sampler(config: Config, scores: dict[str | int, float]) -> TaskSampler:
    section, seed, kind = config.curriculum, config.run.seed, kind_of(config.env)
    stages = [
        Stage(
            stage.name,
            task_ids=kind.stage_tasks(config.env, ranges_of(stage) or None, stage.level, stage.family),
            opponent=stage.opponent if kind.has_opponents else None,
            threshold=stage.threshold,
            min_episodes=stage.min_episodes,
        )
        for stage in section.stages
    ]
    if section.sampler == "uniform":
        return Uniform(stages, seed=seed, success_scores=scores)
    return Stages(
        stages,
        seed=seed,
        progression_window=section.progression_window,
        promote=section.promote,
        earlier_share=section.earlier_share,
        demote=section.demote,
        success_scores=scores,
    )


def stage_opponents(config: Config) -> Sequence[str]:
    """Returns the names of the opponents that play in stages, if opponents play at all."""
    if not kind_of(config.env).has_opponents:
        return ()
    return [name for stage in config.curriculum.stages for name in names_of(stage.opponent)]


def subtract_ranges(ranges: Sequence[tuple[int, int]], held: Sequence[tuple[int, int]]) -> Ranges:
    """Returns the ids of ranges that are in no held range; (first, last) pairs, ends included."""
    left = list(ranges)
    for low, high in held:
        pieces = [
            piece
            for first, last in left
            for piece in ((first, min(last, low - 1)), (max(first, high + 1), last))
        ]
        left = [(first, last) for first, last in pieces if first <= last]
    return left
