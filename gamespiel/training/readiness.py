"""The checks of ``gamespiel train`` that need no model: whether a run could begin or go on."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

from gamespiel.config import Config, InvalidValueError, import_own_modules, saved_config
from gamespiel.config.schema import DOTTED
from gamespiel.environments.curriculum import add_stage_tasks, make_starts
from gamespiel.environments.held_out import evaluation_configs, hold_out_tasks
from gamespiel.environments.making import make_one_env, pin_tasks
from gamespiel.kinds import kind_of

MAY_CHANGE = (
    "model.model_name",  # the same weights in another place: their content is compared when they are loaded
    "model.gradient_checkpointing",
    "model.reading",
    "ppo.num_train_steps",
    "ppo.tokens_per_forward",
    "ppo.tokens_per_backward",
    "env.require",  # the protection of programs, which decides nothing about their outputs
    "env.base_url",
    "env.pull",
    "env.mem_limit",
    "env.cpu_limit",
    "env.docker_host",
    "env.server_timeout",
    "run.output_dir",
    "run.checkpoint_every",
    "run.checkpoint_minutes",
    "run.keep_checkpoints",
    "run.eval_games",
    "run.exact_every",
    "run.eval_steps",
    "run.eval_episodes",
    "run.eval_seconds",
    "run.eval_opponents",
    "run.metric_for_best_model",
    "run.early_stopping_patience",
    "run.report_to",
    "run.grace_seconds",
    "run.device",
    "run.num_threads",
    "run.env_threads",
    "run.env_workers",
    "run.ray_address",
    "run.env_seconds",
    "run.vllm_base_url",
    "run.vllm_adapter_dir",
    "run.vllm_gap_limit",
    "run.imports",
)
"""The keys that a resumed run may change: those that do not decide what is learned."""


def prepare(config: Config) -> Config:
    """Returns a configuration with the tasks of its run, after the checks that need neither model nor folder.

    Raises:
        TaskGymError: as ``gamespiel.training.run.train`` does.
    """
    config = hold_out_tasks(add_stage_tasks(import_own_modules(config)))
    if config.run.eval_steps is not None:
        evaluation_configs(config)  # raises if an opponent cannot play
    kind_of(config.env).check_playable(config.env, "training")
    return pin_tasks(config)


def check_run(config: Config, resume: Path | None = None) -> None:
    """Checks what a run checks before it loads its model.

    Only to look into folders of runs, PyTorch is imported. Environments on a server are not made: the server
    need not be there yet.

    Args:
        config: The configuration.
        resume: The run that is to be resumed, or its newest checkpoint.

    Raises:
        TaskGymError: as ``gamespiel.training.run.train`` does.
    """
    config = prepare(config)
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", config.run.device) is None:
        from gamespiel.assembly import named_device

        named_device(config.run.device)
    _check_folders(config, resume)
    make_starts(config)
    if config.env.env_mode == "local":
        env, kind = make_one_env(config.env), kind_of(config.env)
        if kind.plays_itself(config.env):
            kind.check_self_play(env, config.self_play.learn)
        env.close()


def _check_folders(config: Config, resume: Path | None) -> None:
    if resume is not None:
        from gamespiel import runs
        from gamespiel.agents.runs import catalog

        start = catalog.find(resume)
        check_resumed(config, saved_config(runs.folder_of(start, config)), catalog.step_of(start))
        if not catalog.names_step(resume):
            catalog.require_newest(start)
        return
    if config.run.output_dir is not None:
        from gamespiel import runs

        runs.check_free(config)
    if config.run.init_from is not None:
        from gamespiel.agents.runs import checkpoint

        checkpoint.find(Path(config.run.init_from))


def check_resumed(asked: Config, saved: Config, step: int) -> None:
    """Checks that ``asked`` continues the run that began as ``saved``, from a checkpoint after so many steps.

    Raises:
        InvalidValueError: A key that decides what is learned has another value, or the steps are over.
    """
    getters = [(key, attrgetter(key)) for key in DOTTED if key not in MAY_CHANGE]
    changed = [f"{key} ({of(saved)!r}, not {of(asked)!r})" for key, of in getters if of(saved) != of(asked)]
    if changed:
        raise InvalidValueError(
            f"a resumed run keeps {', '.join(changed)}; it may change {', '.join(MAY_CHANGE)}. "
            "To train its weights in another way, start a new run with --from"
        )
    if asked.ppo.num_train_steps < step:
        raise InvalidValueError(
            f"ppo.num_train_steps: {asked.ppo.num_train_steps} was given, and the run goes on after step "
            f"{step}; allowed: at least {step}, or --resume RUN@STEP, which goes back"
        )
