"""A model hub on this machine, which speaks as much of the real one's protocol as loading a model needs."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"

HARNESSES = "/api/agent-harnesses"
"""The address at which the library asks about itself, without a token, once in a process."""


class Hub:
    """The hub's content and behaviour; tests change both.

    Attributes:
        url: Its address.
        models: Folders by name.
        refusal: Status, error code and message with which it answers every request, if any.
        hangs: Whether it takes requests and never answers.
        asked: The paths that were asked for.
        tokens: The tokens that were shown.
    """

    def __init__(self) -> None:
        self.url = ""
        self.models: dict[str, Path] = {}
        self.refusal: tuple[int, str, str] | None = None
        self.hangs = False
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.closed = threading.Event()

    def file(self, path: str) -> Path | None:
        """Returns the file at /OWNER/MODEL/resolve/REVISION/FILE."""
        owner, model, _, _, name = [*path.strip("/").split("/", 4), *[""] * 5][:5]
        folder = self.models.get(f"{owner}/{model}")
        return folder / name if folder is not None and name and (folder / name).is_file() else None


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == HARNESSES:
                return self._send(404)
            hub.asked.append(self.path)
            hub.tokens.add(self.headers.get("Authorization"))
            if hub.hangs:
                hub.closed.wait()
                return None
            path = hub.file(self.path)
            known = any(f"/{name}/" in self.path for name in hub.models)
            if hub.refusal is not None or path is None:
                self._send(*(hub.refusal or (404, "EntryNotFound" if known else "RepoNotFound")))
            else:
                self._send(200, content=path.read_bytes())

        do_HEAD = do_GET

        def _send(self, status: int, code: str = "", reason: str = "", content: bytes = b"") -> None:
            self.send_response(status)
            if status != 200:
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", reason)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@contextmanager
def running() -> Iterator[Hub]:
    """Runs a hub without models within the context."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        hub.closed.set()
        server.shutdown()
        thread.join()
        server.server_close()
