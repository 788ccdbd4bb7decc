"""Checks across keys: those that must agree, and those without effect."""

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.config.errors import ConfigError
from gamespiel.config.layers import GAME_CHOICE, TRACE_CHOICE
from gamespiel.config.sections import Config, EnvConfig

WITHOUT_EFFECT = {
    "openspiel": ("injector", "scoring"),
    "trace": ("opponent", "seeding", "rules", "reward", "max_turns"),
}
"""By env_type, the keys of ``env`` that say how the other kind of task is played."""

OTHERS_CHOICE = {"openspiel": TRACE_CHOICE, "trace": ("game", "params", "allowed_game_indices")}
"""By env_type, the keys of ``env`` that choose tasks of the other kind."""

CALLED = {"openspiel": "games", "trace": "traces"}


def validate(config: Config) -> Config:
    """Returns ``config`` if its keys agree.

    Raises:
        ConfigError: Two keys contradict each other, or one needs another.
    """
    _check_env(config.env)
    _check_stages(config)
    return config


def _check_env(env: EnvConfig) -> None:
    for name in OTHERS_CHOICE[env.env_type]:
        if getattr(env, name) != getattr(EnvConfig(), name):
            other = next(kind for kind in CALLED if name not in OTHERS_CHOICE[kind])
            raise ConfigError(
                f"env.{name} = {getattr(env, name)!r} chooses {CALLED[other]}, and env.env_type is "
                f"{env.env_type!r}: leave it out, or set env.env_type to {other!r}"
            )
    chosen = [f"env.{name}" for name in GAME_CHOICE if getattr(env, name) not in (None, ())]
    if len(chosen) > 1:
        raise ConfigError(f"only one key may choose the games, not {' and '.join(chosen)}")
    if env.params and env.game is None:
        raise ConfigError("env.params needs env.game: a task id carries its own parameters")
    if env.use_vllm and env.vllm_base_url is None:
        raise ConfigError("env.use_vllm needs env.vllm_base_url, for example http://localhost:8000/v1")


def _check_stages(config: Config) -> None:
    stages = config.curriculum.stages
    names = [stage.name for stage in stages]
    for i, stage in enumerate(stages):
        where = f"curriculum.stages[{i}]"
        if stage.threshold is None and i < len(stages) - 1:
            raise ConfigError(f"{where}.threshold is missing: only the last stage goes without")
        if stage.name in names[:i]:
            raise ConfigError(f"{where}.name must differ from the other stages', not be {stage.name!r} again")


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
    found += env_notices(config.env)
    if config.ppo.temperature != Hyperparameters().temperature:
        found.append(
            f"ppo.temperature = {config.ppo.temperature} has no effect: it is for text replies, and games "
            "choose among legal actions at temperature 1."
        )
    return found


def env_notices(env: EnvConfig) -> list[str]:
    """Returns those :func:`notices` that are about the ``env`` section."""
    found = []
    if env.vllm_base_url is not None and not env.use_vllm:
        found.append(f"env.vllm_base_url = {env.vllm_base_url} is not used: env.use_vllm is false.")
    found += [
        f"env.{name} = {getattr(env, name)!r} has no effect on {CALLED[env.env_type]}."
        for name in WITHOUT_EFFECT[env.env_type]
        if getattr(env, name) != getattr(EnvConfig(), name)
    ]
    return found
