"""Callers that are slow or leave, at a server in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.gamespiel.endpoints.models import Body, ModelStub
from tests.gamespiel.serving.servers import ask, call, connect, request, serving

pytest.importorskip("uvicorn")

from gamespiel.serving import arrival
from gamespiel.serving.app import Server
from gamespiel.serving.options import ServeOptions

LEDUC = 200_000_000


@pytest.fixture
def here() -> Iterator[tuple[str, Server]]:
    """A server's address, and the server."""
    with serving(ServeOptions(port=0)) as found:
        yield found


def end_of(url: str, said: bytes) -> bytes:
    """The bytes that a server sends before it closes the connection of a client that says so much."""
    with connect(url) as client:
        client.sendall(said)
        heard = bytearray()
        while piece := client.recv(1 << 16):  # raises TimeoutError if the server goes on waiting
            heard += piece
    return bytes(heard)


WHOLE = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n"
HEAD = b"POST /call HTTP/1.1\r\nhost: a\r\nx-slow: "
BODY = b"POST /call HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"


@pytest.mark.parametrize(
    ("said", "answers"),
    [(b"", 0), (HEAD, 0), (WHOLE + BODY, 1)],
    ids=["nothing", "half a head", "half a body after a request"],
)
def test_a_request_that_does_not_arrive_is_not_waited_for(
    said: bytes, answers: int, here: tuple[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "ARRIVAL", 1.0)
    url, _ = here
    assert end_of(url, said).count(b"HTTP/1.1 200") == answers
    assert call(url, "reset", task_id=LEDUC, seed=0, opponent="first")[0] == 200


def test_a_request_that_has_arrived_may_take_long(
    here: tuple[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "ARRIVAL", 1.0)
    url, _ = here
    with ModelStub(lambda body: "1", pause=1.5) as stub:
        asked = {"task_id": LEDUC, "seed": 0, "opponent": "first", "model": "m", "base_url": stub.url}
        status, result = call(url, "evaluate", **asked)
    assert (status, "error" in result) == (200, False)


def test_an_evaluation_ends_when_its_caller_leaves(here: tuple[str, Server]) -> None:
    url, server = here
    asked, release = threading.Event(), threading.Event()

    def answer(body: Body) -> str:
        asked.set()
        release.wait(300)  # longer than the test: nothing but the caller's leaving ends the request
        return "1"

    with ModelStub(answer) as stub:
        arguments = {"task_id": LEDUC, "seed": 0, "opponent": "first", "model": "m", "base_url": stub.url}
        with connect(url) as client:
            client.sendall(request("evaluate", **arguments))
            assert asked.wait(60)
            assert not server.is_idle(0.0)
        assert server.is_idle(60.0)
        release.set()
        assert len(stub.asked) == 1
    assert ask(f"{url}/ready")[0] == 200
