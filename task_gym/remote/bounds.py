"""A bound on the size of a server's responses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from task_gym.remote.protocol import Failure

MOST = 32 << 20
"""The most bytes of a response. A conversation of a whole game is in it."""


class Bounded(httpx.AsyncByteStream):
    """A response's content, of at most ``MOST`` bytes.

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
            if count > MOST:
                raise Failure("broken", f"server {self._server} sent more than {MOST} bytes")
            yield piece

    async def aclose(self) -> None:
        """Closes the content."""
        await self._stream.aclose()


async def bound(response: httpx.Response) -> None:
    """Bounds a response whose content was not read yet.

    Raises:
        Failure: it is compressed, so nobody knows its size.
    """
    server = f"{response.url.scheme}://{response.url.netloc.decode()}"
    if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
        raise Failure("broken", f"server {server} sent a compressed response: {encoding:.40}")
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = Bounded(response.stream, server)
