"""``state.json`` of a checkpoint, whose types are checked, whoever wrote it. This needs no PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gamespiel.agents.runs.catalog import CheckpointError
from task_gym.files import read_json

COUNTS = 10**15
"""The bound of counters: what is above it was not counted."""

_STRICT = with_config(ConfigDict(strict=True, extra="allow", allow_inf_nan=False))

Count = Annotated[int, Field(ge=0, lt=COUNTS)]
Step = Annotated[int, Field(ge=-1, lt=COUNTS)]
Tokens = Annotated[int, Field(ge=1, lt=COUNTS)]
Share = Annotated[float, Field(ge=0, le=1)] | Annotated[int, Field(ge=0, le=1)]


@_STRICT
class BudgetState(TypedDict):
    """A token budget."""

    given: Tokens
    in_force: Tokens


@_STRICT
class BudgetsState(TypedDict):
    """The two token budgets."""

    tokens_per_forward: BudgetState
    tokens_per_backward: BudgetState


@_STRICT
class BackoffState(TypedDict):
    """The reductions of the learning rate after divergence."""

    rate_factor: Annotated[float, Field(gt=0, le=1)] | Annotated[int, Field(gt=0, le=1)]
    step: Step
    halvings: Count


@_STRICT
class MagnetState(TypedDict):
    """The magnet's snapshot."""

    step: Count


@_STRICT
class MemberState(TypedDict):
    """A snapshot of the pool."""

    step: Count
    games: Annotated[int | float, Field(ge=0, lt=COUNTS)]
    win_rate: Share


@_STRICT
class BaseState(TypedDict):
    """The base model, and the adapters' scale."""

    model_name: str
    r: Tokens
    lora_alpha: Annotated[int | float, Field(gt=0)]


@_STRICT
class State(TypedDict):
    """All of it. A run without a magnet, or without a pool, has no entry for it."""

    step: Count
    num_timesteps: Count
    n_updates: Count
    kl_coefficient: Annotated[int | float, Field(ge=0)]
    seconds: Annotated[int | float, Field(ge=0, lt=COUNTS)]
    base: BaseState
    parts: Tokens | None
    skipped_in_a_row: Count
    backoff: BackoffState
    tokens: BudgetsState
    threads: NotRequired[Annotated[int, Field(ge=1, le=4096)]]
    magnet: NotRequired[MagnetState]
    pool: NotRequired[list[MemberState]]


_STATE = TypeAdapter(State)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """Returns what ``state.json`` of a checkpoint has.

    Raises:
        CheckpointError: it cannot be read, lacks an entry, or has one of another type or out of its range.
    """
    path = checkpoint / "state.json"
    state: dict[str, Any] = read_json(path, CheckpointError)
    try:
        _STATE.validate_python(state)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            raise CheckpointError(f"{path}: {place} is missing") from error
        raise CheckpointError(f"{path}: {place} is {first['input']!r:.60}: {first['msg']}") from error
    return state
