"""Configurations that are valid but ask for an engine this version does not have.

One row a missing engine: delete the row when it is built.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from gamespiel.config.errors import NotBuiltError
from gamespiel.config.sections import Config


class Missing(NamedTuple):
    """A key, the values of it that ask for something missing, and what works today."""

    key: str
    asks: Callable[[Any], bool]
    today: str


MISSING = (
    Missing("model.use_4bit", bool, "false, with model.dtype bfloat16"),
    Missing("env.env_mode", lambda value: value != "local", "'local'"),
    Missing("env.use_vllm", bool, "false: the model itself samples"),
    Missing("curriculum.stages", bool, "no stages: env.task_ids and env.opponent throughout"),
    Missing("curriculum.failure_replay_prob", lambda value: value > 0, "0"),
)


def require_built(config: Config) -> Config:
    """`config`, if this version can run it; else one `NotBuiltError` that names every key in the way."""
    rows = []
    for key, asks, today in MISSING:
        section, name = key.split(".")
        value = getattr(getattr(config, section), name)
        if asks(value):
            given = f"{len(value)} stages" if name == "stages" else repr(value)
            rows.append(f"{key} = {given} (works today: {today})")
    if rows:
        raise NotBuiltError("not built yet: " + "; ".join(rows))
    return config
