"""Checks across keys: those that must agree, and those without effect."""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.config.layers import CHOOSING
from gamespiel.config.sections import Config, CurriculumConfig, EnvConfig, ModelConfig, RunConfig
from gamespiel.errors import ConfigError, InvalidValueError, Mistakes
from gamespiel.kinds import DECLARATIONS, declaration_of
from gamespiel.kinds.base import Declaration, server_keys_without_effect
from task_gym.errors import shown
from task_gym.remote.settings import PASSWORD, has_password

WITHOUT_EFFECT = {
    "choice": (
        ("temperature", "max_new_tokens", "cut_penalty", "kl_estimator"),
        "it is for text replies (env.decode), and policies choose among legal answers at temperature 1.",
    ),
    "text": (
        ("legal_coef", "legal_target"),
        "it is for choices among legal answers (env.decode), and replies have none that are listed.",
    ),
}
"""By ``env.decode``, keys of ``ppo`` that have no effect, and why."""


EVALUATION_KEYS = (
    "eval_episodes", "eval_seconds", "eval_opponents", "metric_for_best_model", "early_stopping_patience",
)  # fmt: skip
VLLM_KEYS = ("vllm_base_url", "vllm_adapter_dir", "vllm_gap_limit")
POOL_KEYS = ("self_play.pool_pick", "self_play.pool_every", "self_play.pool_size")
MAGNET_KEYS = ("ppo.magnet_schedule", "ppo.magnet_end", "ppo.magnet_every", "ppo.magnet_rate")


def validate(config: Config) -> Config:
    """Returns ``config`` if its keys agree.

    Raises:
        ConfigError: Two keys contradict each other, or one needs another.
        MistakesError: Several do.
    """
    config = dataclasses.replace(config, env=declaration_of(config.env).complete_keys(config.env))
    mistakes = Mistakes()
    for check, of in _CHECKS:
        with mistakes.collect():
            check(of(config))
    mistakes.raise_all()
    return config


LARGEST = 2**31 - 1


def _check_sizes(config: Config) -> None:
    """Refuses counts that no array can have."""
    for section in dataclasses.fields(config):
        own = getattr(config, section.name)
        for field in dataclasses.fields(own):
            value = getattr(own, field.name)
            if isinstance(value, int) and value > LARGEST and field.name not in ("seed", "task_id"):
                raise InvalidValueError(
                    f"{section.name}.{field.name} must be at most {LARGEST:,}, not {shown(value)}"
                )


def _check_model(model: ModelConfig) -> None:
    if model.use_4bit and model.use_8bit:
        raise ConfigError("model.use_4bit and model.use_8bit contradict each other: set one of them")


def _check_choice(env: EnvConfig) -> None:
    declaration = declaration_of(env)
    for name, other in _find_foreign_keys(env).items():
        if name in other.choice:
            raise ConfigError(
                f"env.{name} = {getattr(env, name)!r} chooses {other.unit}, and env.env_type is "
                f"{env.env_type!r}: leave it out, or set env.env_type to {other.env_type!r}"
            )
    chosen = [f"env.{name}" for name in CHOOSING if getattr(env, name) not in (None, ())]
    if len(chosen) > 1:
        raise ConfigError(f"only one key may choose the {declaration.unit}, not {' and '.join(chosen)}")


def _check_server(env: EnvConfig) -> None:
    if env.env_mode == "url" and env.base_url is None:
        raise ConfigError("env.env_mode = 'url' needs env.base_url, for example http://127.0.0.1:8000")
    if env.base_url is not None and has_password(env.base_url):
        raise ConfigError(f"env.base_url: {PASSWORD}")


def _check_vllm(run: RunConfig) -> None:
    if run.use_vllm and not run.vllm_base_url:
        raise ConfigError("run.use_vllm needs run.vllm_base_url, for example http://localhost:8000/v1")
    urls = run.vllm_base_url or ()
    if any(map(has_password, urls.split(",") if isinstance(urls, str) else urls)):
        raise ConfigError(
            "run.vllm_base_url: an address with a user's name or password was given, allowed: one without; "
            "the token is in the environment variable VLLM_API_KEY"
        )


def _check_workers(run: RunConfig) -> None:
    if run.ray_address is None:
        return
    if not run.env_workers:
        raise ConfigError(
            "run.ray_address needs run.env_workers, the number of workers on the cluster: one per CPU of it, "
            "for example"
        )
    host, colon, port = run.ray_address.rpartition(":")
    if run.ray_address != "auto" and not (
        host and "/" not in host and colon and port.isascii() and port.isdigit()
    ):
        raise ConfigError(f"run.ray_address must be auto or host:port, as host:6379, not {run.ray_address!r}")


