"""The backend that plays games on a server, in the sessions of affinetes' protocol."""

from __future__ import annotations

import re
from math import inf
from typing import Any

import pyspiel

from game_gym.backends.base import OBSERVATION_LENGTH, Ending, GameTurn
from game_gym.prompts import RULES_END, render_end
from game_gym.protocols import PROTOCOLS
from game_gym.score import forfeit_returns, outcome, seat_scores
from game_gym.spec import State, Variant
from game_gym.task import Task
from task_gym.arguments import is_number
from task_gym.contract import SUCCESS, is_success, result_of
from task_gym.errors import ArgumentError, OpponentError
from task_gym.opponents import OPEN, playing_name
from task_gym.remote import Connection, Failure, Reply
from task_gym.remote.protocol import HEAD, check_address, read_choices

UPSTREAM_OPPONENTS = ("random", "mcts")
"""The opponents that upstream knows. It plays "random" in place of any other name, and does not say so."""

CLOSE = 1e-6
"""The largest difference between a score and the one that follows from the returns: texts round them."""

_RETURNS = re.compile(r"^Final Returns: \[([^\]\n]*)\]$", re.MULTILINE)
_WORD = re.compile(r"^Result: (WIN|DRAW|LOSS)$", re.MULTILINE)  # of a score above, at or below 0.5


