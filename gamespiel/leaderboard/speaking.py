"""Episodes of agents that write: played again from their replies alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from game_gym.backends import Ending, GameTurn
from game_gym.spec import State
from gamespiel.endpoints.games import Speaker
from gamespiel.leaderboard.agents import make_env_section
from gamespiel.leaderboard.benchmark import NOBODY, TRACE, Hand, load_task
from gamespiel.leaderboard.replaying import ReplayError, Row, make_row, play_hand
from task_gym.opponents import make_opponent

if TYPE_CHECKING:
    import gymnasium as gym

    from trace_gym.envs.text import CodeTraceEnv


class NoMoreRepliesError(Exception):
    """The end of the recorded replies."""


def replay_replies(
    hand: Hand,
    replies: Sequence[str],
    *,
    list_actions: bool,
    error: str | None = None,
    make_bot: Any = make_opponent,
) -> Row:
    """Returns the record of an episode by the rules of ``evaluate``, from its replies.

    Args:
        hand: The episode.
        replies: The replies, in order.
        list_actions: Whether its prompts list the legal actions; without the list a reply is a name.
        error: Why the agent gave no further reply, if it failed: then the episode is lost.
        make_bot: Makes the opponents.

    Raises:
        ReplayError: there are too few replies, and ``error`` does not say why; or too many.
    """
    if hand.task.startswith(TRACE):
        return _replay_trace(hand, replies, error)
    left, failed = list(reversed(replies)), False

    def reply(messages: Any) -> str:
        if not left:
            raise NoMoreRepliesError
        return left.pop()

    speaker = Speaker(load_task(hand.task_id).variant, reply, list_actions)

    def choose(state: State, turn: GameTurn) -> int | None:
        nonlocal failed
        try:
            return speaker.move(state, turn.seat, turn.legal, turn.names)
        except NoMoreRepliesError:
            if error is None:
                raise ReplayError(
                    f"the replies end after {len(replies)}, where the agent is to move"
                ) from None
            failed = True
            return None

    ending = play_hand(hand, choose, make_bot)
    if left:
        raise ReplayError(f"the game is over after {len(replies) - len(left)} of {len(replies)} replies")
    gave_up = speaker.gave_up or failed
    if ending.result == "fault":
        return make_row(hand, ending, replies=list(replies), error=ending.fault or error)
    return make_row(hand, ending, replies=list(replies), gave_up=gave_up or None, error=error)


def _replay_trace(hand: Hand, replies: Sequence[str], error: str | None) -> Row:
    env = _open_texts()
    env.reset(seed=hand.seed, options={"task_id": hand.task_id})
    if len(replies) > 1:
        raise ReplayError(f"a trace has one reply, and {len(replies)} are there")
    text = replies[0] if replies else ""
    row = {**hand._asdict(), "score": 0.0, "result": "loss", "returns": [0.0], "history": None}
    if text:  # an empty reply is compared with nothing, as upstream has it
        info = env.step(text)[4]
        row |= {"score": float(info["score"]), "result": info["result"], "returns": info["returns"]}
    del row["place"]
    return row | {"replies": list(replies)} | ({} if error is None else {"error": error})


@lru_cache(maxsize=1)
def _open_texts() -> CodeTraceEnv:
    from trace_gym.envs.text import CodeTraceEnv

    return CodeTraceEnv()


def replay_written(hand: Hand, row: Mapping[str, Any], entry: Mapping[str, Any]) -> Ending:
    """Plays an episode of a model that was here again, in the environment that read its replies.

    Args:
        hand: The episode.
        row: The record.
        entry: What the board says of the agent.

    Raises:
        ReplayError: there are more or fewer replies than the game has turns.
    """
    env = _open_replies(entry["env_type"], tuple(sorted(entry["asking"].items())))
    options: dict[str, Any] = {"task_id": hand.task_id}
    if not hand.task.startswith(TRACE):
        options["seat"] = hand.seat
    if hand.opponent != NOBODY:
        options["opponent"] = hand.opponent
    info = env.reset(seed=hand.seed, options=options)[1]
    for number, reply in enumerate(row["replies"]):
        if "result" in info:
            raise ReplayError(f"the game is over after {number} of {len(row['replies'])} replies")
        info = env.step(reply)[4]
    if "result" not in info:
        raise ReplayError(f"the replies end after {len(row['replies'])}, where the agent is to move")
    return Ending(
        info["score"],
        None,
        info.get("returns"),
        info["result"],
        info.get("history"),
        str(info.get("fault", "")),
    )


@lru_cache(maxsize=8)
def _open_replies(env_type: str, asking: tuple[tuple[str, Any], ...]) -> gym.Env[Any, Any]:
    from gamespiel.environments.making import make_reply_env

    return make_reply_env(make_env_section(env_type, dict(asking)))
