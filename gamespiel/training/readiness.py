"""Whether a run of a configuration could begin: the checks of ``gamespiel train`` that need no model."""

from __future__ import annotations

import re
from pathlib import Path

from gamespiel.config import Config, import_own_modules, saved_config
from gamespiel.config.resume import check_resumed
from gamespiel.environments.curriculum import add_stage_tasks, make_starts
from gamespiel.environments.held_out import evaluation_configs, hold_out_tasks
from gamespiel.environments.making import make_one_env, pin_tasks, plays_itself
from gamespiel.kinds import declaration_of, kind_of


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
    config = hold_out_tasks(add_stage_tasks(import_own_modules(config)))
    if config.run.eval_steps is not None:
        evaluation_configs(config)  # raises if an opponent cannot play
    declaration_of(config.env).check_playable(config.env, "training")
    config = pin_tasks(config)
    _check_device(config)
    _check_folders(config, resume)
    make_starts(config)
    if config.env.env_mode == "local":
        env = make_one_env(config.env)
        if plays_itself(config):
            kind_of(config.env).player.check_self_play(env, config.self_play.learn)
        env.close()


def _check_device(config: Config) -> None:
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?", config.run.device) is None:
        from gamespiel.assembly import named_device

        named_device(config.run.device)


def _check_folders(config: Config, resume: Path | None) -> None:
    if resume is not None:
        from gamespiel import runs
        from gamespiel.agents.runs import kept

        start = kept.find(resume)
        check_resumed(config, saved_config(runs.folder_of(start, config)), kept.step_of(start))
        if not kept.names_step(resume):
            kept.require_newest(start)
        return
    if config.run.output_dir is not None:
        from gamespiel import runs

        runs.check_free(config)
    if config.run.init_from is not None:
        from gamespiel.agents.runs import checkpoint

        checkpoint.find(Path(config.run.init_from))