class AffinetesBackend:
    """Plays games on a server. A call that fails ends its episode as a fault; the next ``start`` is clean.

    The server knows more than it tells: ``state`` is None, and so is every history. Returns and the scores of
    all seats are None if the server does not state them.

    Args:
        connection: The server.
        seeding: "openenv", the only protocol of sessions.
        rules: Whether observations begin with the rules. A server tells them in the first turn only.

    Attributes:
        state: Always None.
        playing: The opponent of this episode, or its stand-in.

    Raises:
        ArgumentError: another protocol was given.
    """

    def __init__(self, connection: Connection, seeding: str, rules: bool) -> None:
        if seeding != "openenv":
            raise ArgumentError(
                f"seeding: {seeding!r} was given with backend 'affinetes', allowed there: 'openenv', the "
                "protocol of reset and step"
            )
        self._connection, self._rules = connection, rules
        self._protocol = PROTOCOLS[seeding]
        self.state: State = None
        self.playing = ""
        self._variant: Variant
        self._asked: dict[str, Any] = {}  # the address, by the server's names
        self._episode: str | None = None
        self._seat = 0
        self._told = ""  # the rules with their headings, as the server words them

    def start(self, task: Task, seed: int, opponent: str, seat: int | None = None) -> GameTurn:
        """Begins an episode.

        Raises:
            ArgumentError: the game has no task id.
            OpponentError: the server does not know the opponent.
            BackendError: the server was never reached, or refuses the task.
        """
        assert seat is None, "the environment refuses seats: a server chooses them"
        self.close()
        if task.task_id is None:
            raise ArgumentError(
                f"game: {task.variant.spec.name!r} was given with backend 'affinetes', allowed there: "
                "task_id and task_ids, which name the games that a server knows"
            )
        if opponent == OPEN:
            raise OpponentError(
                "opponent: 'open' was given with backend 'affinetes', allowed there: opponents that play "
                "every other seat"
            )
        self._variant = variant = task.variant
        self._seat = self._protocol.seat(seed, variant.players)
        self.playing = playing_name(opponent, variant.game) if variant.players > 1 else opponent
        self._told = ""
        self._asked = {
            "task_id": task.task_id, "seed": seed, "game_name": variant.spec.name,
            "opponent_type": opponent, "opponent": self.playing, "llm_player_id": self._seat,
        }  # fmt: skip
        try:
            reply = self._connection.reset(task_id=task.task_id, seed=seed, opponent=opponent)
            self._episode = reply.episode
            self._check(reply, opponent)
            return self._read(reply, first=True)
        except Failure as failure:
            return self._fault(failure)

    def play(self, action: int) -> GameTurn:
        """Makes a legal move and plays up to the caller's next turn."""
        assert self._episode is not None
        try:
            reply = self._connection.step(self._episode, str(action))
            if reply.info.get("error") is not None:
                raise Failure("broken", f"the server refuses action {action}, which it listed as legal")
            return self._read(reply)
        except Failure as failure:
            return self._fault(failure)

    def forfeit(self) -> GameTurn:
        """Gives the game up, and gives the server no reason."""
        variant, returns = self._variant, None
        if variant.zero_sum or variant.players == 1:  # the other games' returns depend on the state
            returns = forfeit_returns([0.0] * variant.players, self._seat, variant.zero_sum, variant.low)
        scores = None if returns is None else seat_scores(variant, returns)
        if scores is not None:
            scores[self._seat] = 0.0
        return self._end(0.0, Ending(0.0, scores, returns, "loss", None))

    def cut(self) -> Ending:
        """Stops a game that could have gone on."""
        self.close()
        return Ending(0.0, None, None, "cut", None)

    def history(self) -> None:
        """Returns None: a server does not tell the opponents' and chance's actions."""

    def close(self) -> None:
        """Abandons the episode under way, if there is one."""
        if self._episode is not None:
            self._connection.stop(self._episode)
        self._episode = None

    def _check(self, reply: Reply, opponent: str) -> None:
        if opponent in UPSTREAM_OPPONENTS or reply.is_ours or self._variant.players == 1:
            return
        self.close()
        raise OpponentError(
            f"opponent: {opponent!r} was given, which this server does not know, allowed there: "
            f"{', '.join(map(repr, UPSTREAM_OPPONENTS))}"
        )

    def _read(self, reply: Reply, first: bool = False) -> GameTurn:
        """Returns the turn that a response is.

        Raises:
            Failure: it is none, or one of another game.
        """
        check_address(reply.info, self._asked)
        _check_length(reply.observation)
        if reply.done or reply.truncated:
            return self._over(reply)
        text = reply.observation
        if first:
            self._told = text[: text.find(RULES_END) + len(RULES_END)] if RULES_END in text else ""
            text = text[len(self._told) :]
        legal, names = self._choices(reply, text)
        if self._rules:
            text = self._told + text
            _check_length(text)
        return GameTurn(self._seat, text, legal, names, reply.reward, None)

    def _choices(self, reply: Reply, text: str) -> tuple[list[int], list[str]]:
        """Returns legal actions and names: from ``info`` if they are there, else from the text."""
        legal, names = reply.info.get("legal_actions"), reply.info.get("admissible_commands")
        if legal is None or names is None:
            self._check_listed(text)
            legal, names = read_choices(text)
        if not (_all(legal, int) and _all(names, str) and len(legal) == len(names) > 0):
            raise Failure("broken", f"the server lists no legal actions with their names: {legal!r:.80}")
        if list(legal) != sorted(set(legal)) or not 0 <= legal[0] <= legal[-1] < self._variant.actions:
            raise Failure(
                "broken",
                f"the server lists legal actions {legal!r:.80}, which are not ascending ids below "
                f"{self._variant.actions}: it plays another game than {self._variant.spec.name}",
            )
        return legal, names

    def _check_listed(self, text: str) -> None:
        """Raises Failure if a server cannot play a game of simultaneous moves.

        Upstream lists legal actions only if the seat alone is to move, which it never is in goofspiel. It
        would also encode a joint move by action ids where OpenSpiel decodes it by position.
        """
        together = self._variant.game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
        if together and HEAD not in text:
            raise Failure(
                "broken",
                f"the server lists no legal actions in {self._variant.spec.name}, whose moves are "
                "simultaneous: upstream's cannot be played there",
            )

    def _over(self, reply: Reply) -> GameTurn:
        self._episode = None if reply.done else self._episode
        info, score = reply.info, reply.info.get("score", reply.reward)
        returns = self._returns(reply)
        if info.get("result") == "fault":
            raise Failure("status", f"the server could not finish the game: {reply.observation[-300:]}")
        if reply.truncated:
            return self._end(reply.reward, Ending(0.0, None, returns, "cut", None), reply.observation)
        if HEAD in reply.observation:
            raise Failure("broken", "the server ends the game with a turn, which lists legal actions")
        if not (is_number(score) and 0 <= score <= 1):
            raise Failure("broken", f"the score is no number in [0, 1]: {score!r:.80}")
        if abs(score - reply.reward) > CLOSE:
            raise Failure("broken", f"the server states score {score} with reward {reply.reward}")
        scores = None if returns is None else seat_scores(self._variant, returns)
        result = result_of(score - SUCCESS) if returns is None else outcome(returns, self._seat, score)
        self._check_ending(reply, float(score), returns, result)
        return self._end(reply.reward, Ending(float(score), scores, returns, result, None), reply.observation)

    def _check_ending(self, reply: Reply, score: float, returns: list[float] | None, result: str) -> None:
        """Raises Failure if a server's score contradicts its returns, its result or its success."""
        variant, seat = self._variant, self._seat
        possible = [(score, result)]
        if returns is not None:
            # Or another seat gave the game up, and was placed last whatever its return is.
            placed = [
                [-inf if other == last else value for other, value in enumerate(returns)]
                for last in range(variant.players)
                if last != seat
            ]
            cases = [(ends, seat_scores(variant, ends)[seat]) for ends in (returns, *placed)]
            possible = [(seat_score, outcome(ends, seat, seat_score)) for ends, seat_score in cases]
        fitting = {seat_result for seat_score, seat_result in possible if abs(seat_score - score) <= CLOSE}
        stated, success = reply.info.get("result"), reply.info.get("success")
        if not fitting:
            raise Failure("broken", f"the server states score {score} with returns {returns!r:.80}")
        if stated is not None and stated not in fitting:
            raise Failure("broken", f"the server states result {stated!r:.40} with score {score}")
        if (word := _WORD.search(reply.observation)) and word[1].lower() != result_of(score - SUCCESS):
            raise Failure("broken", f"the server states {word[0]!r} with score {score}")
        if success is not None and success is not is_success(score):
            raise Failure("broken", f"the server states success {success!r:.40} with score {score}")

    def _returns(self, reply: Reply) -> list[float] | None:
        """Returns the returns that the server states in ``info`` or in the closing text; None if in neither.

        Raises:
            Failure: they are no numbers, one per seat, or text and ``info`` differ.
        """
        match, players = _RETURNS.search(reply.observation), self._variant.players
        stated: list[Any] = [] if reply.info.get("returns") is None else [reply.info["returns"]]
        if match:
            try:
                stated.append([float(number) for number in match[1].split(",")])
            except ValueError:
                stated.append(match[1])
        for returns in stated:
            if not (isinstance(returns, list) and len(returns) == players and all(map(is_number, returns))):
                raise Failure(
                    "broken", f"the server states returns {returns!r:.80}, needed: {players} numbers"
                )
        if len(stated) == 2 and any(abs(one - other) > CLOSE for one, other in zip(*stated, strict=True)):
            raise Failure(
                "broken", f"the server states returns {stated[0]!r:.80}, and {stated[1]!r:.80} in words"
            )
        return [float(value) for value in stated[0]] if stated else None

    def _end(self, reward: float, ending: Ending, text: str | None = None) -> GameTurn:
        """Returns the closing turn; without the server's text, in the words of the local backend."""
        self.close()
        if text is None or ending.returns is not None:
            text = render_end(self._variant, self._seat, ending.returns, ending.score, ending.result)
        return GameTurn(self._seat, text, [], [], reward, ending)

    def _fault(self, failure: Failure) -> GameTurn:
        return self._end(0.0, Ending(None, None, None, "fault", None, failure.sentence))


def _check_length(text: str) -> None:
    """Raises Failure if an observation is longer than its space allows."""
    if len(text) > OBSERVATION_LENGTH:
        most = f"allowed: at most {OBSERVATION_LENGTH}"
        raise Failure("broken", f"the server sent an observation of {len(text)} characters, {most}")


def _all(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)