def _check_decode(env: EnvConfig) -> None:
    declaration = declaration_of(env)
    if env.think and env.decode != "text":
        raise ConfigError(
            "env.think = true needs env.decode: text: where a model chooses among the legal answers, it has "
            "no place to reason in"
        )
    if env.decode == "text" and declaration.replies is None:
        others = " or ".join(other.env_type for other in DECLARATIONS.values() if other.replies)
        raise ConfigError(
            f"env.decode = 'text' needs an environment that takes text, and env.env_type "
            f"{env.env_type!r} has none; allowed: {others}"
        )


def _find_foreign_keys(env: EnvConfig) -> dict[str, Declaration[Any]]:
    """Returns the keys that are set and that this kind of task does not read, each with a kind that does."""
    default, own = EnvConfig(), {field.name for field in dataclasses.fields(declaration_of(env).keys)}
    return {
        field.name: declaration
        for declaration in DECLARATIONS.values()
        for field in dataclasses.fields(declaration.keys)
        if field.name not in own and getattr(env, field.name) != getattr(default, field.name)
    }


def _check_unlisting(config: Config) -> None:
    if config.curriculum.unlist_steps is None:
        return
    env: Any = config.env
    if getattr(env, "list_actions", True) or "list_actions" in _find_foreign_keys(config.env):
        raise ConfigError(
            "curriculum.unlist_steps leads to prompts without the list of legal actions, which are measured "
            "before and after: it needs games with env.list_actions: false"
        )
    if declaration_of(config.env).plays_itself(config.env):
        raise ConfigError(
            "curriculum.unlist_steps is for games against an opponent, and with env.opponent: self the "
            "policy plays every seat: leave one of them out"
        )


def _check_stages(config: Config) -> None:
    stages = config.curriculum.stages
    if (stages or config.curriculum.replays) and declaration_of(config.env).plays_itself(config.env):
        raise ConfigError(
            "curriculum.stages and curriculum.failure_replay_prob judge games against an opponent, and with "
            "env.opponent: self the policy plays every seat: leave one of them out"
        )
    names = [stage.name for stage in stages]
    for i, stage in enumerate(stages):
        if config.curriculum.sampler != "stages" and (stage.threshold or stage.min_episodes):
            raise ConfigError(
                f"curriculum.stages[{i}] has a threshold or min_episodes, which curriculum.sampler = "
                f"{config.curriculum.sampler!r} has no use for: leave them out"
            )
        where = f"curriculum.stages[{i}]"
        own: Any = {"opponent": stage.opponent}
        if stage.opponent and declaration_of(config.env).plays_itself(dataclasses.replace(config.env, **own)):
            raise ConfigError(
                f"{where}.opponent: 'self' plays no stage, which judges games against an opponent: name "
                "another, or leave curriculum.stages out and set env.opponent to self"
            )
        if stage.name in names[:i]:
            raise ConfigError(f"{where}.name must differ from the other stages', not be {stage.name!r} again")


_CHECKS: tuple[tuple[Callable[[Any], None], Callable[[Config], Any]], ...] = (
    (_check_sizes, lambda config: config),
    (_check_model, attrgetter("model")),
    (_check_choice, attrgetter("env")),
    (_check_decode, attrgetter("env")),
    (lambda env: declaration_of(env).check_keys(env), attrgetter("env")),
    (_check_server, attrgetter("env")),
    (_check_vllm, attrgetter("run")),
    (_check_workers, attrgetter("run")),
    (_check_stages, lambda config: config),
    (_check_unlisting, lambda config: config),
)
"""The checks, each with the part of a configuration that it reads."""


