"""Servers of GameSpiel's own, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from task_gym.remote.settings import TOKEN


@contextmanager
def served(*arguments: str, token: str = "") -> Iterator[str]:
    """The address of a server that runs inside the block."""
    command = [sys.executable, "-m", "gamespiel", "serve", "--port", "0", *arguments]
    environment = {**os.environ, TOKEN: token}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving "), line
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and body of a GET, or of a POST if there is a body: bytes, or what becomes JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-type": "application/json", **{key.replace("_", "-"): headers[key] for key in headers}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, named), timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def call(url: str, method: str, **kwargs: Any) -> tuple[int, Any]:
    """Status and result of a method; the whole body if it failed."""
    status, body = ask(f"{url}/call", {"method": method, "args": [], "kwargs": kwargs})
    return status, body["result"] if status == 200 else body
