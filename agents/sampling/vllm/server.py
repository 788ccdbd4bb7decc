"""One vLLM server by HTTP: its answers, and the errors of those that are none."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from task_gym.errors import ArgumentError, BackendError
from task_gym.remote import Failure
from task_gym.remote.client import bound

TOKEN = "VLLM_API_KEY"
"""The environment variable of the bearer token, which vLLM reads too."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""This machine, to which no proxy leads."""

CONNECT_SECONDS = 5.0

ANSWER_SECONDS = 900.0
"""The longest time that a server may take for one request: long texts wait for others."""

MOST = 1 << 29
"""The most bytes of an answer: every token of a batch of long texts comes with its log-probability."""


class ServerError(BackendError):
    """A vLLM server that does not do what sampling needs.

    Attributes:
        status: The HTTP status of its answer; 0 without a whole one.
        said: The server's own words; "" if there are none.
    """

    def __init__(self, message: str, status: int = 0, said: str = "") -> None:
        super().__init__(message)
        self.status, self.said = status, said


class UnreachableError(ServerError):
    """A server that gave no whole answer: it may be back later."""


class BrokenAnswerError(UnreachableError):
    """A server that was reached and failed: an error status of 500 or above, a time-out, half an answer."""


class RefusedError(ServerError):
    """A request that a server refused: it would be refused again."""


class Card(NamedTuple):
    """A model, or an adapter, that a server offers.

    Attributes:
        name: Its name in requests.
        root: Its folder, as the server sees it.
        is_base: Whether it is a model without adapters.
        context: The most tokens of a prompt and its answer; None if the server does not say it.
    """

    name: str
    root: str
    is_base: bool
    context: int | None


