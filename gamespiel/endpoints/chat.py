"""Chat completions of an OpenAI-compatible endpoint: time limits, repeats with backoff, token counts."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from gamespiel.endpoints import PREFIX, USAGE
from task_gym.errors import ArgumentError, BackendError
from task_gym.remote import loop
from task_gym.remote.protocol import MOST_COUNTED

TRIES = 6
"""Times that a request is tried if its failure may pass."""

BACKOFF = 0.5
"""Seconds between the first and the second try. They double from try to try."""

LONGEST = 30.0
"""The most seconds between two tries, also if the endpoint asks for more."""

MOST = 16 << 20
"""The most bytes of a response."""

LOST, REFUSED = "llm_failure", "request_refused"
"""The ``error_type`` of an episode whose endpoint has failed, and of one whose own request was refused."""
_OWN_FAULT = (400, 413, 422)
"""Status codes that a request gets for what is in it."""
_PASSING = (408, 409, 425, 429)
"""Statuses below 500 after which a request is tried again."""

Message = dict[str, str]


class EndpointError(BackendError):
    """An endpoint that cannot be reached, or that refuses a request."""


class RefusedError(EndpointError):
    """A request that this endpoint refuses for what is in it, such as a conversation beyond its context."""


class ClosedError(BackendError):
    """A request of a client that was closed before the reply came."""


@dataclass(frozen=True)
class Endpoint:
    """A model behind an address.

    Attributes:
        model: The model's name there.
        base_url: The address, up to and with "/v1".
        api_key: The bearer token; "" for none. It is not shown.
    """

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            good = good and "?" not in self.base_url and "#" not in self.base_url  # a path will follow
            httpx.URL(self.base_url)
        except (ValueError, AttributeError, TypeError, httpx.InvalidURL):  # a wrong port, or no text
            good = False
        if not good or not isinstance(self.model, str) or not self.model:
            raise ArgumentError(
                f"endpoint: model {self.model!r:.80} at {self.base_url!r:.200} was given, allowed: a model's "
                "name and an address, as 'http://127.0.0.1:8000/v1'"
            )
        if not all("!" <= sign <= "~" for sign in self.api_key):  # the client would show it in its error
            raise ArgumentError(
                f"endpoint: the key for {self.base_url:.200} has a space, a line end or another character "
                "that is not allowed in a header"
            )
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    def __str__(self) -> str:
        return f"{PREFIX}{self.model}@{self.base_url}"


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
class Sampling:
    """The settings of sampling. Those that are None are the endpoint's to choose.

    Attributes:
        temperature: The temperature.
        max_tokens: The most tokens of a reply.
        timeout: Seconds that one request may take.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 120.0


def parse_endpoint(text: str) -> Endpoint:
    """Returns the endpoint that "openai:MODEL@URL" or "MODEL@URL" names, with its key from the environment.

    Raises:
        ArgumentError: the text is written in another way.
    """
    model, at, url = text.removeprefix(PREFIX).rpartition("@")
    if "://" in model:  # the @ was in the address
        raise ArgumentError(
            "endpoint: an address with a user's name or password was given, allowed: one without; the key is "
            "in the environment variable OPENAI_API_KEY or CHUTES_API_KEY"
        )
    if not at:
        raise ArgumentError(f"endpoint: {text!r} was given, allowed: {USAGE}")
    return Endpoint(model, url, key_for(url))


def key_for(base_url: str) -> str:
    """Returns the key in the environment: ``CHUTES_API_KEY`` for hosts of chutes.ai, else ``OPENAI_API_KEY``.

    So ``OPENAI_API_KEY`` goes to whatever other host the user names.
    """
    return chutes_key(base_url) or ("" if _is_chutes(base_url) else os.environ.get("OPENAI_API_KEY", ""))


def chutes_key(base_url: str) -> str:
    """Returns ``CHUTES_API_KEY`` of the environment for hosts of chutes.ai; "" for other hosts.

    It goes to the hosts that it was made for, also if somebody else chooses the address.
    """
    return os.environ.get("CHUTES_API_KEY", "") if _is_chutes(base_url) else ""


def _is_chutes(base_url: str) -> bool:
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # no address
        return False
    return host == "chutes.ai" or host.endswith(".chutes.ai")


