"""Calls of a server's methods, as affinetes' own client makes them: ``POST /call``; responses are bounded."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import httpx

from task_gym.errors import ArgumentError
from task_gym.remote.protocol import Failure
from task_gym.remote.settings import TOKEN, Settings

CONNECT_SECONDS = 30.0
"""Seconds to make a connection, which may go through a tunnel. A call itself is limited by its caller."""

MOST = 32 << 20
"""The most bytes of a response. A conversation of a whole game, or a reply of 32,000 pieces, is in it."""


class Client:
    """Calls the methods of the environment on one server. Its methods run on the loop of ``remote.loop``.

    Attributes:
        busy: Calls under way, which the caller counts.
    """

    def __init__(self, settings: Settings) -> None:
        self._url, self.busy = settings.base_url, 0
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(CONNECT_SECONDS, read=None))
        bound(self._client)
        if token := os.environ.get(TOKEN):
            if not all("!" <= sign <= "~" for sign in token):  # httpx would show it in its error
                raise ArgumentError(f"{TOKEN}: it has a space, a line end or another character of no header")
            self._client.headers["Authorization"] = f"Bearer {token}"

    async def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Returns the result of a method.

        Raises:
            Failure: there is none.
        """
        server = f"server {self._url}"
        asked = {"method": method, "args": [], "kwargs": arguments}
        try:
            response = await self._client.post(f"{self._url}/call", json=asked)
            if not response.is_success:
                raise _of_status(server, response.status_code, response.text)
            answer = response.json()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Failure("away", f"{server} cannot be reached: {error}", happened=False) from error
        except httpx.TimeoutException as error:
            raise Failure("late", f"{server} did not answer in time") from error
        except httpx.TransportError as error:
            raise Failure("away", f"{server} broke the connection: {error}") from error
        except (ValueError, RecursionError) as error:  # of JSON and of UTF-8
            raise Failure("broken", f"{server} sent no JSON: {error}") from error
        except Failure:
            raise
        except Exception as error:  # of TLS, or whatever else a server can bring about
            raise Failure("status", f"{server} failed: {type(error).__name__}: {error!s:.300}") from error
        if not isinstance(answer, dict) or "status" not in answer:
            return answer
        if answer["status"] != "success":
            raise Failure("status", f"{server} failed: {answer!s:.300}")
        return answer.get("result")


def _of_status(server: str, status: int, body: str) -> Failure:
    """Returns the failure of an HTTP status; GameSpiel's own server says more in the body."""
    try:
        failed = json.loads(body)
        kind, message = failed["kind"], str(failed["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        lines = body.strip().splitlines() or [""]
        return Failure("status", f"{server} answered with status {status}: {lines[0]:.300}")
    known = kind if kind in ("unknown", "full", "refused") else "status"
    return Failure(known, f"{server} answered: {message:.1000}", happened=known == "status")


class _Bounded(httpx.AsyncByteStream):
    """The content of a response, of which at most so many bytes are read."""

    def __init__(self, stream: httpx.AsyncByteStream, server: str, most: int) -> None:
        self._stream, self._server, self._most = stream, server, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._stream:
            count += len(piece)
            if count > self._most:
                raise Failure("broken", f"server {self._server} sent more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def bound(client: httpx.AsyncClient, most: int | None = None) -> None:
    """Has a client raise Failure at responses that are compressed or too long.

    A compressed response of a few bytes can become one of any size.

    Args:
        client: The client.
        most: The most bytes of a response; None for ``MOST``.
    """
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks["response"].append(partial(_bound_response, most))


async def _bound_response(most: int | None, response: httpx.Response) -> None:
    server = f"{response.url.scheme}://{response.url.netloc.decode()}"
    if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
        raise Failure("broken", f"server {server} sent a compressed response: {encoding:.40}")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _Bounded(response.stream, server, MOST if most is None else most)
