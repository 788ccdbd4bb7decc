"""uvicorn with limits: of connections, and of time to send a request, to read its answer, and to end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from gamespiel.serving.app import GRACE, refuse_connection
from gamespiel.serving.hosts import name_caller

ARRIVAL = 30.0
"""Seconds from a request's first byte, or from the connection, to the request's last byte; and those in which
an answer must be read."""


class Protocol(H11Protocol):
    """A connection. uvicorn alone would wait for ever for a request's rest, or for an answer's reader."""

    caller = ""
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for the first request. It is refused if the caller has all its connections."""
        super().connection_made(transport)
        self.caller = name_caller(self.client[0] if self.client else "")
        count = sum(getattr(other, "caller", "") == self.caller for other in self.connections)
        most = count_connections()
        if count > most:
            self.app = refuse_connection
        if count > most + most // 2:
            transport.abort()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Reads a piece of a request."""
        if not self.transport.get_write_buffer_size():
            self._stop_awaiting_reader()
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Goes on with the next request, of which all that will ever come may be here."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._await_reader()
        begun = self.conn.their_state is h11.SEND_BODY or (
            self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        )
        if begun and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the waits."""
        self._stop_waiting()
        self._stop_awaiting_reader()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Stops answering until the caller reads."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Goes on answering: a part was read, and the rest has its time."""
        self._stop_awaiting_reader()
        if self.transport.get_write_buffer_size():
            self._await_reader()
        super().resume_writing()

    def _wait(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(ARRIVAL, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None

    def _await_reader(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(ARRIVAL, self._end_unread)

    def _stop_awaiting_reader(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = None

    def _end_unread(self) -> None:
        self._unread = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()


def count_connections() -> int:
    """Returns the most connections of one caller: half of the files that this process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 1 << 14
    return max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, 1)


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