class Server:
    """A vLLM server.

    Args:
        url: Its address, with or without "/v1".
        seconds: The longest time for one request.
        token: The bearer token; None for that of the environment variable ``VLLM_API_KEY``.

    Raises:
        ArgumentError: the address is none.
    """

    def __init__(self, url: str, seconds: float = ANSWER_SECONDS, token: str | None = None) -> None:
        self.url = _check_url(url)
        self._seconds, self._token = seconds, os.environ.get(TOKEN, "") if token is None else token
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def _open(self) -> httpx.AsyncClient:
        """Returns the client, which belongs to the event loop of its first request."""
        if self._client is None:
            headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            # Slow connections are tried again; slow answers are waited for.
            timeout = httpx.Timeout(self._seconds, connect=CONNECT_SECONDS)
            local = urlsplit(self.url).hostname in LOOPBACK
            self._client = httpx.AsyncClient(
                headers=headers, limits=limits, timeout=timeout, trust_env=not local
            )
            bound(self._client, MOST)
        return self._client

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, seconds: float | None = None
    ) -> httpx.Response:
        """Returns a server's answer of status below 400.

        Raises:
            UnreachableError: there is no whole answer, or the server failed.
            RefusedError: the server refused the request.
        """
        timeout: Any = httpx.USE_CLIENT_DEFAULT if seconds is None else seconds
        try:
            answer = await self._open().request(method, self.url + path, json=body, timeout=timeout)
        except (httpx.TransportError, httpx.DecodingError) as error:
            said = str(error) or type(error).__name__
            reached = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            kind = BrokenAnswerError if reached else UnreachableError
            raise kind(f"the vLLM server {self.url} gave no answer: {said}") from error
        except Failure as failure:
            raise BrokenAnswerError(f"the vLLM server {self.url}: {failure.sentence}") from failure
        status = answer.status_code
        said = _error_of(answer) if status >= 400 else ""
        where = f"with status {status}: {said}"
        if status >= 500:
            raise BrokenAnswerError(f"the vLLM server {self.url} failed {where}", status, said)
        if status >= 400:
            raise RefusedError(f"the vLLM server {self.url} refused {path} {where}", status, said)
        return answer

    async def read(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Returns the JSON of an answer.

        Raises:
            UnreachableError: as ``call`` does, or the answer is no JSON, as half of one.
            RefusedError: as ``call`` does.
        """
        answer = await self.call(method, path, body)
        try:
            return answer.json()
        except ValueError as error:
            raise BrokenAnswerError(f"the vLLM server {self.url} answered {path} without JSON") from error

    async def is_healthy(self) -> bool:
        """Returns whether the server says within seconds that it is ready."""
        try:
            await self.call("GET", "/health", seconds=CONNECT_SECONDS)
        except ServerError:
            return False
        return True

    async def version(self) -> str:
        """Returns vLLM's version; "" if the server does not say it."""
        try:
            answer = await self.read("GET", "/version")
            return str(answer["version"])
        except (RefusedError, KeyError, TypeError):
            return ""

    async def list_cards(self) -> list[Card]:
        """Returns what the server offers, models without adapters first.

        Raises:
            ServerError: as ``read`` does, or the answer is no list of models.
        """
        answer = await self.read("GET", "/v1/models")
        try:
            cards = [
                Card(row["id"], str(row.get("root")), row.get("parent") is None, row.get("max_model_len"))
                for row in answer["data"]
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ServerError(f"{self.url}/v1/models lists no models: is it a vLLM server?") from error
        if not any(card.is_base for card in cards):
            raise ServerError(f"{self.url}/v1/models lists no model, only {[card.name for card in cards]}")
        return sorted(cards, key=lambda card: not card.is_base)

    async def load(self, name: str, folder: str) -> None:
        """Makes the server know adapters by a name.

        Raises:
            ServerError: as ``call`` does.
        """
        try:
            await self.call("POST", "/v1/load_lora_adapter", {"lora_name": name, "lora_path": folder})
        except RefusedError as error:
            # Names are never used again: an earlier answer was lost on its way.
            if "already" not in error.said:
                raise
        except BrokenAnswerError as error:
            # vLLM has this status for adapters of too high a rank, too.
            if not error.status or not await self.is_healthy():
                raise
            raise RefusedError(str(error), error.status, error.said) from error

    async def unload(self, name: str) -> None:
        """Makes the server forget a name; one that it does not know is no error.

        Raises:
            UnreachableError: as ``call`` does.
        """
        try:
            await self.call("POST", "/v1/unload_lora_adapter", {"lora_name": name})
        except RefusedError as error:
            if error.status not in (400, 404):
                raise

    async def complete(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns the choices of ``POST /v1/completions``, in the order of the prompts.

        Raises:
            UnreachableError: as ``read`` does, or choices are missing.
            RefusedError: as ``call`` does.
        """
        answer = await self.read("POST", "/v1/completions", body)
        try:
            choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
            indices = [choice["index"] for choice in choices]
        except (KeyError, TypeError, ValueError) as error:
            raise BrokenAnswerError(f"the vLLM server {self.url} answered without choices") from error
        if indices != list(range(len(body["prompt"]))):
            raise BrokenAnswerError(
                f"the vLLM server {self.url} answered {len(indices)} of {len(body['prompt'])} prompts"
            )
        return choices


def is_unknown_model(error: RefusedError) -> bool:
    """Returns whether a server refused a request because it does not know the adapters."""
    return error.status == 404 and "does not exist" in error.said


def read_float(value: Any) -> float:
    """Returns a log-probability of an answer: NaN if the server has none."""
    return math.nan if value is None else float(value)


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and not parts.query and not parts.fragment
        good = good and bool(httpx.URL(url).host)
        secret = parts.username is not None or parts.password is not None
    except (ValueError, TypeError, AttributeError, httpx.InvalidURL):
        good = secret = False
    if secret:
        raise ArgumentError(
            "run.vllm_base_url: an address with a user's name or password was given, allowed: one without; "
            f"the token is in the environment variable {TOKEN}"
        )
    if not good:
        raise ArgumentError(
            f"run.vllm_base_url: {url!r:.200} was given, allowed: the address of a vLLM server, as "
            "'http://127.0.0.1:8000/v1'"
        )
    return url.rstrip("/").removesuffix("/v1")


def _error_of(answer: httpx.Response) -> str:
    """Returns a server's own words about an error."""
    try:
        body = answer.json()
        return str(body.get("error", body).get("message", body))[:500]
    except (ValueError, AttributeError):
        return answer.text[:200]
