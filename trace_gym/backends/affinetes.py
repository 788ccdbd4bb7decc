"""The backend that asks a server for traces, in the sessions of affinetes' protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from task_gym.arguments import is_number
from task_gym.contract import SUCCESS, is_success, result_of
from task_gym.errors import ArgumentError
from task_gym.remote import Connection, Failure, Reply
from task_gym.remote.protocol import check_address
from trace_gym.backends.base import OBSERVATION_LENGTH

FACTS: Mapping[str, type] = MappingProxyType(
    {"family": str, "level": int, "row": int, "replaced": int, "sandbox": str, "python": str}
)
"""The keys of our server's ``info`` about a program, with their types. Upstream's server sends none."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A server's response to a question or an answer.

    Attributes:
        text: The observation.
        facts: The server's ``info``, which has more than the task.
        by_scoring: The scores by scoring, of an answer; {} of a question, and after a fault.
        fault: The failure that ended the episode, in one sentence; "" if there was none.
    """

    text: str
    facts: Mapping[str, Any]
    by_scoring: Mapping[str, float]
    fault: str = ""


class AffinetesBackend:
    """One episode at a time on a server, which shows the question and scores the answer.

    The program, its input and its truth are not shown to the client apart.

    Args:
        connection: The server.
        scoring: The scoring that the environment needs. Upstream's server has only "affine".
    """

    source = "affinetes"

    def __init__(self, connection: Connection, scoring: str) -> None:
        self._connection, self._scoring = connection, scoring
        self._episode: str | None = None
        self._asked: dict[str, Any] = {}  # the address, by the server's names

    def ask(self, task_id: int, seed: int) -> Answered:
        """Begins an episode and returns its question.

        Raises:
            ArgumentError: the server does not have the scoring.
            BackendError: the server was never reached, or refuses the task.
        """
        self.close()
        self._asked = {"task_id": task_id, "seed": seed}
        try:
            reply = self._connection.reset(task_id=task_id, seed=seed)
            self._episode = reply.episode
            self._check(reply)
        except Failure as failure:
            self.close()
            return _fault(failure)
        if self._scoring != "affine" and not reply.is_ours:
            self.close()
            raise ArgumentError(
                f"scoring: {self._scoring!r} was given, which this server does not have, allowed there: "
                "'affine'"
            )
        return Answered(reply.observation, reply.info, {})

    def answer(self, reply: str) -> Answered:
        """Answers the question, and ends the episode."""
        assert self._episode is not None
        try:
            response = self._connection.step(self._episode, reply)
            self._check(response)
            answered = Answered(response.observation, response.info, _scores(response, self._scoring))
        except Failure as failure:
            answered = _fault(failure)
        self.close()
        return answered

    def _check(self, reply: Reply) -> None:
        """Raises Failure unless a response is about the task that was asked for, and may be shown."""
        check_address(reply.info, self._asked)
        if (length := len(reply.observation)) > OBSERVATION_LENGTH:
            raise Failure(
                "broken",
                f"the server sent an observation of {length} characters, allowed: at most "
                f"{OBSERVATION_LENGTH}",
            )
        for name, kind in FACTS.items():
            value = reply.info.get(name)
            if value is not None and type(value) is not kind:  # episodes are grouped by these
                raise Failure("broken", f"the response's {name} is no {kind.__name__}: {value!r:.80}")

    def close(self) -> None:
        """Abandons the episode under way, if there is one."""
        if self._episode is not None:
            self._connection.stop(self._episode)
        self._episode = None


def _scores(response: Reply, scoring: str) -> dict[str, float]:
    """Returns the scores that a response states.

    Raises:
        Failure: the episode is not over, the wanted score is missing, one is outside [0, 1], or the response
            contradicts itself.
    """
    if not response.done or response.truncated:
        raise Failure("broken", "the server did not score the answer")
    stated = response.info.get("by_scoring", {"affine": response.reward})
    if not isinstance(stated, dict) or not {scoring, "affine"} <= stated.keys():
        raise Failure("broken", f"the server states no score {scoring!r}: {stated!r:.80}")
    for score in stated.values():
        if not (is_number(score) and 0 <= score <= 1):
            raise Failure("broken", f"a score is no number in [0, 1]: {score!r:.80}")
    score = float(stated["affine"])  # upstream's, which all else that the response says must fit
    expected = {"score": score, "result": result_of(score - SUCCESS), "success": is_success(score)}
    for name, value in expected.items():
        if (said := response.info.get(name)) is not None and said != value:
            raise Failure("broken", f"the server states {name} {said!r:.40} with score {score}")
    if response.reward != score:
        raise Failure("broken", f"the server states reward {response.reward} with score {score}")
    return {name: float(score) for name, score in stated.items()}


def _fault(failure: Failure) -> Answered:
    return Answered(f"Result: fault\n{failure.sentence}", {}, {}, failure.sentence)
