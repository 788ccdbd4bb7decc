"""Bounds on what a server may send: ``bound`` gives them to an httpx client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import httpx

from task_gym.remote.protocol import Failure

MOST = 32 << 20
"""The most bytes of a response. A conversation of a whole game, or a reply of 32,000 pieces, is in it."""


class Bounded(httpx.AsyncByteStream):
    """A response's content, of bounded length.

    Args:
        stream: The content.
        server: The server's address, for the error.
        most: The most bytes; None for ``MOST``.
    """

    def __init__(self, stream: httpx.AsyncByteStream, server: str, most: int | None = None) -> None:
        self._stream, self._server = stream, server
        self._most = MOST if most is None else most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._stream:
            count += len(piece)
            if count > self._most:
                raise Failure("broken", f"server {self._server} sent more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        """Closes the content."""
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
    response.stream = Bounded(response.stream, server, most)