class Chat:
    """Asks one endpoint, from any number of threads.

    Requests run on the process's loop for remote calls, because a thread that waits for a socket cannot be
    stopped, and a task can.

    Args:
        endpoint: The endpoint.
        sampling: The settings of sampling.
        sleep: Waits so many seconds; None for a wait that ``close`` ends.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        sampling: Sampling | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.endpoint, self.sampling = endpoint, sampling or Sampling()
        self.usage = Usage()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._sleep = sleep or self._closed.wait
        headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(headers=headers, limits=limits)
        self._requests = loop.Calls()

    def reply(self, messages: Sequence[Message], seed: int, deadline: float) -> tuple[str, Usage]:
        """Returns the endpoint's reply to a conversation, and the tokens that it took.

        Args:
            messages: The conversation.
            seed: The seed of the draws, for endpoints that take one.
            deadline: When the reply must be there, in seconds of ``time.monotonic``.

        Raises:
            RefusedError: the endpoint refuses this request for what is in it.
            EndpointError: the endpoint refuses requests, or is away after ``TRIES`` tries.
            ClosedError: the client was closed.
            TimeoutError: the deadline has passed.
        """
        for tried in range(1, TRIES + 1):
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            text, usage, wait = self._try(messages, seed, min(left, self.sampling.timeout), tried)
            if usage is not None:
                with self._lock:
                    self.usage.add(usage)
                return text, usage
            if tried == TRIES:
                raise EndpointError(f"endpoint {self.endpoint.base_url}: {text}; {TRIES} tries failed")
            self._sleep(min(wait, LONGEST, max(deadline - time.monotonic(), 0.0)))
        raise AssertionError("the last try returns or raises")

    def failure(self, error: EndpointError) -> str:
        """Returns the type of a failure: "request_refused" ends one episode, "llm_failure" ends them all.

        An endpoint that refuses its very first request refuses all of them.
        """
        return REFUSED if isinstance(error, RefusedError) and self.usage.requests else LOST

    def close(self) -> None:
        """Closes the connections. Threads that wait for a reply, or ask for one later, get ClosedError."""
        self._closed.set()
        self._requests.cancel()
        loop.submit(self._client.aclose())

    def _try(
        self, messages: Sequence[Message], seed: int, timeout: float, tried: int
    ) -> tuple[str, Usage | None, float]:
        """Returns a reply and its tokens; or the reason for a failure, None, and the seconds to wait."""
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": list(messages), "seed": seed}
        if self.sampling.temperature is not None:
            body["temperature"] = self.sampling.temperature
        if self.sampling.max_tokens is not None:
            body["max_tokens"] = self.sampling.max_tokens
        pause = BACKOFF * 2 ** (tried - 1)
        try:
            response, content = self._requests.wait_for(self._post(body, timeout))
        except CancelledError as error:
            raise ClosedError(f"endpoint {self.endpoint.base_url}: the client was closed") from error
        except (httpx.TimeoutException, TimeoutError):
            return f"it did not answer in {timeout:.0f} s", None, pause
        except httpx.TransportError as error:
            return f"it cannot be reached: {error}", None, pause
        except httpx.HTTPError as error:
            return f"it cannot be read: {error}", None, pause
        except (httpx.InvalidURL, UnicodeError) as error:
            raise EndpointError(f"endpoint {self.endpoint.base_url}: it cannot be asked: {error}") from error
        if content is None:
            return f"it sent more than {MOST} bytes", None, pause
        if response.status_code in _PASSING or response.status_code >= 500:
            return f"it answered with status {response.status_code}", None, _retry_after(response, pause)
        if response.status_code != 200:
            raise (RefusedError if response.status_code in _OWN_FAULT else EndpointError)(
                f"endpoint {self.endpoint.base_url}: it refuses the request with status "
                f"{response.status_code}: {_reason(content)}"
            )
        try:
            text, usage = _read(json.loads(content))
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            return f"it sent no completion: {error!r:.100}", None, pause
        return text, usage, 0.0

    async def _post(self, body: Any, timeout: float) -> tuple[httpx.Response, bytes | None]:
        """Returns a response and its content; None if it has more than ``MOST`` bytes.

        Raises:
            TimeoutError: it is not there in time. The client's own limits are between two pieces.
        """
        if self._closed.is_set():
            raise asyncio.CancelledError
        address = f"{self.endpoint.base_url}/chat/completions"
        limits = httpx.Timeout(timeout, connect=min(10.0, timeout))
        content = bytearray()
        async with (
            asyncio.timeout(timeout),
            self._client.stream("POST", address, json=body, timeout=limits) as response,
        ):
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > MOST:
                    return response, None
        return response, bytes(content)


def _read(body: Any) -> tuple[str, Usage]:
    text, counted = body["choices"][0]["message"]["content"], body.get("usage") or {}
    if text is not None and not isinstance(text, str):
        raise ValueError(f"content {text!r:.60}")
    usage = Usage(int(counted.get("prompt_tokens") or 0), int(counted.get("completion_tokens") or 0), 1)
    if not (0 <= usage.prompt_tokens < MOST_COUNTED and 0 <= usage.completion_tokens < MOST_COUNTED):
        raise ValueError(f"tokens {usage!r:.80}")
    text = (text or "").encode("utf-8", "replace").decode()  # JSON can contain lone surrogates, UTF-8 cannot
    return text.strip(), usage


def _retry_after(response: httpx.Response, pause: float) -> float:
    """Returns the seconds that a response asks to wait, at least ``pause``."""
    try:
        return max(pause, float(response.headers.get("retry-after", 0)))  # in this order, for "nan"
    except ValueError:  # a date
        return pause


def _reason(content: bytes) -> str:
    try:
        error = json.loads(content)["error"]
        return f"{error.get('message', error) if isinstance(error, dict) else error!s:.300}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{' '.join(content.decode(errors='replace').split()):.300}"
