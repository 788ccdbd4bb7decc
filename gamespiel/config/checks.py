"""What the types cannot say: ranges, and keys that must agree."""

from gamespiel.config.errors import ConfigError, InvalidValueError
from gamespiel.config.layers import GAME_CHOICE
from gamespiel.config.parse import check_range
from gamespiel.config.schema import KEYS
from gamespiel.config.sections import Config, PPOConfig, TaskRange


def validate(config: Config) -> Config:
    """`config`, if every value is in its range and they agree; else an error that says which and why."""
    for section, fields in KEYS.items():
        values = getattr(config, section)
        for name, field in fields.items():
            check_range(getattr(values, name), field.metadata, f"{section}.{name}")
    _check_env(config)
    _check_stages(config)
    return config


def _check_env(config: Config) -> None:
    env = config.env
    chosen = [f"env.{name}" for name in GAME_CHOICE if getattr(env, name) not in (None, ())]
    if len(chosen) > 1:
        raise ConfigError(f"only one key may choose the games, not {' and '.join(chosen)}")
    if env.params and env.game is None:
        raise ConfigError("env.params needs env.game: a task id carries its own parameters")
    for i, item in enumerate(env.task_ids):
        if isinstance(item, tuple):
            _check_order(item, f"env.task_ids[{i}]")
    if env.use_vllm and env.vllm_base_url is None:
        raise ConfigError("env.use_vllm needs env.vllm_base_url, for example http://localhost:8000/v1")


def _check_stages(config: Config) -> None:
    stages = config.curriculum.stages
    names = [stage.name for stage in stages]
    for i, stage in enumerate(stages):
        where = f"curriculum.stages[{i}]"
        _check_order(stage.task_id_range, f"{where}.task_id_range")
        if stage.threshold is None and i < len(stages) - 1:
            raise ConfigError(f"{where}.threshold is missing: only the last stage goes without")
        if stage.name in names[:i]:
            raise ConfigError(f"{where}.name must differ from the other stages', not be {stage.name!r} again")


def _check_order(bounds: TaskRange, where: str) -> None:
    if bounds[0] > bounds[1]:
        raise InvalidValueError(f"{where} must be [first, last] with first <= last, not {list(bounds)}")


def notices(config: Config) -> list[str]:
    """What the configuration asks for that has no effect, a sentence each, to be said once in the log."""
    found = []
    if config.lora.lora_dropout > 0:
        found.append(
            f"lora.lora_dropout = {config.lora.lora_dropout} is applied nowhere: with dropout, old and new "
            "probabilities differ with no update at all, so PPO's ratio would be wrong."
        )
    if config.model.use_nested_quant and not config.model.use_4bit:
        found.append("model.use_nested_quant = true has no effect without model.use_4bit.")
    if config.env.vllm_base_url is not None and not config.env.use_vllm:
        found.append(f"env.vllm_base_url = {config.env.vllm_base_url} is not used: env.use_vllm is false.")
    if config.ppo.temperature != PPOConfig().temperature:
        found.append(
            f"ppo.temperature = {config.ppo.temperature} has no effect: it is of text replies, and games "
            "choose among legal actions at temperature 1."
        )
    return found
