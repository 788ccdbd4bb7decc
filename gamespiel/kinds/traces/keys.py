"""The keys of code tracing in the ``env`` section, and its environments."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import WHOLE, key
from gamespiel.kinds.keys import PART, EnvKeys, server_arguments

REPLY_ENVIRONMENT, LINES_ENVIRONMENT = "CodeTrace-v0", "CodeTraceLines-v0"

Level = Annotated[int, Field(ge=1, le=10), WHOLE]


@dataclass(frozen=True, config=PART)
class TraceKeys(EnvKeys):
    """The keys of code tracing."""

    source: str = key("builtin", "traces: builtin, hub, or a JSONL or Parquet file of programs")
    level: Level | None = key(None, "traces: builtin programs of this level alone")
    family: str | None = key(None, "traces: builtin programs of this family alone")
    injector: Literal["safe", "affine"] = key("safe", "traces: who puts in the debug prints")
    require: Literal["namespaces", "limits"] = key(
        "namespaces",
        "traces: what programs of data sets need; limits: run them without protection, at your risk",
    )
    scoring: Literal["affine", "exact", "lines"] = key("affine", "traces: the score that is paid")
    by_line: bool = key(False, "traces, with decode text: one line of output per turn")


def trace_arguments(env: TraceKeys) -> dict[str, Any]:
    """Returns the section as arguments of any tracing environment; without task ids, all are drawn."""
    return {
        "task_id": env.task_id,
        "task_ids": list(env.task_ids) or None,
        "source": env.source,
        "level": env.level,
        "family": env.family,
        "injector": env.injector,
        "require": env.require,
        "scoring": env.scoring,
        **server_arguments(env),
    }


def reply_environment(env: TraceKeys) -> str:
    """Returns the id of the environment that takes replies as the section asks for them."""
    return LINES_ENVIRONMENT if env.by_line else REPLY_ENVIRONMENT
