"""What a request may be: numbers, texts and lengths that are refused before they do anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gamespiel.serving.servers import ask, connect, read_answer, serving

pytest.importorskip("uvicorn")

from gamespiel.serving.bodies import parse_object
from gamespiel.serving.hosts import name_caller
from gamespiel.serving.options import ServeOptions

LEDUC = 200_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(ServeOptions(port=0, max_body=4096)) as (url, _):
        yield url


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"method": "reset", "kwargs": {"seed": NaN}}', "NaN was given, allowed: finite numbers"),
        (b'{"method": "evaluate", "kwargs": {"temperature": 1e999}}', "1e999 was given"),
        (b'{"method": "state", "kwargs": {"episode_id": "\\ud800"}}', "half a surrogate pair"),
        (b'{"method": "state", "kwargs": {"\\udc00": 1}}', "half a surrogate pair"),
        (b'{"method": "step", "kwargs": {"action": "\xff"}}', "is not in UTF-8"),
        (b'{"method": "reset", "kwargs": {"seed": ' + b"9" * 4000 + b"}}", "whole numbers 0"),
        (b"[" * 4000, "is no JSON"),
        (b'"reset"', "is no object"),
    ],
)
def test_what_is_not_ours_to_read_is_refused(server: str, body: bytes, message: str) -> None:
    status, said = ask(f"{server}/call", body)
    assert (status, said["kind"]) == (400, "refused")
    assert message in said["error"]


def test_whole_surrogate_pairs_and_escaped_backslashes_are_text() -> None:
    assert parse_object(b'{"a": "\\ud83c\\udccf"}') == {"a": "\U0001f0cf"}
    assert parse_object(b'{"a": "\\\\ud800"}') == {"a": "\\ud800"}
    assert parse_object(b'{"a": 1e308, "b": -0.5}') == {"a": 1e308, "b": -0.5}


def send(url: str, said: str) -> tuple[int, Any, bytes]:
    """Status and body of the answer to a request, and what comes after it until the server closes."""
    with connect(url) as client:
        client.sendall(said.encode())
        status, body = read_answer(client)
        return status, body, client.recv(1)


HEAD = "POST /call HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


def test_a_body_beyond_the_limit_is_refused_before_it_comes(server: str) -> None:
    for length in ("4097", "1000000000000"):
        status, body, rest = send(server, f"{HEAD}content-length: {length}\r\n\r\n")
        assert (status, rest) == (413, b"")  # and the connection is closed: nothing of the body is waited for
        assert "more than 4096 bytes" in body["error"]
    status, body, rest = send(server, f"{HEAD}transfer-encoding: chunked\r\n\r\n2000\r\n{' ' * 8192}\r\n")
    assert (status, rest) == (413, b"")


def test_a_length_that_is_stated_twice_is_refused(server: str) -> None:
    chunked = "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"
    for path in ("/call", "/health", "/reset"):
        status, body, rest = send(server, HEAD.replace("/call", path) + chunked)
        assert (status, rest) == (400, b"")  # and nothing is read out of the rest
        assert body["error"] == "content-length and transfer-encoding were given, allowed: one of them"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),  # one caller has as many addresses as it likes in its network
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_callers_are_told_apart_by_address(address: str, name: str) -> None:
    assert name_caller(address) == name
