"""A server that speaks the session protocol by script, with faults put in by the test."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

QUESTION = (
    "# Game Rules\nShort.\n\n# Current Game State\nGame: leduc_poker\nYou are Player 0.\n\nCurrent State:\n-"
    "\n\nLegal Actions:\n  1 -> Call\n  2 -> Raise\n\nYour choice (action ID only):"
)
CLOSING = (
    "Game Over: leduc_poker\nYou were Player 0.\n\nFinal Returns: [1.0, -1.0]\nYour Return: 1.0\n"
    "Normalized Score: 0.538\nResult: WIN"
)
WON = 14 / 26
"""The score of a return of 1 in leduc_poker, whose returns are -13 … 13."""

Fault = Callable[[Any], None]


SEATS = {"e1": 0, "e2": 1}
"""The seat of an episode: that of its seed, which is even or odd."""


def opened(episode: str) -> dict[str, Any]:
    """A first turn, as upstream sends it: no legal actions in ``info``."""
    info = {"llm_player_id": SEATS[episode], "opponent_type": "random"}
    return {
        "observation": QUESTION.replace("Player 0", f"Player {SEATS[episode]}"),
        "reward": 0.0, "done": False, "truncated": False, "episode_id": episode,
        "info": info,
    }  # fmt: skip


def closed(episode: str) -> dict[str, Any]:
    """The end of a game that was won."""
    text = CLOSING.replace("[1.0, -1.0]", "[-1.0, 1.0]") if SEATS[episode] else CLOSING
    return {**opened(episode), "observation": text, "reward": WON, "done": True}


class FaultyServer(ThreadingHTTPServer):
    """A server in this process, that fails as the test says. ``faults`` are used up one per call.

    Attributes:
        most: The most calls that were under way together.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.faults: list[Any] = []
        self.busy = self.most = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Counts a call while it is under way."""
        with self.lock:
            self.busy += 1
            self.most = max(self.most, self.busy)
        try:
            yield
        finally:
            with self.lock:
                self.busy -= 1

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that give up are part of the tests."""


class FaultyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise a body waits 40 ms for the acknowledgement of its head

    def read(self) -> Any:
        """Returns the request's body."""
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def send(self, status: int, body: str, **headers: str) -> None:
        self.send_response(status)
        content = body.encode("utf-8", "surrogateescape")
        self.send_header("content-length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing."""


class Stub(FaultyServer):
    """Every episode takes one step. A call's fault comes before the call has any effect.

    Attributes:
        calls: The methods called, in order.
        won: The episodes that were played to their end.
        gate: If set, steps wait until so many are under way.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.won = 0
        self.gate: threading.Barrier | None = None
        super().__init__(Handler)


@contextmanager
def run_stub() -> Iterator[Stub]:
    """Runs a stub, with hardly a pause between the tries of its client, nor for a server that is gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("task_gym.remote.protocol.Retries.pause", lambda *arguments: 0.001)
        patch.setattr("task_gym.remote.connection.SHORTEST", 0.05)
        server = Stub()
        yield server
        server.close()


class Handler(FaultyHandler):
    server: Stub

    def do_POST(self) -> None:
        asked = self.read()
        with self.server.lock:
            self.server.calls.append(asked["method"])
            fault = self.server.faults.pop(0) if self.server.faults and asked["method"] != "stop" else None
        with self.server.under_way():
            if fault is not None:
                fault(self)
                return
            if self.server.gate is not None and asked["method"] == "step":
                self.server.gate.wait(20)
            kwargs = asked["kwargs"]
            episode = kwargs.get("episode_id") or ("e2" if kwargs.get("seed", 0) % 2 else "e1")
            result = {"reset": opened, "step": closed, "state": opened, "stop": opened}[asked["method"]](
                episode
            )
            with self.server.lock:
                self.server.won += asked["method"] == "step"
            self.send(200, json.dumps({"status": "success", "result": result}))


def status(code: int, body: str = '{"error": {"message": "so it is"}}', **headers: str) -> Fault:
    return lambda handler: handler.send(code, body, **headers)


def result(value: Any) -> Fault:
    return status(200, json.dumps({"status": "success", "result": value}))


broken_json = status(200, '{"status": "succ')
compressed = status(200, "", content_encoding="gzip")
deep = status(200, "[" * 200_000)


def hang_up(handler: FaultyHandler) -> None:
    handler.close_connection = True
    handler.connection.close()


def slow(handler: FaultyHandler) -> None:
    time.sleep(1.5)
    hang_up(handler)
