"""The actor that plays games."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import GameTurn, LocalBackend
from game_gym.games import TABLE
from game_gym.opponents import search_processes
from game_gym.options import check_opponent
from game_gym.prompts import without_rules
from game_gym.protocols import PROTOCOLS
from game_gym.spec import choice_lines
from game_gym.task import CONFIGS, Task, TaskSet, decode
from gamespiel.endpoints.chat import Chat
from gamespiel.endpoints.games import describe_refused_game, play_game
from gamespiel.endpoints.logprobs import collect_full_logprobs
from gamespiel.serving.actors import ENDPOINT, MODEL, Actor, Response, explain_error, turn
from gamespiel.serving.options import ServeOptions
from task_gym.contract import CLOSING, ILLEGAL_REWARD
from task_gym.errors import (
    ArgumentError,
    GameError,
    OpponentError,
    SeedError,
    TaskIdError,
    check_choice,
    explain_unknown,
)
from task_gym.processes import OFFERED
from task_gym.replies import Parser, first_number, whole_reply

OPPONENTS = ("random", "first", "mcts", "mcts-python", "ismcts")
"""The opponents that a request may name. Others may read files, or need a caller for every seat."""

MOST_ROLLOUTS = 1_000_000
"""The most simulations times rollouts per move that a request may ask for; upstream's most is 600 000."""

HASTE = 20.0
"""Seconds before the end of its time at which a game is given up, or a tenth of the time if that is less."""

_PARSERS: dict[str, Parser] = {"openenv": first_number, "evaluate": whole_reply}
_SHOWN = 10  # legal actions in the answer to a reply that names none


class GameEpisode:
    """One game, played as upstream's sessions do: an illegal reply changes nothing, however often.

    Args:
        task: The game.
        seed: Its seed.
        opponent: The opponent's name, as the request has it.
        player: The name of the opponent that plays.
        seeding: "openenv" or "evaluate".
    """

    def __init__(self, task: Task, seed: int, opponent: str, player: str, seeding: str) -> None:
        self._task, self._seed, self._opponent = task, seed, opponent
        self._parse = _PARSERS[seeding]
        self._backend: LocalBackend | None = LocalBackend(seeding, rules=True)
        self._turn = self._backend.start(task, seed, player)
        self._paid = 0.0
        self._note_turn(self._backend)

    def response(self) -> Response:
        """Returns the present turn, which is the first one."""
        return self._make_response(self._turn, self._turn.text, self._turn.reward)

    def state(self) -> Response:
        """Returns the present turn without rules, and with reward 0."""
        return self._make_response(self._turn, self._text, 0.0)

    def step(self, reply: str) -> Response:
        """Makes the move that a reply names."""
        now = self._turn
        if now.ending is not None:
            error = explain_error("episode_done", "the episode is over: reset begins another")
            return self._make_response(now, self._text, 0.0, error=error)
        action = self._parse(reply, now.legal, now.names)
        if action is None:
            error = explain_error("invalid_action", "Could not parse action ID")
            return self._make_response(now, _explain_refusal(reply, now), ILLEGAL_REWARD, error=error)
        backend = self._backend
        assert backend is not None
        self._turn = now = backend.play(action)
        self._paid += now.reward
        self._note_turn(backend)
        return self._make_response(now, self._text, now.reward)

    def _note_turn(self, backend: LocalBackend) -> None:
        """Notes what is shown of the present turn; after the end the game, with its searches, is let go."""
        now = self._turn
        # As upstream shows it after the first turn: without the rules.
        self._text = now.text if now.ending is not None else without_rules(now.text, self._task.variant)
        self._playing = backend.playing
        # As upstream counts them: moves that are made together are one.
        seats = [pair.player for pair in backend.state.full_history() if pair.player >= 0]
        together = self._task.variant.game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        self._moves = seats.count(now.seat) if together else len(seats)
        if now.ending is not None:
            self._backend = None

    def _make_response(self, now: GameTurn, text: str, reward: float, **more: Any) -> Response:
        ending, variant = now.ending, self._task.variant
        info = {
            "task_id": self._task.task_id,
            "seed": self._seed,
            "game_name": variant.spec.name,
            "llm_player_id": now.seat,
            "opponent_type": self._opponent,
            "opponent": self._playing,
            "step_count": self._moves,
            "cumulative_reward": self._paid,
            "legal_actions": now.legal,
            "admissible_commands": now.names,
            "action_mask": pack_mask(now.legal, variant.actions),
            **more,
        }
        if ending is not None:
            info |= {"score": ending.score, "scores": ending.scores, "returns": ending.returns}
            info["result"] = ending.result
            if ending.fault:
                info["fault"] = ending.fault
        fault = ending is not None and ending.result == "fault"
        return turn(text, reward, ending is not None, fault, info)


