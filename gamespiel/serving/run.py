"""Runs the server until Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress

from gamespiel.serving.options import ServeOptions
from task_gym.errors import ArgumentError, BackendError
from task_gym.remote.settings import TOKEN

WORKERS = "UVICORN_WORKERS"
"""The environment variable that sets the number of processes of upstream's server."""


def serve(options: ServeOptions) -> None:
    """Serves episodes.

    Raises:
        BackendError: the packages of the extra "serve" are not installed.
        ArgumentError: the address cannot be listened on.
    """
    try:
        from gamespiel.serving.app import make_app
        from gamespiel.serving.http import Http
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette", "h11"):
            raise
        raise BackendError(
            f"serve: the package {error.name} is not installed; pip install 'gamespiel[serve]'"
        ) from error
    app = make_app(options)
    _raise_limit()
    listening = listen(options)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    token = os.environ.get(TOKEN, "")
    if not token:
        hosts = ", ".join(options.evaluation_hosts(token))
        sent = f"have requests sent from here to hosts {hosts}" if hosts else "cannot use evaluate"
        print(
            f"no token: whoever reaches this address can play, and {sent}; {TOKEN} sets one", file=sys.stderr
        )
    if (workers := os.environ.get(WORKERS, "1")) != "1":
        print(
            f"{WORKERS}: {workers!r:.80} was given, and has no effect: one process plays all episodes, in "
            "threads; a second one would not know the first one's",
            file=sys.stderr,
        )
    app.state.server.start()
    # Flushed, because a program that starts the server reads the port from this line.
    print(f"serving {options.env} on http://{shown}:{listening.getsockname()[1]}", flush=True)
    status = 0
    try:
        Http(app).run(sockets=[listening])
    except KeyboardInterrupt:
        status = 130
        raise
    finally:
        # Python would wait for the threads, and nothing ends what an opponent of the user's own does.
        if not app.state.server.is_idle(timeout=1.0):
            sys.stdout.flush()
            os._exit(status)


def _raise_limit() -> None:
    """Lets the process open as many files as it may: each connection is one."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def listen(options: ServeOptions) -> socket.socket:
    """Returns a socket that listens.

    Raises:
        ArgumentError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # With the protocol named, asyncio sends small responses at once; else each takes 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
        listening.listen(2048)  # so that whoever reads the line below can connect
    except OSError as error:
        listening.close()
        raise ArgumentError(
            f"host, port: {options.host!r} and {options.port} were given, allowed: an address that can be "
            f"listened on; {error}"
        ) from error
    return listening
