"""Checks across keys: those that must agree, and those without effect."""

import dataclasses
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from gamespiel.config.layers import CHOOSING
from gamespiel.config.sections import Config, EnvConfig
from gamespiel.errors import ConfigError, InvalidValueError, Mistakes
from gamespiel.kinds import KINDS, kind_of
from gamespiel.kinds.keys import server_keys_without_effect
from gamespiel.kinds.kind import Kind
from task_gym.errors import quote
from task_gym.remote.settings import PASSWORD, has_password

STAGE_KEYS = (
    "curriculum.progression_window", "curriculum.promote", "curriculum.earlier_share", "curriculum.demote",
)  # fmt: skip
EVALUATION_KEYS = (
    "run.eval_episodes", "run.eval_seconds", "run.eval_opponents", "run.metric_for_best_model",
    "run.early_stopping_patience",
)  # fmt: skip
POOL_KEYS = ("self_play.pool_pick", "self_play.pool_every", "self_play.pool_size")


def validate(config: Config) -> Config:
    """Returns ``config`` if its keys agree.

    Raises:
        ConfigError: Two keys contradict each other, or one needs another.
        MistakesError: Several do.
    """
    config = dataclasses.replace(config, env=kind_of(config.env).complete_keys(config.env))
    mistakes = Mistakes()
    for error in (*_find_large_counts(config), *_find_task_mistakes(config)):
        mistakes.add(error)
    with mistakes.collect():
        kind_of(config.env).check_keys(config.env)
    for error in (*_find_run_mistakes(config), *_find_curriculum_mistakes(config)):
        mistakes.add(error)
    mistakes.raise_all()
    return config


LARGEST = 2**31 - 1


def _find_large_counts(config: Config) -> Iterator[ConfigError]:
    """Yields the first count that no array can have."""
    for section in dataclasses.fields(config):
        for field in dataclasses.fields(getattr(config, section.name)):
            value = getattr(getattr(config, section.name), field.name)
            if isinstance(value, int) and value > LARGEST and field.name not in ("seed", "task_id"):
                key = f"{section.name}.{field.name}"
                yield InvalidValueError(f"{key} must be at most {LARGEST:,}, not {quote(value)}")
                return


def _find_task_mistakes(config: Config) -> Iterator[ConfigError]:
    """Yields the errors of the model's keys and of the tasks', each of the keys that belong together once."""
    env, kind = config.env, kind_of(config.env)
    if config.model.use_4bit and config.model.use_8bit:
        yield ConfigError("model.use_4bit and model.use_8bit contradict each other: set one of them")
    foreign = ((name, other) for name, other in _find_foreign_keys(env).items() if name in other.choice)
    chosen = [f"env.{name}" for name in CHOOSING if getattr(env, name) not in (None, ())]
    if pair := next(foreign, None):
        name, other = pair
        yield ConfigError(
            f"env.{name} = {getattr(env, name)!r} chooses {other.unit}, and env.env_type is "
            f"{env.env_type!r}: leave it out, or set env.env_type to {other.env_type!r}"
        )
    elif len(chosen) > 1:
        yield ConfigError(f"only one key may choose the {kind.unit}, not {' and '.join(chosen)}")
    if env.think and env.decode != "text":
        yield ConfigError(
            "env.think = true needs env.decode: text: where a model chooses among the legal answers, it has "
            "no place to reason in"
        )
    if env.decode == "text" and kind.replies is None:
        others = " or ".join(other.env_type for other in KINDS.values() if other.replies)
        yield ConfigError(
            f"env.decode = 'text' needs an environment that takes text, and env.env_type "
            f"{env.env_type!r} has none; allowed: {others}"
        )


def _find_foreign_keys(env: EnvConfig) -> dict[str, Kind[Any]]:
    """Returns the keys that are set and that this kind of task does not read, each with a kind that does."""
    default, kind_keys = EnvConfig(), {field.name for field in dataclasses.fields(kind_of(env).keys)}
    return {
        field.name: kind
        for kind in KINDS.values()
        for field in dataclasses.fields(kind.keys)
        if field.name not in kind_keys and getattr(env, field.name) != getattr(default, field.name)
    }


