"""Servers of GameSpiel's own, each in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from task_gym.remote.settings import TOKEN

if TYPE_CHECKING:
    from gamespiel.serving.app import Server
    from gamespiel.serving.options import ServeOptions


@contextmanager
def served(*arguments: str, token: str = "") -> Iterator[str]:
    """The address of a server that runs inside the block."""
    with launch_server(*arguments, token=token) as (_, url):
        yield url


@contextmanager
def launch_server(*arguments: str, token: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that runs inside the block as a process of its own, and its address."""
    command = [sys.executable, "-m", "gamespiel", "serve", "--port", "0", *arguments]
    environment = {**os.environ, TOKEN: token}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("serving "), line
            yield process, line.split()[-1]
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and body of a GET, or of a POST if there is a body: bytes, or what becomes JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-type": "application/json", **{key.replace("_", "-"): headers[key] for key in headers}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, named), timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def call(url: str, method: str, **kwargs: Any) -> tuple[int, Any]:
    """Status and result of a method; the whole body if it failed."""
    status, body = ask(f"{url}/call", {"method": method, "args": [], "kwargs": kwargs})
    return status, body["result"] if status == 200 else body


@contextmanager
def serving(options: ServeOptions, token: str = "") -> Iterator[tuple[str, Server]]:
    """The address of a server in this process, and the server."""
    from gamespiel.serving.app import make_app
    from gamespiel.serving.http import Http
    from gamespiel.serving.run import listen

    app, listening = make_app(options, token), listen(options)
    http = Http(app)
    thread = threading.Thread(target=http.run, args=([listening],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.server
    finally:
        http.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Waits until something is so, or for a minute: the assertions that follow say what is not."""
    deadline = monotonic() + 60
    while not is_so() and monotonic() < deadline:
        sleep(0.02)


def connect(url: str, source: str = "127.0.0.1") -> socket.socket:
    """A connection to a server, from one of this machine's addresses."""
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))


def request(method: str, **kwargs: Any) -> bytes:
    """The bytes of a request that calls a method."""
    body = json.dumps({"method": method, "kwargs": kwargs}).encode()
    head = f"POST /call HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
    return f"{head}content-type: application/json\r\n\r\n".encode() + body


def read_answer(client: socket.socket) -> tuple[int, Any]:
    """Status and body of the next answer on a connection."""
    response = HTTPResponse(client)
    response.begin()
    return response.status, json.loads(response.read())