class GameActor(Actor):
    """Plays the games of the task-id table."""

    kind = "game"
    unknown_info: Response = {  # noqa: RUF012  (a constant)
        "task_id": None, "seed": None, "game_name": None, "llm_player_id": None, "opponent_type": None,
        "step_count": 0, "cumulative_reward": 0.0,
    }  # fmt: skip

    def __init__(self, options: ServeOptions) -> None:
        super().__init__(options)
        self._opponents = (*OPPONENTS, *options.opponents)
        self._search = "mcts-python" if options.upstream_search else "mcts"

    def start(self) -> None:
        """Begins to start what searches."""
        if OFFERED:
            search_processes.nursery.start()

    def reset(
        self, task_id: Any = None, seed: Any = None, opponent: Any = "mcts", seeding: Any = "openenv"
    ) -> Response:
        """Begins a game. Without a task id or a seed, one is drawn.

        As upstream, it takes a task id as text or as a float, too.
        """
        check_choice("seeding", seeding, PROTOCOLS)
        task = _choose_task(_read_task_id(task_id))
        player = self._choose_player(opponent, task)
        return self.begin(seed, lambda drawn: GameEpisode(task, drawn, opponent, player, seeding))

    def evaluate(
        self,
        task_id: Any = None,
        seed: Any = None,
        model: Any = MODEL,
        base_url: Any = ENDPOINT,
        timeout: Any = None,
        temperature: Any = None,
        api_key: Any = None,
        opponent: Any = "mcts",
        collect_logprobs: Any = False,
        max_tokens: Any = None,
        seeding: Any = "evaluate",
    ) -> Response:
        """Plays a whole game with a model, by the protocol "evaluate".

        As upstream, arguments with which no game can be played are a result with "error".

        Args:
            task_id: The task; None for a drawn one.
            seed: The seed; None for a drawn one.
            model: The model's name at the endpoint.
            base_url: The endpoint's address, up to and with "/v1".
            timeout: Seconds that the call may take; None for 1800. The game is given up a little earlier, so
                that its result arrives.
            temperature: The temperature; None for the endpoint's own.
            api_key: The endpoint's key; without it the server's own, if it is for this host.
            opponent: The opponent.
            collect_logprobs: Whether the endpoint is asked for the log-probabilities of the whole
                conversation, which are in ``extra["full_logprobs"]`` then.
            max_tokens: The most tokens of a reply; None for the endpoint's own limit.
            seeding: "evaluate", the only protocol of whole games.

        Raises:
            HostError: the server may not ask this host.
        """
        game = None
        try:
            check_choice("seeding", seeding, ("evaluate",))
            if not isinstance(collect_logprobs, bool | None):
                raise ArgumentError(
                    f"collect_logprobs: {collect_logprobs!r:.80} was given, allowed: True or False"
                )
            task = _choose_task(task_id)
            game = task.variant.spec.name
            player = self._choose_player(opponent, task)

            def play(chat: Chat, drawn: int, limit: float) -> Response:
                result = play_game(chat, task, drawn, player, max(limit - HASTE, limit * 0.9))
                result["extra"]["opponent_type"] = opponent
                if collect_logprobs and result["extra"]["conversation"]:
                    result["extra"] |= collect_full_logprobs(chat, result["extra"]["conversation"])
                return result

            endpoint = model, base_url, api_key
            return self.ask(play, seed, endpoint, timeout, temperature, max_tokens)
        except (ArgumentError, TaskIdError, GameError, OpponentError, SeedError) as error:
            return describe_refused_game(str(error), game, task_id, seed, opponent)

    def _choose_player(self, opponent: Any, task: Task) -> str:
        """Returns the opponent that plays if a request names this one.

        Raises:
            OpponentError: a request may not name it for this task.
        """
        if not isinstance(opponent, str) or opponent.partition(":")[0] not in self._opponents:
            raise OpponentError(explain_unknown("opponent", opponent, self._opponents))
        check_opponent(opponent, TaskSet(task_id=task.task_id))
        name, colon, budget = opponent.partition(":")
        numbers = re.findall(r"[0-9]+", budget)
        if any(len(number) > 7 for number in numbers) or np.prod([*map(int, numbers), 1]) > MOST_ROLLOUTS:
            raise OpponentError(
                f"opponent: {opponent!r:.80} was given, allowed: at most {MOST_ROLLOUTS} rollouts per move"
            )
        return f"{self._search if name == 'mcts' else name}{colon}{budget}"


def _read_task_id(task_id: Any) -> Any:
    """Returns a whole number that is a text or a float as an int, and anything else as it is."""
    convertible = isinstance(task_id, str) or (isinstance(task_id, float) and task_id.is_integer())
    try:
        return int(task_id) if convertible else task_id
    except ValueError:
        return task_id


def _choose_task(task_id: Any) -> Task:
    """Returns the task that a request names, or a drawn one.

    Raises:
        TaskIdError: there is no such task.
    """
    return decode(secrets.randbelow(len(TABLE) * CONFIGS) if task_id is None else task_id)


def _explain_refusal(reply: str, now: GameTurn) -> str:
    """Returns the answer to a reply that names no legal action, as upstream words it."""
    listed = choice_lines(now.legal[:_SHOWN], now.names[:_SHOWN])
    more = f"\n  ... and {len(now.legal) - _SHOWN} more" if len(now.legal) > _SHOWN else ""
    return (
        f'Invalid action: "{reply}"\n\nCould not parse a valid action ID. Please respond with just the '
        f"action ID number.\n\nLegal Actions:\n{listed}{more}\n\n{CLOSING}"
    )


def pack_mask(legal: Sequence[int], actions: int) -> dict[str, Any]:
    """Returns a mask for JSON: its length, and its bits (first action first) in base64."""
    mask = np.zeros(actions, dtype=np.uint8)
    mask[list(legal)] = 1
    return {"length": actions, "bits": base64.b64encode(np.packbits(mask).tobytes()).decode()}
