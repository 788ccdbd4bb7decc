"""The HTTP server: ``POST /call`` and ``POST /{method}``, as affinetes' own answers them, with limits."""

from __future__ import annotations

import asyncio
import base64
import hmac
import inspect
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from math import inf
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gamespiel.endpoints.chat import ClosedError
from gamespiel.serving.actors import Actor
from gamespiel.serving.hosts import is_own_name, name_caller
from gamespiel.serving.lanes import Lane
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import FullError
from task_gym.caller import CALLER, Caller, CallerLeftError
from task_gym.errors import SandboxError, TaskGymError, explain_unknown
from task_gym.files import read_finite
from task_gym.remote.settings import TOKEN

THREADS, EACH = 256, 64
"""Calls that are worked on at once, of all callers and of one. A thread may wait for an opponent's search, or
for a program that sleeps."""

EVALUATIONS, EACH_EVALUATES = 128, 64
"""Most whole episodes with a model at once. They wait for the model, and hold up no other call."""

HELD = 8
"""The most bytes of one caller's requests that are under way, in units of ``max_body``."""

MOST_STRUCTURE = 1 << 16
"""The most bytes of a request that are in none of its texts: as lists and objects they would take twenty to
thirty times the memory, and time in which nobody else is answered."""

GRACE = 5
"""Seconds that calls under way have when the server ends; evaluations have none."""

LATER = 10.0
"""Seconds after its own timeout at which ``/call`` gives a call up, as upstream's."""

_USAGE = {
    "sdk_style": 'POST /call {"method": "step", "args": [], "kwargs": {"action": "0", "episode_id": "ID"}}',
    "restful_style": 'POST /step {"action": "0", "episode_id": "ID"}',
}

_ACTORS = {"openspiel": "gamespiel.serving.games:GameActor", "trace": "gamespiel.serving.traces:TraceActor"}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_log = logging.getLogger("gamespiel.serving")


class Refusal(Exception):
    """A request that is answered with an error, and not with what the actor returns.

    Args:
        status: The HTTP status.
        message: What is wrong.
        kind: One of ``task_gym.remote.protocol.Failure``.
    """

    def __init__(self, status: int, message: str, kind: str = "refused") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class Late(Exception):
    """A call without a result in its time, or with a time that no call can take."""


_CLOSE = {"connection": "close"}
"""The header of an answer before which the request was not read to its end."""


