"""Asks an OpenAI-compatible endpoint for chat completions: streams, time limits, repeats with backoff."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx

from gamespiel.endpoints.completion import Completion, Usage, read_stream
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.endpoints.patience import Patience, patience_of_agents
from task_gym.errors import BackendError
from task_gym.remote import Failure, loop
from task_gym.remote.client import bound

LOST, REFUSED = "llm_failure", "request_refused"
"""The ``error_type`` of an episode whose endpoint has failed, and of one whose own request was refused."""
_OWN_FAULT = (400, 413, 422)
"""Status codes that a request gets for what is in it."""

_NO_COMPLETION = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

Message = dict[str, str]


class EndpointError(BackendError):
    """An endpoint that cannot be reached, or that refuses a request."""


class RefusedError(EndpointError):
    """A request that this endpoint refuses for what is in it, such as a conversation beyond its context."""


class ClosedError(BackendError):
    """A request of a client that was closed before the reply came."""


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling. Those that are None are the endpoint's to choose.

    Attributes:
        temperature: The temperature.
        max_tokens: The most tokens of a reply.
    """

    temperature: float | None = None
    max_tokens: int | None = None


class Chat:
    """Asks one endpoint, from any number of threads.

    Requests run on the process's loop for remote calls, because a thread that waits for a socket cannot be
    stopped, and a task can.

    Args:
        endpoint: The endpoint.
        sampling: The settings of sampling.
        patience: The limits and repeats; None for those of agents.
        sleep: Waits so many seconds; None for a wait that ``close`` ends.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        sampling: Sampling | None = None,
        patience: Patience | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.endpoint, self.sampling = endpoint, sampling or Sampling()
        self.patience = patience or patience_of_agents()
        self.usage = Usage()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._sleep = sleep or self._closed.wait
        headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._client = httpx.AsyncClient(headers=headers, limits=limits, verify=_read_authorities())
        bound(self._client)
        self._requests = loop.Calls()

    def request_reply(self, messages: Sequence[Message], seed: int, deadline: float) -> tuple[str, Usage]:
        """Returns the endpoint's reply to a conversation, and the tokens that it took.

        Args:
            messages: The conversation.
            seed: The seed of the draws, for endpoints that take one.
            deadline: When the reply must be there, in seconds of ``time.monotonic``.

        Raises:
            RefusedError: the endpoint refuses this request for what is in it.
            EndpointError: the endpoint refuses requests, or is away after the last try.
            ClosedError: the client was closed.
            TimeoutError: the deadline has passed.
        """
        body = self._make_body(messages, seed)
        retries = self.patience.retries
        for tried in range(1, retries.tries + 1):
            if deadline <= time.monotonic():
                raise TimeoutError
            outcome, asked = self._try(body, deadline)
            if not isinstance(outcome, str):
                with self._lock:
                    self.usage.add(outcome.usage)
                return outcome.text, outcome.usage
            if tried == retries.tries:
                tries = "1 try" if tried == 1 else f"{tried} tries"
                raise EndpointError(f"endpoint {self.endpoint.base_url}: {outcome}; {tries} failed")
            self._sleep(min(retries.pause(tried, asked), max(deadline - time.monotonic(), 0.0)))
        raise AssertionError("the last try returns or raises")

    def classify_failure(self, error: EndpointError, answered: bool = False) -> str:
        """Returns the type of a failure: "request_refused" ends one episode, "llm_failure" ends them all.

        An endpoint that refuses its very first request refuses all of them.

        Args:
            error: The failure.
            answered: Whether an earlier client of it had an answer.
        """
        known = answered or self.usage.requests > 0
        return REFUSED if known and isinstance(error, RefusedError) else LOST

    def close(self) -> None:
        """Closes the connections. Threads that wait for a reply, or ask for one later, get ClosedError."""
        self._closed.set()
        self._requests.cancel()
        loop.submit(self._client.aclose())

    def post(self, path: str, body: Any, deadline: float) -> Any:
        """Returns what the endpoint answers to another request than for a reply, from JSON.

        Args:
            path: The path behind the endpoint's address, as "/completions".
            body: The request.
            deadline: When the response must be there, in seconds of ``time.monotonic``.

        Raises:
            EndpointError: there is no such response.
            ClosedError: the client was closed.
        """
        try:
            response, content = self._requests.wait_for(self._post(path, body, deadline))
            if not response.is_success:
                raise EndpointError(
                    f"endpoint {self.endpoint.base_url}: {path} was answered with status "
                    f"{response.status_code}"
                )
            assert isinstance(content, bytes), "only a reply is asked for as a stream"
            return json.loads(content)
        except CancelledError as error:
            raise self._make_closed_error() from error
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            TimeoutError,
            Failure,
            ValueError,
            RecursionError,
        ) as error:
            raise EndpointError(f"endpoint {self.endpoint.base_url}: {path}: {error!r:.200}") from error

    def _make_body(self, messages: Sequence[Message], seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": list(messages), "seed": seed}
        if self.sampling.temperature is not None:
            body["temperature"] = self.sampling.temperature
        if self.sampling.max_tokens is not None:
            body["max_tokens"] = self.sampling.max_tokens
        return body | {"stream": True, "stream_options": {"include_usage": True}}

    def _try(self, body: Any, deadline: float) -> tuple[Completion | str, float]:
        """Returns a reply, or why there is none; and the seconds that the endpoint asks to wait."""
        where = f"endpoint {self.endpoint.base_url}"
        try:
            response, content = self._requests.wait_for(self._post("/chat/completions", body, deadline))
        except CancelledError as error:
            raise self._make_closed_error() from error
        except (httpx.TimeoutException, TimeoutError) as error:
            return str(error) or "it cannot be connected to in time", 0.0
        except httpx.TransportError as error:
            return f"it cannot be reached: {error}", 0.0
        except httpx.HTTPError as error:
            return f"it cannot be read: {error}", 0.0
        except Failure as failure:
            return failure.sentence, 0.0
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise EndpointError(f"{where}: it cannot be asked: {error}") from error
        except _NO_COMPLETION as error:
            return self._describe_malformed(error), 0.0
        status = response.status_code
        if status in self.patience.passing or status >= 500:
            wish = 0.0 if self.patience.upstream else _retry_after(response)
            return f"it answered with status {status}", wish
        if isinstance(content, Completion):
            return content, 0.0
        raise (RefusedError if status in _OWN_FAULT else EndpointError)(
            f"{where}: it refuses the request with status {status}: {_reason(content)}"
        )

    def _describe_malformed(self, error: Exception) -> str:
        """Returns why a response is no completion.

        Raises:
            EndpointError: this patience asks for no other one.
        """
        reason = f"it sent no completion: {error!r:.100}"
        if self.patience.upstream:
            raise EndpointError(f"endpoint {self.endpoint.base_url}: {reason}") from error
        return reason

    async def _post(self, path: str, body: Any, deadline: float) -> tuple[httpx.Response, bytes | Completion]:
        """Returns a response and its content, or the completion that it streamed.

        Raises:
            TimeoutError: it, or its next piece, is not there in time. The client's own limits are between
                two packets.
            Failure: it is compressed or too long.
        """
        if self._closed.is_set():
            raise asyncio.CancelledError
        patience, now = self.patience, asyncio.get_running_loop().time
        last = now() + max(deadline - time.monotonic(), 0.0)
        begins = min(now() + patience.begins, last)
        limits = httpx.Timeout(None, connect=min(10.0, patience.begins))
        late = f"it did not answer in {begins - now():.0f} s"
        try:
            async with (
                asyncio.timeout_at(begins) as limit,
                self._client.stream(
                    "POST", f"{self.endpoint.base_url}{path}", json=body, timeout=limits
                ) as response,
            ):
                if not (response.is_success and body["stream"]):
                    return response, await response.aread()
                late = f"it sent no piece of its reply for {patience.pauses:.0f} s"

                def wait_on() -> None:
                    limit.reschedule(min(now() + patience.pauses, last))

                wait_on()
                choice_needed = not patience.upstream
                return response, await read_stream(response, wait_on, choice_needed=choice_needed)
        except TimeoutError:
            raise TimeoutError(late) from None

    def _make_closed_error(self) -> ClosedError:
        return ClosedError(f"endpoint {self.endpoint.base_url}: the client was closed")


@cache
def _read_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # which takes 60 ms


def _retry_after(response: httpx.Response) -> float:
    """Returns the seconds that a response asks to wait."""
    try:
        return float(response.headers.get("retry-after", 0))
    except ValueError:  # a date
        return 0.0


def _reason(content: bytes) -> str:
    try:
        error = json.loads(content)["error"]
        return f"{error.get('message', error) if isinstance(error, dict) else error!s:.300}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"{' '.join(content.decode(errors='replace').split()):.300}"