def _find_run_mistakes(config: Config) -> Iterator[ConfigError]:
    """Yields the errors of addresses: of environments, of vLLM servers and of a Ray cluster."""
    env, run = config.env, config.run
    if env.env_mode == "url" and env.base_url is None:
        yield ConfigError("env.env_mode = 'url' needs env.base_url, for example http://127.0.0.1:8000")
    if env.base_url is not None and has_password(env.base_url):
        yield ConfigError(f"env.base_url: {PASSWORD}")
    if run.use_vllm and not run.vllm_base_url:
        yield ConfigError("run.use_vllm needs run.vllm_base_url, for example http://localhost:8000/v1")
    urls = run.vllm_base_url or ()
    if any(map(has_password, urls.split(",") if isinstance(urls, str) else urls)):
        yield ConfigError(
            "run.vllm_base_url: an address with a user's name or password was given, allowed: one without; "
            "the token is in the environment variable VLLM_API_KEY"
        )
    if run.ray_address is None:
        return
    host, colon, port = run.ray_address.rpartition(":")
    is_address = host and "/" not in host and colon and port.isascii() and port.isdigit()
    if not run.env_workers:
        yield ConfigError(
            "run.ray_address needs run.env_workers, the number of workers on the cluster: one per CPU of it, "
            "for example"
        )
    elif run.ray_address != "auto" and not is_address:
        yield ConfigError(f"run.ray_address must be auto or host:port, as host:6379, not {run.ray_address!r}")


def _find_curriculum_mistakes(config: Config) -> Iterator[ConfigError]:
    """Yields the first error of the stages, and that of taking the list of actions away."""
    env: Any = config.env
    section = config.curriculum
    if error := _explain_stages(config):
        yield ConfigError(error)
    lists = env.list_actions or "list_actions" in _find_foreign_keys(config.env)
    if section.unlist_steps is not None and lists:
        yield ConfigError(
            "curriculum.unlist_steps leads to prompts without the list of legal actions, which are measured "
            "before and after: it needs games with env.list_actions: false"
        )
    elif section.unlist_steps is not None and kind_of(config.env).plays_itself(config.env):
        yield ConfigError(
            "curriculum.unlist_steps is for games against an opponent, and with env.opponent: self the "
            "policy plays every seat: leave one of them out"
        )


def _explain_stages(config: Config) -> str:
    """Returns what is wrong with the stages; "" for nothing."""
    section, kind = config.curriculum, kind_of(config.env)
    if (section.stages or section.replays) and kind.plays_itself(config.env):
        return (
            "curriculum.stages and curriculum.failure_replay_prob judge games against an opponent, and with "
            "env.opponent: self the policy plays every seat: leave one of them out"
        )
    for i, stage in enumerate(section.stages):
        where, opponent = f"curriculum.stages[{i}]", {"opponent": stage.opponent}
        if section.sampler != "stages" and (stage.threshold or stage.min_episodes):
            return (
                f"{where} has a threshold or min_episodes, which curriculum.sampler = {section.sampler!r} "
                "has no use for: leave them out"
            )
        env: Any = config.env
        if stage.opponent and kind.plays_itself(dataclasses.replace(env, **opponent)):
            return (
                f"{where}.opponent: 'self' plays no stage, which judges games against an opponent: name "
                "another, or leave curriculum.stages out and set env.opponent to self"
            )
        if stage.name in [other.name for other in section.stages[:i]]:
            return f"{where}.name must differ from the other stages', not be {stage.name!r} again"
    return ""


