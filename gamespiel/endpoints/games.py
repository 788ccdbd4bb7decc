"""A game played by a model behind an endpoint, by the rules of upstream's ``evaluate``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyspiel

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import LocalBackend, Turn
from game_gym.spec import State, Variant
from game_gym.task import Task
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import Chat, EndpointError, Message, Usage
from gamespiel.endpoints.conversation import TRIES, refusal_message, system_message, turn_message
from task_gym.contract import is_success
from task_gym.replies import visible, whole_reply

TIMEOUT = EPISODE_S["game"]
"""Seconds that a game may take."""

Reply = Callable[[Sequence[Message]], str]


class Speaker:
    """A model's part of one game: the conversation so far, and how a move is asked for.

    Args:
        variant: The game.
        reply: Returns the model's reply to a conversation.

    Attributes:
        conversation: The messages so far.
        refused: Replies that named no legal action.
        gave_up: Whether the last move was not found.
    """

    def __init__(self, variant: Variant, reply: Reply) -> None:
        self._variant, self._reply = variant, reply
        self.conversation: list[Message] = []
        self.refused = 0
        self.gave_up = False

    def move(self, state: State, seat: int, legal: Sequence[int], names: Sequence[str]) -> int | None:
        """Returns the action that the model chooses; None after ``TRIES`` replies that name none."""
        said = self.conversation
        if not said:
            said.append(system_message(self._variant))
        said.append(turn_message(self._variant, state, seat, legal, names))
        for tried in range(1, TRIES + 1):
            text = visible(self._reply(said))
            said.append({"role": "assistant", "content": text})
            action = whole_reply(text, legal, names)
            if action is not None:
                return action
            self.refused += 1
            said.append(refusal_message(tried))
        self.gave_up = True
        return None


def play_game(chat: Chat, task: Task, seed: int, opponent: str, timeout: float = TIMEOUT) -> dict[str, Any]:
    """Plays a game to its end; returns what upstream's ``evaluate`` returns.

    A game that the model gives up by three replies without a legal action has score 0. A game that fails has
    "error", and its score means nothing.

    Args:
        chat: The model.
        task: The game.
        seed: Its seed, which the protocol "evaluate" expands.
        opponent: The opponent's name.
        timeout: Seconds that the game may take.
    """
    began, used, variant = time.monotonic(), Usage(), task.variant

    def reply(messages: Sequence[Message]) -> str:
        text, usage = chat.reply(messages, seed, began + timeout)
        used.add(usage)
        return text

    speaker, error, kind = Speaker(variant, reply), "", "game_failure"
    backend = LocalBackend("evaluate", rules=False)
    turn = opening = backend.start(task, seed, opponent)
    try:
        for turn in _turns(backend, opening, speaker):
            if turn.ending is not None and turn.ending.result == "fault":
                error = "the game was left without a legal move and without an end"
    except TimeoutError:
        error = f"the game was not over after {timeout:g} s"
    except EndpointError as failure:
        error, kind = str(failure), chat.failure(failure)
    ending = turn.ending
    score = 0.0 if ending is None or ending.score is None else ending.score
    returns = None if ending is None or speaker.gave_up else ending.returns
    extra = {
        "conversation": speaker.conversation,
        "action_history": action_history(variant, backend.state, turn.seat),
        "observation": turn.text,
        "task_type": variant.spec.name,
        "game_name": variant.spec.name,
        "task_id": task.task_id,
        "seed": seed,
        "opponent_type": opponent,
        "llm_player_id": turn.seat,
        "final_return": None if returns is None else returns[turn.seat],
        "all_returns": returns,
        "usage": used.to_dict(),
        "refused_replies": speaker.refused,
        "given_up": speaker.gave_up,
    }
    result = {
        "task_name": f"openspiel:{variant.spec.name}",
        "score": score,
        "success": is_success(score),
        "time_taken": time.monotonic() - began,
        "extra": extra,
    }
    return result | {"error": error, "error_type": kind} if error else result


def _turns(backend: LocalBackend, turn: Turn, speaker: Speaker) -> Iterator[Turn]:
    """Yields the turns of a game as they come, the given first one too; the last one has an ending."""
    yield turn
    while turn.ending is None:
        action = speaker.move(backend.state, turn.seat, turn.legal, turn.names)
        turn = backend.forfeit() if action is None else backend.play(action)
        yield turn


def action_history(variant: Variant, final: State, seat: int) -> list[dict[str, Any]]:
    """Returns every action of a game with its name, in upstream's form; chance has ``player_id`` -1."""
    state = variant.game.new_initial_state()
    made = [(pair.player, pair.action) for pair in final.full_history()]
    listed: list[dict[str, Any]] = []
    while made:
        count = variant.players if state.is_simultaneous_node() else 1
        now, made = made[:count], made[count:]
        for player, action in now:
            if action != pyspiel.INVALID_ACTION:
                name = state.action_to_string(player, action)
                named = {"player_id": int(player), "action": int(action), "action_str": name}
                listed.append(named | {"is_llm": player == seat})
        if state.is_simultaneous_node():
            state.apply_actions([action for _, action in now])
        else:
            state.apply_action(now[0][1])
    return listed