class Server:
    """Answers requests for one actor.

    Args:
        actor: Its methods are called in threads.
        options: The limits.
        token: The bearer token that every call needs; "" for none.
    """

    def __init__(self, actor: Actor, options: ServeOptions, token: str) -> None:
        self._actor, self._options, self._token = actor, options, token
        self._calls = Lane(THREADS, EACH, "gamespiel.serving")
        self._evaluations = Lane(EVALUATIONS, EACH_EVALUATES, "gamespiel.evaluations")
        self._held = Counter[str]()  # bytes by caller
        self._ending, self._over = asyncio.Event(), asyncio.Event()

    async def health(self, request: Request) -> Response:
        """Says that the server runs."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Says whether another episode can be begun: status 200, or 503."""
        playing, most = self._actor.sessions.playing(), self._options.max_sessions
        load = {"status": "ready" if playing < most else "full", "sessions": playing, "max_sessions": most}
        return JSONResponse(load, status_code=200 if playing < most else 503)

    async def methods(self, request: Request) -> Response:
        """Lists the methods, by which affinetes' client knows the kind of server."""
        listed = [
            {
                "name": name,
                "signature": str(inspect.signature(method)),
                "source": "Actor",
                "endpoint": f"POST /{name}",
            }
            for name, method in self._actor.methods.items()
        ]
        return JSONResponse({"methods": listed, "usage": _USAGE})

    async def call(self, request: Request) -> Response:
        """Calls a method: ``{"method": …, "args": […], "kwargs": {…}}`` to status, result and error.

        If ``kwargs`` have a timeout, the call is given up ``LATER`` seconds after it. If the path names the
        method, the body has the arguments by name: ``POST /step {"action": …}``. There,
        ``{"args": […], "kwargs": {…}}`` is read too, and an empty body has no arguments.
        """
        unread: Mapping[str, str] = _CLOSE
        caller = name_caller(request.client.host if request.client else "")
        try:
            with self._holding(caller) as hold:
                body = await self._read_request(request, hold)
                unread = {}
                work, timeout = self._parse(request.path_params.get("method"), body)
                del body  # its texts stay until a thread is free
                result = await self._run(request, caller, work, timeout)
        except Late as late:
            return JSONResponse({"status": "failed", "result": {"error": str(late)}, "error": None})
        except Refusal as refusal:
            return _make_error(refusal.status, refusal.kind, str(refusal), unread)
        except ClientDisconnect:
            return _make_error(400, "refused", "the request ended early")
        except FullError as error:
            return _make_error(503, "full", str(error))
        except SandboxError as error:
            return _make_error(500, "status", str(error))
        except TaskGymError as error:
            return _make_error(400, "refused", str(error))
        except Exception:
            _log.exception("a call failed")
            return _make_error(500, "status", "the server failed; its log says more")
        return JSONResponse({"status": "success", "result": result, "error": None})

    @contextmanager
    def _holding(self, caller: str) -> Iterator[Callable[[int], None]]:
        """Yields what counts a request's bytes within the context, and raises Refusal for too many."""
        held, most = 0, HELD * self._options.max_body

        def hold(count: int) -> None:
            nonlocal held
            held += count
            self._held[caller] += count
            if self._held[caller] > most:
                excess = f"{self._held[caller]} bytes of this caller's requests were given"
                raise Refusal(503, f"{excess}, allowed: at most {most} at once; try again later", "full")

        try:
            yield hold
        finally:
            self._held -= Counter({caller: held})

    async def _run(self, request: Request, name: str, work: partial[Any], timeout: float | None) -> Any:
        """Returns the result of a call, which a thread works out.

        The call is given up, with everything that it began, when its caller closes the connection, after its
        own time, and when the server ends: an evaluation at once, as it may take half an hour and can be
        repeated; another call after ``GRACE`` seconds.

        Raises:
            Refusal: the server is ending. A step that was given up may have happened.
            ClientDisconnect: the caller has left.
            Late: there was no result in time.
        """
        evaluates = work.func == self._actor.evaluate
        lane, end = (self._evaluations, self._ending) if evaluates else (self._calls, self._over)
        # In an evaluation the model has any number of turns: each of the opponents' searches has the time.
        caller, context = Caller(self._options.search_s, each=evaluates, name=name), copy_context()
        context.run(CALLER.set, caller)
        working = asyncio.ensure_future(lane.run(name, partial(context.run, work)))
        left, ended = asyncio.ensure_future(_has_left(request)), asyncio.ensure_future(end.wait())
        limit = None if timeout is None else timeout + LATER
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({working, left, ended}, timeout=limit, return_when=first)
            if working.done():
                return working.result()
            caller.leave()
            if left.done():
                raise ClientDisconnect
            if not ended.done():
                raise Late(f"the call took longer than its timeout of {timeout:g} s and {LATER:g} s more")
        except (ClosedError, CallerLeftError):  # the work was the first to notice
            pass
        finally:
            for task in (working, left, ended):
                task.cancel()
        raise Refusal(503, "the server is ending, and gave the call up", "full" if evaluates else "status")

    def start(self) -> None:
        """Begins to start what calls need."""
        self._actor.start()

    def end(self) -> None:
        """Gives up the evaluations under way at once, and the other calls after ``GRACE`` seconds."""
        self._ending.set()
        self._actor.end()
        asyncio.get_running_loop().call_later(GRACE, self._over.set)

    def is_idle(self, timeout: float) -> bool:
        """Returns whether no thread works on a call any more after so many seconds."""
        return all(lane.is_idle(timeout) for lane in (self._calls, self._evaluations))

    async def _read_request(self, request: Request, hold: Callable[[int], None]) -> bytes:
        """Returns the body of a request that carries the token and is none of a page in a browser.

        A page cannot send JSON to another site without asking, and what it can send has a header ``Origin``
        or ``Sec-Fetch-Site``. Programs have neither, so their content may be of any type, as upstream's.
        Without a token, the request must also name the server as its own users do, and not as a page could.

        Raises:
            Refusal: it is another request, or it is too long.
        """
        host = request.headers.get("host", "")
        if not self._token and not is_own_name(host, self._options.hosts):
            raise Refusal(
                421,
                f"host: {host!r:.200} was given, allowed: an address, a name without a dot, and the server's "
                f"--hosts; or a token ({TOKEN})",
            )
        if self._token and not _has_token(request.headers.get("authorization", ""), self._token):
            raise Refusal(401, f"the request has no token, or a wrong one; the server's is in {TOKEN}")
        most = self._options.max_body
        if int(request.headers.get("content-length", "0")) > most:  # h11 lets only digits pass
            raise Refusal(413, f"the request has more than {most} bytes, which is the most")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and {"origin", "sec-fetch-site"} & set(request.headers):
            raise Refusal(415, f"content-type: {kind!r:.80} was given by a page, allowed: application/json")
        body = bytearray()
        async for chunk in request.stream():
            hold(len(chunk))
            body += chunk
            if len(body) > most:
                raise Refusal(413, f"the request has more than {most} bytes, which is the most")
        return bytes(body)

    def _parse(self, name: str | None, body: bytes) -> tuple[partial[Any], float | None]:
        """Returns the call that a request's body is, and the seconds that it may take; None for any time.

        Args:
            name: The method that the path names; None if the body does.
            body: The body.

        Raises:
            Refusal: there is no such method, or it does not take these arguments.
            Late: no call can take such a time.
        """
        asked = parse_object(body) if name is None or body.strip() else {}
        args, kwargs = [], asked
        if name is None or {"args", "kwargs"} & set(asked):
            args, kwargs = asked.get("args", []), asked.get("kwargs", {})
        called: Any = asked.get("method") if name is None else name
        method = self._actor.methods.get(called) if isinstance(called, str) else None
        if method is None:
            allowed = ", ".join(self._actor.methods)
            raise Refusal(404, f"method: {called!r:.80} was given, allowed: {allowed}")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise Refusal(400, "args: a list is allowed; kwargs: an object is allowed")
        signature = inspect.signature(method)
        for key in kwargs:
            if key not in signature.parameters:
                raise Refusal(400, explain_unknown(f"argument of {called}", key, tuple(signature.parameters)))
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Refusal(400, f"arguments of {called}: {error}") from error
        timeout = kwargs.get("timeout") if name is None else None
        return partial(method, *args, **kwargs), None if timeout is None else _read_timeout(timeout)


