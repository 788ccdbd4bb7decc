"""One address that tries to take a server's connections, memory, loop or rows from the others."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import pytest

from task_gym.processes import OFFERED
from tests.gamespiel.serving.servers import call, connect, read_answer, request, serving, wait_until
from trace_gym.sandbox import trouble

pytest.importorskip("uvicorn")

from gamespiel.serving import app, http, run, trace_processes
from gamespiel.serving.app import Refusal, parse_object
from gamespiel.serving.options import ServeOptions

OTHER = "127.0.0.2"


def has_ended(client: socket.socket) -> bool:
    """Whether the server has closed a connection; what it had sent is read."""
    try:
        while client.recv(1 << 16):
            pass
    except (ConnectionError, TimeoutError) as error:
        return isinstance(error, ConnectionError)
    return True


def test_a_caller_has_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some beyond its share are answered so that it may try again; others end at once."""
    monkeypatch.setattr(http, "count_connections", lambda: 2)
    with serving(ServeOptions(port=0)) as (url, _), ExitStack() as stack:
        clients = [stack.enter_context(connect(url)) for _ in range(3)]
        assert has_ended(stack.enter_context(connect(url)))
        for client, status in (
            (clients[0], 200),
            (clients[2], 503),
            (stack.enter_context(connect(url, OTHER)), 200),
        ):
            client.sendall(request("stop", episode_id="none"))
            answer = read_answer(client)
            assert answer[0] == status and answer[1].get("kind", "full") == "full"
        assert has_ended(clients[2])


@pytest.mark.launch
@pytest.mark.sample
def test_answers_that_nobody_reads_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 answers of a kilobyte each are more than these buffers have. One caller reads a part first."""

    def listen(options: ServeOptions) -> socket.socket:
        listening = plain(options)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return listening

    plain = run.listen
    monkeypatch.setattr(run, "listen", listen)
    monkeypatch.setattr(http, "ARRIVAL", 0.4)
    with serving(ServeOptions(port=0)) as (url, _), connect(url) as silent, connect(url, OTHER) as slow:
        for client, part in ((silent, 0), (slow, 100_000)):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(300 * b"GET /methods HTTP/1.1\r\nhost: a\r\n\r\n")
            while part > 0 and (read := client.recv(4096)):
                part -= len(read)
        sleep(1.0)
        for client in (silent, slow):
            client.settimeout(20.0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # the kernel's rest comes sooner
            assert has_ended(client)


def test_requests_of_a_caller_have_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "HELD", 2)
    reply = json.dumps({"method": "step", "kwargs": {"action": "a" * 900, "episode_id": "none"}}).encode()
    head = f"POST /call HTTP/1.1\r\nhost: a\r\ncontent-length: {len(reply)}\r\n\r\n".encode()
    with serving(ServeOptions(port=0, max_body=1024)) as (url, server), ExitStack() as stack:
        clients = [stack.enter_context(connect(url)) for _ in range(2)]
        for client in clients:  # bodies without their last byte
            client.sendall(head + reply[:-1])
        wait_until(lambda: sum(server._held.values()) >= 2 * (len(reply) - 1))
        third, other = stack.enter_context(connect(url)), stack.enter_context(connect(url, OTHER))
        for client, status in ((third, 503), (other, 200)):
            client.sendall(head + reply)
            answer = read_answer(client)
            assert answer[0] == status, answer
        for client in clients:
            client.sendall(reply[-1:])
            assert read_answer(client)[0] == 200
        assert call(url, "stop", episode_id="none")[0] == 200  # nothing stays counted
        assert not server._held


@pytest.mark.parametrize("part", ["[],", '"",', "1.5,", '{"":0},', " "])
def test_a_request_is_texts_and_little_else(part: str) -> None:
    """Its texts may be long, whatever is in them; 8 MiB of empty lists would be 180 MB."""
    text = json.dumps({"action": 30_000 * '[],"\\\n{:}é'})
    assert parse_object(text.encode()) == json.loads(text)
    with pytest.raises(Refusal, match="bytes beside its texts, allowed: at most 65536") as caught:
        parse_object(f'{{"args": [{70_000 * part}0]}}'.encode())
    assert caught.value.status == 413


def test_texts_without_an_end_are_found_in_linear_time() -> None:
    began = monotonic()
    with pytest.raises(Refusal):
        parse_object(b'"' + (1 << 22) * b'\\"')
    assert monotonic() - began < 30  # in quadratic time it takes hours


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.skipif(not OFFERED or trouble("namespaces") is not None, reason="no user namespaces")
def test_rows_of_a_caller_that_sleep_hold_up_its_own_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_processes, "PROCESSES", 2)
    monkeypatch.setattr(trace_processes, "EACH", 1)
    rows = tmp_path / "rows.jsonl"
    programs = [f"import threading\nthreading.Event().wait()\nprint({n})" for n in range(3)]
    programs.append("x = 2\nprint(x)")
    rows.write_text("".join(json.dumps({"program": code, "inputs": ""}) + "\n" for code in programs))
    with serving(ServeOptions(env="trace", port=0, source=str(rows))) as (url, server):
        with ExitStack() as stack:
            for row in range(3):
                stack.enter_context(connect(url)).sendall(request("reset", task_id=row, seed=0))
            wait_until(lambda: len(server._calls._under_way) >= 3)
            other = stack.enter_context(connect(url, OTHER))
            other.sendall(request("reset", task_id=3, seed=0))
            status, answer = read_answer(other)
            info = answer["result"]["info"]
            assert (status, info["row"], info["sandbox"]) == (200, 3, "namespaces")
            assert not server.is_idle(0.0)
        assert server.is_idle(20.0)  # less than the time after which a row is given up by itself
