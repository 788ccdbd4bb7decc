"""A game played by a model behind an endpoint, by the rules of upstream's ``evaluate``."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import Ending, LocalBackend
from game_gym.conversation import TRIES, refusal_message, system_message, turn_message
from game_gym.spec import State, Variant
from game_gym.task import Task
from game_gym.text_env import read_unlisted
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import Chat, EndpointError, Message
from gamespiel.endpoints.completion import Usage
from gamespiel.endpoints.history import SeatHistory, read_seat_history
from gamespiel.endpoints.stopwatch import Stopwatch
from task_gym.arguments import is_whole
from task_gym.caller import CALLER
from task_gym.contract import is_success
from task_gym.errors import StateTextError
from task_gym.remote.protocol import REFUSED_ARGUMENTS
from task_gym.replies import visible, whole_reply

TIMEOUT = EPISODE_S["game"]
"""Seconds that a game may take."""

Reply = Callable[[Sequence[Message]], str]


class ChatAgent:
    """A model's part of one game: the conversation so far, and how a move is asked for.

    Args:
        variant: The game.
        reply: Returns the model's reply to a conversation.
        list_actions: Whether the model is shown the list of legal actions.

    Attributes:
        conversation: The messages so far.
        refused: Replies that named no legal action.
        gave_up: Whether the last move was not found.
    """

    def __init__(self, variant: Variant, reply: Reply, list_actions: bool = True) -> None:
        self._variant, self._reply, self._lists = variant, reply, list_actions
        self.conversation: list[Message] = []
        self.refused = 0
        self.gave_up = False

    def move(self, state: State, seat: int, legal: Sequence[int]) -> int | None:
        """Returns the action that the model chooses; None after ``TRIES`` replies that name none."""
        names, _ = self._variant.choices(state, seat, legal)
        said = self.conversation
        if not said:
            said.append(system_message(self._variant, list_actions=self._lists))
        said.append(turn_message(self._variant, state, seat, legal, names, list_actions=self._lists))
        for tried in range(1, TRIES + 1):
            text = visible(self._reply(said))
            said.append({"role": "assistant", "content": text})
            action = self._read(text, legal, names)
            if action is not None:
                return action
            self.refused += 1
            said.append(refusal_message(self._variant, tried, list_actions=self._lists))
        self.gave_up = True
        return None

    def _read(self, text: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
        return (whole_reply if self._lists else read_unlisted)(text, legal, names)


def play_game(
    chat: Chat,
    task: Task,
    seed: int,
    opponent: str,
    timeout: float = TIMEOUT,
    seat: int | None = None,
    *,
    list_actions: bool = True,
) -> dict[str, Any]:
    """Plays a game to its end; returns what upstream's ``evaluate`` returns.

    A game that the model gives up by three replies without a legal action has score 0. A game that fails has
    "error", and its score means nothing.

    Args:
        chat: The model.
        task: The game.
        seed: Its seed, which the protocol "evaluate" expands.
        opponent: The opponent's name.
        timeout: Seconds that the game may take. A reply is given up then, and the search of an opponent if
            it runs for a ``task_gym.caller.Caller``; other moves of opponents are waited for.
        seat: The model's seat; None for the one that the seed gives.
        list_actions: Whether the model is shown the list of legal actions, as upstream shows it.
    """
    began, usage, variant, stopwatch = time.monotonic(), Usage(), task.variant, Stopwatch()
    deadline = began + timeout

    def reply(messages: Sequence[Message]) -> str:
        text, counted = chat.request_reply(messages, seed, deadline)
        usage.add(counted)
        return text

    agent, error, kind = ChatAgent(variant, reply, list_actions), "", "game_failure"
    backend = LocalBackend("evaluate", rules=False, make_bot=stopwatch.make_bot)
    ending: Ending | None = None
    caller = CALLER.get()
    try:
        with nullcontext() if caller is None else caller.limited(timeout):
            turn = backend.start(task, seed, opponent, seat)
            while turn.ending is None:
                action = agent.move(backend.state, turn.seat, turn.legal)
                turn = backend.forfeit() if action is None else backend.play(action)
                if time.monotonic() > deadline:
                    raise TimeoutError
            ending = turn.ending
        if ending.result == "fault":
            error = ending.fault or "the game was left without a legal move and without an end"
    except TimeoutError:
        error = f"the game was not over after {timeout:g} s"
    except StateTextError as failure:
        error = str(failure)
    except EndpointError as failure:
        error, kind = str(failure), chat.classify_failure(failure)
    extra = _describe_game(
        variant.spec.name,
        task.task_id,
        seed,
        opponent,
        backend.seat,
        conversation=agent.conversation,
        history=read_seat_history(variant, backend.state, backend.seat),
        returns=None if ending is None or agent.gave_up else ending.returns,
        usage=usage,
    )
    extra |= {"refused_replies": agent.refused, "given_up": agent.gave_up, **stopwatch.to_dict(backend.seat)}
    score = 0.0 if ending is None or ending.score is None else ending.score
    return _describe_result(variant.spec.name, score, time.monotonic() - began, extra, error, kind)


def describe_refused_game(
    error: str, game: str | None, task_id: Any, seed: Any, opponent: Any
) -> dict[str, Any]:
    """Returns what upstream's ``evaluate`` returns of a game that cannot begin.

    Args:
        error: Why it cannot.
        game: The game's name; None if it is not known.
        task_id: The task id, as it was given.
        seed: The seed, as it was given.
        opponent: The opponent, as it was given.
    """
    game = game or "unknown"
    extra = _describe_game(game, task_id, seed, opponent, int(seed) % 2 if is_whole(seed) else None)
    return _describe_result(game, 0.0, 0.0, extra, error, REFUSED_ARGUMENTS)


def _describe_result(
    game: str, score: float, seconds: float, extra: dict[str, Any], error: str, kind: str
) -> dict[str, Any]:
    result = {
        "task_name": f"openspiel:{game}",
        "score": score,
        "success": is_success(score),
        "time_taken": seconds,
        "extra": extra,
    }
    return result | {"error": error, "error_type": kind} if error else result


def _describe_game(
    game: str,
    task_id: Any,
    seed: Any,
    opponent: Any,
    seat: int | None,
    *,
    conversation: Sequence[Message] = (),
    history: SeatHistory | None = None,
    returns: Sequence[float] | None = None,
    usage: Usage | None = None,
) -> dict[str, Any]:
    """Returns a result's "extra"; that of a game that did not begin says only what was asked for."""
    return {
        "conversation": list(conversation),
        "action_history": [] if history is None else history.actions,
        "observation": None if history is None else history.observation,
        "task_type": game,
        "game_name": game,
        "task_id": task_id,
        "seed": seed,
        "opponent_type": opponent,
        "llm_player_id": seat,
        "final_return": None if returns is None or seat is None else returns[seat],
        "all_returns": returns,
        "usage": (usage or Usage()).to_dict(),
    }