def notices(config: Config) -> list[str]:
    """Returns a sentence for each key that is set and has no effect, to be said once in the log."""
    ppo, curriculum, kind = config.ppo, config.curriculum, kind_of(config.env)
    sentences = []
    if config.lora.lora_dropout > 0:
        sentences.append(
            f"lora.lora_dropout = {config.lora.lora_dropout} is applied nowhere: with dropout, old and new "
            "probabilities differ with no update at all, so PPO's ratio would be wrong."
        )
    if config.model.use_nested_quant and not config.model.use_4bit:
        sentences.append("model.use_nested_quant = true has no effect without model.use_4bit.")
    if ppo.minibatch_unit == "prompt" and kind.uses_conversations(config.env):
        sentences.append(
            "ppo.minibatch_unit = prompt has no effect with env.conversation: optimizer steps draw episodes."
        )
    if ppo.action_floor and not ppo.all_actions:
        sentences.append(f"ppo.action_floor = {ppo.action_floor:g} has no effect without ppo.all_actions.")
    sentences += evaluation_notices(config)
    if curriculum.success_scores and not (curriculum.stages or curriculum.replays):
        sentences.append("curriculum.success_scores has no effect without stages or failure replay.")
    if not kind.has_opponents and any(stage.opponent is not None for stage in curriculum.stages):
        sentences.append(f"curriculum.stages: opponent has no effect on {kind.unit}.")
    env: Any = config.env
    named = any(stage.task_id_range or stage.task_ids for stage in curriculum.stages)
    if kind.has_opponents and env.allowed_game_indices and named:
        sentences.append("env.allowed_game_indices replaces the task ids of curriculum.stages.")
    for keys, why in _list_rules(config):
        sentences += _list_idle(config, keys, f"has no effect{why}")
    return sentences


def _list_rules(config: Config) -> Iterator[tuple[Iterable[str], str]]:
    """Yields keys that have no effect in this configuration, and why: the end of a sentence."""
    ppo, curriculum = config.ppo, config.curriculum
    if ppo.num_minibatches:
        sizes = ("ppo.mini_batch_size", "ppo.gradient_accumulation_steps")
        yield sizes, ": ppo.num_minibatches divides the turns."
    if not curriculum.stages:
        yield ("curriculum.sampler", *STAGE_KEYS), " without curriculum.stages."
    elif curriculum.sampler != "stages":
        yield STAGE_KEYS, f" on curriculum.sampler = {curriculum.sampler}."
    if not curriculum.replays:
        replay = ("curriculum.failure_buffer_size", "curriculum.max_replays")
        yield replay, " without curriculum.failure_replay_prob."
    if not kind_of(config.env).plays_itself(config.env):
        yield (*POOL_KEYS, "self_play.learn"), ": it is for env.opponent: self."
    elif config.self_play.learn == "both":
        yield POOL_KEYS, ": with self_play.learn: both, no seat is played by a snapshot."
    if not ppo.magnet_coef:
        magnet = ("ppo.magnet_schedule", "ppo.magnet_end", "ppo.magnet_every", "ppo.magnet_rate")
        yield magnet, ": ppo.magnet_coef is 0."
    if config.run.eval_steps is None:
        yield EVALUATION_KEYS, " without run.eval_steps."
    if not config.run.env_workers:
        yield ("run.env_seconds",), " without run.env_workers."
    if config.env.decode == "text":
        why = "it is for choices among legal answers (env.decode), and replies have none that are listed."
        yield ("ppo.legal_coef", "ppo.legal_target"), f": {why}"
    else:
        why = "it is for text replies (env.decode), and policies choose among legal answers at temperature 1."
        writing = ("ppo.temperature", "ppo.max_new_tokens", "ppo.cut_penalty", "ppo.kl_estimator")
        yield writing, f": {why}"


def _list_idle(config: Config, keys: Iterable[str], why: str) -> list[str]:
    """Returns a sentence for each of the keys that is set."""
    default = Config()
    return [
        f"{key} = {attrgetter(key)(config)} {why}"
        for key in keys
        if attrgetter(key)(config) != attrgetter(key)(default)
    ]


def evaluation_notices(config: Config) -> list[str]:
    """Returns those ``notices`` that are for evaluations too: about sampling and the ``env`` section."""
    env = config.env
    servers = ("run.vllm_base_url", "run.vllm_adapter_dir", "run.vllm_gap_limit")
    idle = () if config.run.use_vllm else servers
    sentences = _list_idle(config, idle, "is not used: run.use_vllm is false.")
    sentences += [
        f"env.{name} = {getattr(env, name)!r} has no effect with env.env_mode {env.env_mode}."
        for name in server_keys_without_effect(env)
    ]
    sentences += [
        f"env.{name} = {getattr(env, name)!r} has no effect on {kind_of(env).unit}."
        for name in _find_foreign_keys(env)
    ]
    return sentences
