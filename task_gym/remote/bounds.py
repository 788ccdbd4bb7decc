"""Bounds on what a server may send: ``bound`` gives them to an httpx client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from task_gym.remote import policy
from task_gym.remote.protocol import Failure


class Bounded(httpx.AsyncByteStream):
    """A response's content, of at most ``policy.MOST`` bytes.

    Args:
        stream: The content.
        server: The server's address, for the error.
    """

    def __init__(self, stream: httpx.AsyncByteStream, server: str) -> None:
        self._stream, self._server = stream, server

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for piece in self._stream:
            count += len(piece)
            if count > policy.MOST:
                raise Failure("broken", f"server {self._server} sent more than {policy.MOST} bytes")
            yield piece

    async def aclose(self) -> None:
        """Closes the content."""
        await self._stream.aclose()


def bound(client: httpx.AsyncClient) -> None:
    """Has a client raise Failure at responses that are compressed or too long.

    A compressed response of a few bytes can become one of any size.
    """
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks["response"].append(_bound_response)


async def _bound_response(response: httpx.Response) -> None:
    server = f"{response.url.scheme}://{response.url.netloc.decode()}"
    if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
        raise Failure("broken", f"server {server} sent a compressed response: {encoding:.40}")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = Bounded(response.stream, server)