def notices(config: Config) -> list[str]:
    """Returns a sentence for each key that is set and has no effect, to be said once in the log."""
    found = []
    if config.lora.lora_dropout > 0:
        found.append(
            f"lora.lora_dropout = {config.lora.lora_dropout} is applied nowhere: with dropout, old and new "
            "probabilities differ with no update at all, so PPO's ratio would be wrong."
        )
    if config.model.use_nested_quant and not config.model.use_4bit:
        found.append("model.use_nested_quant = true has no effect without model.use_4bit.")
    default = Hyperparameters()
    if config.ppo.num_minibatches:
        found += [
            f"ppo.{name} = {getattr(config.ppo, name)} has no effect: ppo.num_minibatches divides the turns."
            for name in ("mini_batch_size", "gradient_accumulation_steps")
            if getattr(config.ppo, name) != getattr(default, name)
        ]
    if config.ppo.minibatch_unit == "prompt" and declaration_of(config.env).uses_conversations(config.env):
        found.append(
            "ppo.minibatch_unit = prompt has no effect with env.conversation: optimizer steps draw episodes."
        )
    found += evaluation_notices(config)
    found += _curriculum_notices(config)
    found += _self_play_notices(config)
    default_run = RunConfig()
    if config.run.eval_steps is None:
        found += [
            f"run.{name} = {getattr(config.run, name)!r} has no effect without run.eval_steps."
            for name in EVALUATION_KEYS
            if getattr(config.run, name) != getattr(default_run, name)
        ]
    if not config.run.env_workers and config.run.env_seconds != default_run.env_seconds:
        found.append(f"run.env_seconds = {config.run.env_seconds:g} has no effect without run.env_workers.")
    names, why = WITHOUT_EFFECT[config.env.decode]
    found += [
        f"ppo.{name} = {getattr(config.ppo, name)} has no effect: {why}"
        for name in names
        if getattr(config.ppo, name) != getattr(default, name)
    ]
    return found


def _curriculum_notices(config: Config) -> list[str]:
    own, default, declaration = config.curriculum, CurriculumConfig(), declaration_of(config.env)
    one_by_one = ("progression_window", "promote", "earlier_share", "demote")
    needs = {
        "stages": (own.stages, ("sampler", *one_by_one)),
        "failure_replay_prob": (own.replays, ("failure_buffer_size", "max_replays")),
    }
    found = [
        f"curriculum.{name} = {getattr(own, name)!r} has no effect without curriculum.{needed}."
        for needed, (given, names) in needs.items()
        if not given
        for name in names
        if getattr(own, name) != getattr(default, name)
    ]
    if own.stages and own.sampler != "stages":
        idle = (*one_by_one, "success_scores") if own.sampler == "level_replay" else one_by_one
        found += [
            f"curriculum.{name} = {getattr(own, name)!r} has no effect on curriculum.sampler = {own.sampler}."
            for name in idle
            if getattr(own, name) != getattr(default, name)
        ]
    if own.success_scores and not (own.stages or own.replays):
        found.append("curriculum.success_scores has no effect without stages or failure replay.")
    if not declaration.has_opponents and any(stage.opponent is not None for stage in own.stages):
        found.append(f"curriculum.stages: opponent has no effect on {declaration.unit}.")
    indices = getattr(config.env, "allowed_game_indices", ())
    named = any(stage.task_id_range or stage.task_ids for stage in own.stages)
    if declaration.has_opponents and indices and named:
        found.append("env.allowed_game_indices replaces the task ids of curriculum.stages.")
    return found


def _self_play_notices(config: Config) -> list[str]:
    """Returns those ``notices`` that are about self-play and the magnet."""
    unused: dict[str, str] = {}
    if not declaration_of(config.env).plays_itself(config.env):
        unused |= dict.fromkeys(POOL_KEYS, "it is for env.opponent: self.")
        unused["self_play.learn"] = "it is for env.opponent: self."
    elif config.self_play.learn == "both":
        unused |= dict.fromkeys(POOL_KEYS, "with self_play.learn: both, no seat is played by a snapshot.")
    if not config.ppo.magnet_coef:
        unused |= dict.fromkeys(MAGNET_KEYS, "ppo.magnet_coef is 0.")
    default = Config()
    return [
        f"{key} = {attrgetter(key)(config)} has no effect: {why}"
        for key, why in unused.items()
        if attrgetter(key)(config) != attrgetter(key)(default)
    ]


def evaluation_notices(config: Config) -> list[str]:
    """Returns those ``notices`` that are for evaluations too: about sampling and the ``env`` section."""
    found, env, run = list[str](), config.env, config.run
    found += [
        f"run.{name} = {getattr(run, name)} is not used: run.use_vllm is false."
        for name in VLLM_KEYS
        if not run.use_vllm and getattr(run, name) != getattr(RunConfig(), name)
    ]
    found += [
        f"env.{name} = {getattr(env, name)!r} has no effect with env.env_mode {env.env_mode}."
        for name in server_keys_without_effect(env)
    ]
    found += [
        f"env.{name} = {getattr(env, name)!r} has no effect on {declaration_of(env).unit}."
        for name in _find_foreign_keys(env)
    ]
    return found
