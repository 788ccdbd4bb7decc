"""One response of an OpenEnv session, checked, how a call can fail, and how often it is repeated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from task_gym.arguments import is_number
from task_gym.contract import is_success

SERVER = "server"
"""The key of ``info`` by which GameSpiel's own server names itself."""

MOST_COUNTED = 1 << 53
"""The bound of counts that a server states: what is above it is no count, and no float has it exactly."""

REFUSED_ARGUMENTS = "refused_arguments"
"""The ``error_type`` of an evaluation that GameSpiel's own server did not begin: its arguments are wrong."""

HEAD = "Legal Actions:\n"
"""The heading of an observation's legal actions."""
_LINE = re.compile(r"  ([0-9]{1,18}) -> (.*)")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is tried, and the pauses between.

    Attributes:
        tries: Times that a request is tried if its failure may pass.
        first: Seconds between the first and the second try. They double from try to try.
        longest: The most seconds between two tries.
    """

    tries: int
    first: float
    longest: float = inf

    def pause(self, tried: int, asked: float = 0.0) -> float:
        """Returns the seconds to wait after so many tries (from 1); longer if the server asks for it."""
        # In this order, so that "nan" is no wish.
        return min(max(self.first * 2.0 ** (tried - 1), asked), self.longest)


SESSIONS = Retries(tries=4, first=0.2)
"""Calls of sessions that can be repeated safely."""


class Failure(Exception):
    """A call that did not do what it was made for.

    Args:
        kind: "away" (no connection, or one that broke), "late", "status" (an error of the server), "broken"
            (a response that is not of the protocol), "unknown" (the server does not know the episode), "full"
            (the server takes no more episodes) or "refused" (the call's arguments are wrong).
        sentence: The reason, in one sentence.
        happened: Whether the call may have had its effect. If not, even a step can be repeated.
    """

    def __init__(self, kind: str, sentence: str, happened: bool = True) -> None:
        super().__init__(sentence)
        self.kind, self.sentence, self.happened = kind, sentence, happened

    @property
    def unreachable(self) -> bool:
        """Whether the server gave no response at all."""
        return self.kind in ("away", "late")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response to reset or step.

    Attributes:
        observation: The text.
        reward: The reward of upstream's session.
        done: Whether the episode is over.
        truncated: Whether it was cut.
        episode: The episode's id.
        info: Everything else.
    """

    observation: str
    reward: float
    done: bool
    truncated: bool
    episode: str
    info: Mapping[str, Any]

    @property
    def is_ours(self) -> bool:
        """Whether GameSpiel's own server wrote it."""
        return SERVER in self.info


def read_reply(response: Any, episode: str | None = None) -> Reply:
    """Returns a response as a ``Reply``.

    Args:
        response: The server's response.
        episode: The episode that was asked about; None if the response begins one.

    Raises:
        Failure: a field is missing or has another type, the episode is over without a score, or the server
            reports an error of its own.
    """
    if not isinstance(response, dict):
        raise Failure("broken", f"the response is no object: {response!r:.80}")
    _check_text(response)
    info = response.get("info", {})
    if not isinstance(info, dict):
        raise Failure("broken", f"the response's info is no object: {info!r:.80}")
    _check_error(info)
    text, reward = response.get("observation"), response.get("reward", 0.0)
    if not isinstance(text, str):
        raise Failure("broken", f"the response's observation is no text: {text!r:.80}")
    if not is_number(reward):
        raise Failure("broken", f"the response's reward is no finite number: {reward!r:.80}")
    named = response.get("episode_id") or info.get("episode_id") or episode
    if not isinstance(named, str):
        raise Failure("broken", f"the response names no episode: {named!r:.80}")
    if episode is not None and named != episode:
        raise Failure("broken", f"the response is about episode {named!r:.80} instead of {episode!r}")
    ends = [response.get(name, False) for name in ("done", "truncated")]
    if not all(isinstance(end, bool) for end in ends):
        raise Failure("broken", f"the response's done and truncated are no booleans: {ends!r:.80}")
    if ends[0] and response.get("reward") is None and info.get("score") is None:
        raise Failure("broken", "the response is done, and states no score")
    return Reply(text, float(reward), ends[0], ends[1], named, info)


def check_address(said: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raises Failure if a server says that it plays something else than it was asked for.

    Args:
        said: What it says, by name. What is missing or None is not said.
        asked: What was asked for, by the same names.
    """
    for name, value in asked.items():
        stated = said.get(name)
        if stated is not None and (type(stated) is not type(value) or stated != value):
            raise Failure(
                "broken", f"the server plays {name} {stated!r:.80}, and {value!r:.80} was asked for"
            )


def read_result(response: Any) -> Mapping[str, Any]:
    """Returns a response to ``evaluate``, with a score in [0, 1] or a reason why there is none.

    Raises:
        Failure: it is something else.
    """
    if not isinstance(response, dict):
        raise Failure("broken", f"the response is no object: {response!r:.80}")
    score, error = response.get("score"), response.get("error")
    if error is not None and response.get("error_type") == REFUSED_ARGUMENTS:
        raise Failure("refused", f"the server refuses the arguments: {error!s:.1000}", happened=False)
    if error is None and not (is_number(score) and 0 <= score <= 1):
        raise Failure("broken", f"the score is no number in [0, 1]: {score!r:.80}")
    if error is None and not isinstance(response.get("success"), bool):
        raise Failure("broken", f"success is no boolean: {response.get('success')!r:.80}")
    if error is None and response["success"] != is_success(score):
        raise Failure("broken", f"success is {response['success']} with score {score!r:.40}")
    extra = response.get("extra", {})
    if not isinstance(extra, dict):
        raise Failure("broken", f"extra is no object: {extra!r:.80}")
    usage = extra.get("usage") or {}
    if not isinstance(usage, dict) or not _has_counts(usage, "prompt_tokens", "completion_tokens"):
        raise Failure("broken", f"the usage is no object with counts: {usage!r:.80}")
    if not _has_counts(extra, "refused_replies", "given_up"):
        raise Failure("broken", "refused_replies and given_up are no counts")
    return {**response, "extra": extra}


def _has_counts(values: Mapping[str, Any], *names: str) -> bool:
    """Returns whether the named values are counts, booleans or missing."""
    counts = [values[name] for name in names if values.get(name) is not None]
    return all(isinstance(count, int) and 0 <= count < MOST_COUNTED for count in counts)


def _check_text(response: dict[str, Any]) -> None:
    """Raises Failure unless a response is text in UTF-8 again. JSON can contain lone surrogates; no tokenizer
    can read them, and no file can take them."""
    try:
        json.dumps(response, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Failure("broken", f"the response cannot be written as text: {error!s:.80}") from error


def _check_error(info: Mapping[str, Any]) -> None:
    """Raises Failure if the server reports an error that is not an illegal action."""
    error = info.get("error")
    if error is None:
        return
    kind, message = (error.get("type"), error.get("message")) if isinstance(error, dict) else (None, error)
    if kind != "invalid_action":
        unknown = "episode" in str(kind)
        raise Failure("unknown" if unknown else "status", f"the server reports {kind}: {message!s:.300}")


def read_choices(text: str) -> tuple[list[int], list[str]]:
    """Returns the legal action ids and their names from an observation's last block "Legal Actions:".

    Raises:
        Failure: there is no such block, or it is not a list of ascending ids and names.
    """
    start = text.rfind(HEAD)
    block, closed, _ = text[start + len(HEAD) :].partition("\n\nYour choice")
    if start < 0 or not closed:
        raise Failure("broken", f"the observation has no list of legal actions: it ends {text[-60:]!r}")
    legal: list[int] = []
    names: list[str] = []
    for line in block.split("\n"):
        match = _LINE.fullmatch(line)
        if match is None or (legal and int(match[1]) <= legal[-1]):
            raise Failure("broken", f"the observation's list of legal actions has a line {line[:60]!r}")
        legal.append(int(match[1]))
        names.append(match[2])
    return legal, names
