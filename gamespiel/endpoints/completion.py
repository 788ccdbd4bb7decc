"""Chat completions as an endpoint sends them, whole or in pieces, and the tokens that it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from task_gym.remote.protocol import MOST_COUNTED

PIECES = 32_000
"""The most pieces of a reply. The rest of a longer one is not waited for, as upstream does."""

_LINE_END = re.compile(rb"\r\n?|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Usage:
    """Tokens that an endpoint has counted, and the requests that it answered."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0

    def add(self, other: Usage) -> None:
        """Adds another count to this one."""
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.requests += other.requests

    def cost(self, prompts: float, replies: float) -> float:
        """Returns the price in dollars, given dollars per million tokens."""
        return (self.prompt_tokens * prompts + self.completion_tokens * replies) / 1e6

    def to_dict(self) -> dict[str, int]:
        """Returns the counts under the names of the protocol."""
        total = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": total,
        }


@dataclass(frozen=True)
class Completion:
    """A reply, stripped of white space; "" if the endpoint sent no content."""

    text: str
    usage: Usage


async def read_stream(
    response: httpx.Response, on_piece: Callable[[], None], *, choice_needed: bool
) -> Completion:
    """Returns the completion whose pieces a response is, whatever type of content it names.

    Args:
        response: The response.
        on_piece: Called after each piece. Comments, which keep a connection alive, are no pieces.
        choice_needed: Whether a response without pieces of a choice is read as a whole completion, for
            endpoints that ignore that they were asked to stream. Otherwise it is an empty reply, as upstream
            counts it.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError: it is none.
    """
    events, unread = _Events(), bytearray()
    said: list[str] = []
    counted: Any = None
    pieces, begun = 0, False
    async for packet in response.aiter_bytes():
        if not begun:
            unread += packet
        for event in events.read(packet):
            on_piece()
            pieces += 1
            counted = event.get("usage") or counted
            if not (choices := event.get("choices")) or not (delta := choices[0].get("delta")):
                continue
            begun = True
            if content := delta.get("content"):
                said.append(_check_text(content))
            if pieces >= PIECES:
                events.ended = True
                break
        if events.ended:
            break
    if choice_needed and not begun:
        return _read_whole(bytes(unread))
    return Completion("".join(said).strip(), _read_usage(counted))


def _read_whole(content: bytes) -> Completion:
    body = json.loads(content)
    text = body["choices"][0]["message"]["content"]
    return Completion("" if text is None else _check_text(text).strip(), _read_usage(body.get("usage")))


class _Events:
    """Reads server-sent events as the client ``openai`` 3.57 does, with which upstream asks.

    Its events end with an empty line, so the last one is none if that is missing. Any field but data may also
    make an event, and an event without data is an error.

    Attributes:
        ended: Whether the event "[DONE]" has come.
    """

    def __init__(self) -> None:
        self.ended = False
        self._line, self._after_return = bytearray(), False
        self._data: list[str] = []
        self._id = ""
        self._begun = False

    def read(self, packet: bytes) -> Iterator[dict[str, Any]]:
        """Yields the objects of the events that end in a packet.

        Raises:
            ValueError, RecursionError: an event is no object.
        """
        if self._after_return:
            packet = packet.removeprefix(b"\n")
        self._after_return = packet.endswith(b"\r")
        *ends, rest = _LINE_END.split(packet)
        for end in ends:
            self._line += end
            line = self._line.decode()
            self._line.clear()
            if line:
                self._add_field(line)
            elif self._begun or self._id:
                data = "\n".join(self._data)
                self._data, self._begun = [], False
                if data.startswith("[DONE]"):
                    self.ended = True
                    return
                yield _read_event(data)
        self._line += rest

    def _add_field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._begun = True
        elif name == "id" and "\0" not in value:
            self._id = value  # of all events that follow
        elif name == "event" or (name == "retry" and value.isdecimal()):
            self._begun = True


def _read_event(data: str) -> dict[str, Any]:
    event = json.loads(data)
    if not isinstance(event, dict):
        raise ValueError(f"event {event!r:.60}")
    if event.get("error"):
        raise ValueError(f"error {event['error']!r:.80}")
    return event


def _check_text(text: Any) -> str:
    # JSON can contain lone surrogates, which no later request can send back.
    if not isinstance(text, str) or _SURROGATE.search(text):
        raise ValueError(f"content {text!r:.60}")
    return text


def _read_usage(counted: Any) -> Usage:
    counted = counted or {}
    usage = Usage(int(counted.get("prompt_tokens") or 0), int(counted.get("completion_tokens") or 0), 1)
    if not (0 <= usage.prompt_tokens < MOST_COUNTED and 0 <= usage.completion_tokens < MOST_COUNTED):
        raise ValueError(f"tokens {usage!r:.80}")
    return usage
