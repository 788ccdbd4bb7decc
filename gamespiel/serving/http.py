"""uvicorn in bounded time: for requests to arrive, as slow clients could keep all connections, and to end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from gamespiel.serving.app import GRACE

ARRIVAL = 30.0
"""Seconds from a request's first byte, or from the connection, to the request's last byte."""


class Protocol(H11Protocol):
    """A connection. uvicorn alone would wait for the rest of a request for ever."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Reads a piece of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Goes on with the next request, of which all that will ever come may be here."""
        super().on_response_complete()
        begun = self.conn.their_state is h11.SEND_BODY or (
            self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        )
        if begun and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the wait."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(ARRIVAL, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None


class Http(uvicorn.Server):
    """uvicorn, which ends in bounded time.

    Args:
        app: The application.
    """

    def __init__(self, app: Starlette) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # by which a caller could give itself any address
            timeout_keep_alive=75,
            timeout_graceful_shutdown=GRACE + 2,
        )
        super().__init__(config)
        self._server = app.state.server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the calls under way, and waits for them as uvicorn does."""
        self._server.end()
        await super().shutdown(sockets)
