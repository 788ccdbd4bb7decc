"""Episodes as they were played, one JSON object per line: enough to replay them and to make data sets of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gamespiel.agents.models import NEWEST
from gamespiel.errors import ConfigError
from task_gym.contract import ILLEGAL_REWARD
from task_gym.files import NO_JSON, explain_json, read_file, read_finite, write_atomically
from task_gym.wrappers import ConversationText

if TYPE_CHECKING:  # reading records needs no PyTorch
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.rollout import Episode, Turn
    from gamespiel.config import EnvConfig

GAMES = "games.jsonl"
"""The file of a run's games."""

ADDRESS = ("task_id", "seed", "game", "seat", "opponent")
ENDING = ("result", "score", "success", "returns", "history")

GAME_KIND = "openspiel"
"""The kind of task whose moves have names."""

_AT_ONCE = 32
"""Turns whose probabilities are computed together."""

Record = dict[str, Any]

_OPEN = with_config(ConfigDict(extra="allow", strict=True))
Number = int | float
Probability = Number | None


@_OPEN
class TurnShape(TypedDict):
    """The types of a recorded turn's entries."""

    observation: str
    legal_actions: list[int]
    names: list[str] | None
    action: int | None
    answer: str
    probabilities: list[Probability] | None
    value: Number | None
    reward: Number


@_OPEN
class MessageShape(TypedDict):
    """The types of a message's entries."""

    role: str
    content: str


@_OPEN
class RecordShape(TypedDict):
    """The types of a record's entries. Others are kept as they are."""

    env_type: str
    params: dict[str, Any] | None
    task_id: int | None
    seed: int
    game: str | None
    seat: int | None
    opponent: str | None
    result: str
    score: Number | None
    success: bool
    returns: list[Number] | None
    history: list[Any] | None
    turns: list[TurnShape]
    final_observation: str
    conversation: NotRequired[list[MessageShape]]
    player: NotRequired[str]
    step: NotRequired[int]


_SHAPE = TypeAdapter(RecordShape)


def records(
    episodes: Iterable[Episode],
    env: EnvConfig,
    player: str,
    policy: LLMPolicy | None = None,
    *,
    adapters: str = NEWEST,
    **more: Any,
) -> list[Record]:
    """Returns episodes as plain data.

    Args:
        episodes: The episodes.
        env: The configuration that they were played with.
        player: The name of who played.
        policy: The policy that played; it adds probabilities and values. None for a baseline.
        adapters: Name of the adapters that played.
        **more: Further entries of every record.
    """
    return [
        {
            "player": player,
            "env_type": env.env_type,
            **more,
            **{key: episode.info.get(key) for key in ADDRESS},
            "seed": episode.seed,
            "params": _read_params(env) if episode.info.get("task_id") is None else None,
            **{key: episode.info.get(key) for key in ENDING},
            "turns": _record_turns(episode, env, policy, adapters),
            "final_observation": episode.final_observation,
            **_read_conversation(episode.turns),
        }
        for episode in episodes
    ]


def _record_turns(
    episode: Episode, env: EnvConfig, policy: LLMPolicy | None, adapters: str
) -> list[dict[str, Any]]:
    odds = _ask_probabilities(episode.turns, policy, adapters)
    named = _name_actions(episode, env)
    return [
        {
            "observation": str(turn.observation),
            "legal_actions": legal,
            "names": names,
            "action": action,
            "answer": turn.answer,
            "probabilities": probabilities,
            "value": None if turn.decision is None else turn.decision.value,
            "reward": float(turn.reward),
        }
        for turn, probabilities, (legal, names, action) in zip(episode.turns, odds, named, strict=True)
    ]


def _read_conversation(turns: Sequence[Turn]) -> dict[str, list[dict[str, str]]]:
    """Returns the messages of an episode that was one conversation, the last answer's included."""
    last = turns[-1] if turns else None
    if last is None or not isinstance(last.observation, ConversationText) or not last.observation.messages:
        return {}
    return {"conversation": [*last.observation.messages, {"role": "assistant", "content": last.answer}]}


