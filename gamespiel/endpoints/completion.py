"""Chat completions as an endpoint sends them, whole or in pieces, and the tokens that it counts."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from task_gym.remote.protocol import MOST_COUNTED

PIECES = 32_000
"""The most pieces of a reply. The rest of a longer one is not waited for, as upstream does."""

SLACK = 1e-3
"""How far log-probabilities may be above 0, and probabilities above 1 in all: half precision rounds."""


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
    """A reply, stripped of white space; "" if the endpoint sent no choice or no content."""

    text: str
    usage: Usage


@dataclass(frozen=True)
class TopTokens:
    """The likeliest tokens at the one place that a reply was asked for.

    Attributes:
        probabilities: The probability of each listed text; tokens that are written alike are one text. Empty
            if the endpoint lists none.
        most_unlisted: An upper bound on the probability of any token that is not listed.
        rest: The probability of all tokens that are not listed, from 0.
        usage: The tokens that were counted.
    """

    probabilities: dict[str, float]
    most_unlisted: float
    rest: float
    usage: Usage


def is_stream(response: httpx.Response) -> bool:
    """Returns whether a response comes in pieces. An endpoint may ignore that it was asked to stream."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip() == "text/event-stream"


def read_whole(content: bytes) -> Completion:
    """Returns the completion that a response is.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError: it is none.
    """
    body = json.loads(content)
    choices = body["choices"]
    text = choices[0]["message"]["content"] if choices else None
    return Completion(_clean(text), _read_usage(body.get("usage")))


def read_top_tokens(content: bytes) -> TopTokens:
    """Returns the likeliest first tokens of the completion that a response is.

    The token that was drawn is left out of ``most_unlisted``: vLLM puts it into the list at the cost of the
    last one, so it may be rarer than tokens that are not listed.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError: it is none.
    """
    body = json.loads(content)
    given = (body["choices"][0].get("logprobs") or {}).get("content") or []
    listed = given[0].get("top_logprobs") or [] if given else []
    found: dict[str, float] = {}
    least, drawn = 1.0, given[0]["token"] if given else None
    for row in listed:
        text, log_probability = row["token"], float(row["logprob"])
        if not isinstance(text, str) or not log_probability <= SLACK:  # NaN is neither
            raise ValueError(f"log-probability {log_probability!r:.40} of {text!r:.40}")
        probability = math.exp(min(log_probability, 0.0))
        found[text] = found.get(text, 0.0) + probability
        if text != drawn:
            least = min(least, probability)
    total = sum(found.values())
    if total > 1 + SLACK:
        raise ValueError(f"log-probabilities of {total:.4f} in all")
    rest = max(1.0 - total, 0.0) if found else 1.0
    return TopTokens(found, min(least, rest), rest, _read_usage(body.get("usage")))


async def read_stream(response: httpx.Response, on_piece: Callable[[], None]) -> Completion:
    """Returns the completion whose pieces a response is.

    Args:
        response: The response.
        on_piece: Called after each piece. Comments, which keep a connection alive, are no pieces.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError: it is none.
    """
    said: list[str] = []
    counted: Any = None
    pieces = 0
    async for event in _events(response):
        on_piece()
        if event.get("error") is not None:
            raise ValueError(f"error {event['error']!r:.80}")
        counted = event.get("usage") or counted
        pieces += 1
        if not (choices := event.get("choices")):
            continue
        if (content := (choices[0].get("delta") or {}).get("content")) is not None:
            if not isinstance(content, str):
                raise ValueError(f"content {content!r:.60}")
            said.append(content)
        if pieces >= PIECES:
            break
    return Completion(_clean("".join(said)), _read_usage(counted))


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Yields the objects of server-sent events, up to the event "[DONE]" or the response's end."""
    rest = bytearray()
    async for piece in response.aiter_bytes():
        rest += piece
        if b"\n" not in piece:
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            if not line.startswith(b"data:") or not (data := line[5:].strip()):
                continue
            if data == b"[DONE]":
                return
            event = json.loads(data)
            if not isinstance(event, dict):
                raise ValueError(f"event {event!r:.60}")
            yield event


def _clean(text: Any) -> str:
    if text is not None and not isinstance(text, str):
        raise ValueError(f"content {text!r:.60}")
    # JSON can contain lone surrogates, UTF-8 cannot.
    return (text or "").encode("utf-8", "replace").decode().strip()


def _read_usage(counted: Any) -> Usage:
    counted = counted or {}
    usage = Usage(int(counted.get("prompt_tokens") or 0), int(counted.get("completion_tokens") or 0), 1)
    if not (0 <= usage.prompt_tokens < MOST_COUNTED and 0 <= usage.completion_tokens < MOST_COUNTED):
        raise ValueError(f"tokens {usage!r:.80}")
    return usage
