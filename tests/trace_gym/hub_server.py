"""A hub on this machine, with one data set, any number of commits, and the real hub's protocol.

It has the requests of ``huggingface_hub``: a revision's commit, a commit's list of files, and the files.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

FILE = "data/train.jsonl"


class Hub:
    """The data set ``name``: its commits, and its branch's commit."""

    def __init__(self, name: str) -> None:
        self.name, self.branch, self.url = name, "", ""
        self._commits: dict[str, bytes] = {}

    def put(self, rows: Sequence[dict[str, Any]]) -> str:
        """Moves the branch to a new commit with a file of rows. Returns the commit's name."""
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        self.branch = _oid(data)
        self._commits[self.branch] = data
        return self.branch

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body for a request."""
        asked = re.match(rf"/(?:api/)?datasets/{self.name}/(\w+)/([^/?]+)/?([^?]*)", unquote(path))
        commit = asked[2] if asked and asked[2] != "main" else self.branch
        if asked is None or commit not in self._commits:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        data = self._commits[commit]
        match asked[1], asked[3]:
            case "revision", _:
                return _as_json({"id": self.name, "sha": commit, "siblings": []})
            case "tree", _:
                return _as_json([{"type": "file", "path": FILE, "size": len(data), "oid": _oid(data)}])
            case "resolve", file if file == FILE:
                return 200, {"ETag": f'"{_oid(data)}"', "X-Repo-Commit": commit}, data
        return 404, {"X-Error-Code": "EntryNotFound"}, b""


@contextmanager
def served(hub: Hub) -> Iterator[None]:
    """Serves the hub at ``hub.url``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    port = urlsplit(hub.url).port or 0
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


def _as_json(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()