def _ask_probabilities(
    turns: Sequence[Turn], policy: LLMPolicy | None, adapters: str
) -> list[list[float] | None]:
    """Returns the probability of each legal action per turn, or None where nothing was masked."""
    if policy is None or not all(turn.action_mask.size for turn in turns):
        return [None] * len(turns)
    turn_odds: list[list[float] | None] = []
    for start in range(0, len(turns), _AT_ONCE):
        some = turns[start : start + _AT_ONCE]
        legal = [turn.action_mask.nonzero()[0].tolist() for turn in some]
        odds = policy.distribution([turn.observation for turn in some], legal, adapters=adapters)
        turn_odds += [probabilities.tolist() for probabilities in odds]
    return turn_odds


def _read_params(env: Any) -> dict[str, Any]:
    """Returns the parameters of a named game; the section's keys are put together when it is made."""
    return dict(getattr(env, "params", {}))


Named = tuple[list[int], list[str] | None, int | None]
"""Legal actions, their names if they are known, and the action that was taken; None for an illegal one."""


def _name_actions(episode: Episode, env: EnvConfig) -> list[Named]:
    """Returns each turn's legal actions with names, which the game is played again for."""
    history, seat = episode.info.get("history"), episode.info.get("seat")
    if env.env_type != GAME_KIND or history is None:  # a server may keep the moves to itself
        return [_list_actions(turn) for turn in episode.turns]
    from game_gym.transcript import positions

    params = {"params": _read_params(env)}
    variant = variant_of({**episode.info, **params}, allow_files=getattr(env, "allow_files", False))
    actions: list[Named] = []
    turns = iter(episode.turns)
    for state, moves in positions(variant, history):
        if not moves:  # the end, or a position in which the seat gave the game up
            rest = list(turns)
            legal = state.legal_actions(seat) if rest and not state.is_terminal() else []
            actions += [(legal, variant.choices(state, seat, legal)[0], None) for _ in rest]
            break
        seat_move = next((move for move in moves if move.player == seat), None)
        if seat_move is None:
            continue
        legal = state.legal_actions(seat)
        names = variant.choices(state, seat, legal)[0]
        for turn in turns:
            illegal = turn.reward == ILLEGAL_REWARD and turn.action not in legal
            actions.append((legal, names, None if illegal else seat_move.action))
            if not illegal:
                break
    return actions


def _list_actions(turn: Turn) -> Named:
    legal = turn.action_mask.nonzero()[0].tolist()
    return legal, None, int(turn.action) if turn.action_mask.size else None


def variant_of(record: Mapping[str, Any], *, allow_files: bool = False) -> Any:
    """Returns the game of a record, with its parameters, as a ``game_gym.spec.Variant``.

    Args:
        record: The record.
        allow_files: Whether a parameter may name a file.

    Raises:
        GameError: there is no such game, or a parameter names a file that is not allowed.
    """
    from game_gym.games import find_game
    from game_gym.spec import load_variant
    from game_gym.task import decode

    if record["task_id"] is not None:
        return decode(record["task_id"]).variant
    return load_variant(find_game(record["game"]), record["params"] or {}, allow_files=allow_files)


def write_records(path: Path, rows: Iterable[Record]) -> Path:
    """Writes records, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    write_atomically(path, "".join(lines))
    return path


def add_records(path: Path, step: int, rows: Sequence[Record]) -> Path:
    """Adds a run's records of a step in place of all others but those from before training (step 0)."""
    old_rows = [row for row in read_records(path) if row.get("step", 0) == 0 < step] if path.exists() else []
    return write_records(path, [*old_rows, *({**row, "step": step} for row in rows)])


def read_records(place: Path) -> list[Record]:
    """Returns the records of a file, or of a run's folder.

    Raises:
        ConfigError: there is no such file, or it has other lines.
    """
    path = place / GAMES if place.is_dir() else place
    if not path.is_file():
        raise ConfigError(
            f"no games in {str(place)!r}: a run has them in {GAMES}, and an evaluation in the file that "
            "--save_games names"
        )
    rows = []
    # Not splitlines: a reply may hold a line separator that JSON writes as it is.
    for number, line in enumerate(read_file(path).removesuffix(b"\n").split(b"\n"), 1):
        try:
            record = json.loads(line.decode(), parse_constant=read_finite, parse_float=read_finite)
            row = _SHAPE.validate_python(record)
        except NO_JSON as error:  # of which a ValidationError is one
            reason = explain_json(error)
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                reason = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
            raise ConfigError(f"{str(path)!r}, line {number} is no recorded game: {reason}") from error
        rows.append(dict(row))
    return rows