def make_app(options: ServeOptions, token: str | None = None) -> Starlette:
    """Returns the application.

    Args:
        options: The server's options.
        token: The bearer token; None for the environment variable's.
    """
    actor: Actor = resolve_name(_ACTORS[options.env])(options)
    token = os.environ.get(TOKEN, "") if token is None else token
    actor.evaluation_hosts = options.evaluation_hosts(token)
    server = Server(actor, options, token)
    app = Starlette(
        routes=[
            Route("/health", server.health),
            Route("/ready", server.ready),
            Route("/methods", server.methods),
            Route("/call", server.call, methods=["POST"]),
            Route("/{method}", server.call, methods=["POST"]),
        ],
        middleware=[Middleware(_refuse_two_lengths)],
    )
    app.state.server = server
    return app


async def refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request on a connection that its caller has beyond its share."""
    said = "this caller has all connections that one caller may have; close some, or try again later"
    await _make_error(503, "full", said, _CLOSE)(scope, receive, send)


def _refuse_two_lengths(app: ASGIApp) -> ASGIApp:
    """Returns an application that refuses requests whose length is stated twice, and hands on all others.

    A proxy may read a second request out of its body.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        answers, names = app, {name for name, _ in scope.get("headers", ())}
        if scope["type"] == "http" and {b"content-length", b"transfer-encoding"} <= names:
            said = "content-length and transfer-encoding were given, allowed: one of them"
            answers = _make_error(400, "refused", said, _CLOSE)
        await answers(scope, receive, send)

    return answer


def parse_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object that a request's body is.

    Raises:
        Refusal: the body is no JSON in UTF-8, or no object, has too much beside its texts, a number that is
            not finite, or a text that no UTF-8 can have.
    """
    if len(body) > MOST_STRUCTURE and (beside := len(_TEXT.sub(b"", body))) > MOST_STRUCTURE:
        raise Refusal(
            413, f"the request has {beside} bytes beside its texts, allowed: at most {MOST_STRUCTURE}"
        )
    try:
        asked = json.loads(body.decode(), parse_constant=read_finite, parse_float=read_finite)
        if _SURROGATE.search(body):
            json.dumps(asked, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise Refusal(400, f"the request is not in UTF-8: {error}") from error
    except UnicodeEncodeError as error:
        half = "half a surrogate pair (\\ud800 to \\udfff), which is no character"
        raise Refusal(400, f"the request has {half}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the request is no JSON: {error}") from error
    if not isinstance(asked, dict):
        raise Refusal(400, "the request is no object")
    return asked


def _read_timeout(timeout: Any) -> float:
    """Returns the seconds that a call may take, or raises Late, as upstream answers it."""
    try:
        seconds = float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = 0.0
    if not 0 < seconds < inf:
        raise Late(f"timeout: {timeout!r:.80} was given, allowed: a number of seconds above 0")
    return seconds


async def _has_left(request: Request) -> None:
    """Returns when the caller has closed the connection. The request was read to its end before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _has_token(authorization: str, token: str) -> bool:
    """Returns whether a header carries the token: as a bearer, or as the password in a client's address."""
    scheme, _, credentials = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            credentials = base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(credentials.strip().encode(), token.encode())


def _make_error(
    status: int, kind: str, message: str, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """Returns an error; ``kind`` is one of ``task_gym.remote.protocol.Failure``."""
    # Escaped, since a message may quote what no encoding can take.
    body = json.dumps({"status": "failed", "result": None, "error": message, "kind": kind})
    return Response(body, status, headers, "application/json")
