"""The HTTP server: ``POST /call`` and ``POST /{method}``, as affinetes' own answers them, with limits."""

from __future__ import annotations

import asyncio
import base64
import hmac
import inspect
import json
import logging
import os
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gamespiel.endpoints.chat import ClosedError
from gamespiel.serving.actors import CALLER, Actor, Caller
from gamespiel.serving.hosts import is_own_name
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import FullError
from task_gym.checks import is_number
from task_gym.errors import SandboxError, TaskGymError, unknown
from task_gym.remote.settings import TOKEN

THREADS = 32
"""Calls that are worked on at once. Others wait."""

EVALUATIONS = 64
"""Most whole episodes with a model at once. They wait for the model, and hold up no other call."""

GRACE = 5
"""Seconds that calls under way have when the server ends; evaluations have none."""

LATER = 10.0
"""Seconds after its own timeout at which ``/call`` gives a call up, as upstream's."""

_USAGE = {
    "sdk_style": 'POST /call {"method": "step", "args": [], "kwargs": {"action": "0", "episode_id": "ID"}}',
    "restful_style": 'POST /step {"action": "0", "episode_id": "ID"}',
}

_MODULES = {"openspiel": "gamespiel.serving.games", "trace": "gamespiel.serving.traces"}
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
    """A call that was given up because it took too long."""


@dataclass(frozen=True)
class Call:
    """A call of one of the actor's methods.

    Attributes:
        method: The method.
        args: The arguments by position.
        kwargs: The arguments by name.
        timeout: Seconds that it may take, and ``LATER`` more; None for any time.
    """

    method: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    timeout: float | None = None


class Server:
    """Answers requests for one actor.

    Args:
        actor: Its methods are called in threads.
        options: The limits.
        token: The bearer token that every call needs; "" for none.
    """

    def __init__(self, actor: Actor[Any], options: ServeOptions, token: str) -> None:
        self._actor, self._options, self._token = actor, options, token
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="gamespiel.serving")
        self._evaluations = ThreadPoolExecutor(EVALUATIONS, thread_name_prefix="gamespiel.evaluations")
        self._under_way: set[Future[Any]] = set()
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

        If ``kwargs`` have a timeout, the call is given up ``LATER`` seconds after it.
        """
        return await self._answer(request, self._parse_call)

    async def call_named(self, request: Request) -> Response:
        """Calls the method that the path names, with the arguments by name: ``POST /step {"action": …}``.

        ``{"args": […], "kwargs": {…}}`` is read too, and an empty body has no arguments.
        """
        name = request.path_params["method"]
        return await self._answer(request, lambda body: self._parse_named(name, body))

    async def _answer(self, request: Request, parse: Callable[[bytes], Call]) -> Response:
        """Returns the response to a call.

        Args:
            request: The request.
            parse: Returns the call that the request's body is.
        """
        try:
            self._admit_request(request)
            call = parse(await self._read_body(request))
            if call.method == self._actor.evaluate:
                result = await self._run_evaluation(request, call)
            else:
                work = self._threads.submit(call.method, *call.args, **call.kwargs)
                result = await self._await_result(work, self._over, "status")
        except Late as late:
            return JSONResponse({"status": "failed", "result": {"error": str(late)}, "error": None})
        except Refusal as refusal:
            return _make_error(refusal.status, refusal.kind, str(refusal))
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

    async def _run_evaluation(self, request: Request, call: Call) -> Any:
        """Returns the result of an evaluation, which a thread of its own plays.

        It is given up when the caller closes the connection, and at once when the server ends: it may take
        half an hour, and it can be repeated.

        Raises:
            Refusal: it was given up.
            Late: it was given up after the call's time.
        """
        caller, context = Caller(), copy_context()
        context.run(CALLER.set, caller)
        work = self._evaluations.submit(context.run, call.method, *call.args, **call.kwargs)

        def give_up() -> None:
            work.cancel()  # if it has not begun
            caller.leave()

        left = asyncio.ensure_future(_has_left(request))
        left.add_done_callback(lambda done: None if done.cancelled() else give_up())
        try:
            return await self._await_result(work, self._ending, "full", call.timeout)
        except Late:
            give_up()
            raise
        finally:
            left.cancel()

    async def _await_result(
        self, work: Future[Any], end: asyncio.Event, kind: str, timeout: float | None = None
    ) -> Any:
        """Returns the result that a thread works out.

        Args:
            work: The thread's work.
            end: Set when it is given up, although it goes on.
            kind: The kind of the failure then. A step that was given up may have happened.
            timeout: Seconds, of which ``LATER`` more are waited; None for no limit.

        Raises:
            Refusal: it was given up.
            Late: there was none in time.
        """
        limit = None if timeout is None else timeout + LATER
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        result = asyncio.wrap_future(work)
        # Its failure is known, even if nobody asks for it: asyncio would print it.
        result.add_done_callback(lambda done: done.cancelled() or done.exception())
        ended = asyncio.ensure_future(end.wait())
        try:
            done, _ = await asyncio.wait({result, ended}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not done:
            raise Late(f"the call took longer than its timeout of {timeout:g} s and {LATER:g} s more")
        # The evaluation may be the first to notice.
        if not result.done() or result.cancelled() or isinstance(result.exception(), ClosedError):
            raise Refusal(503, "the server is ending, and gave the call up", kind)
        return result.result()

    def end(self) -> None:
        """Gives up the evaluations under way at once, and the other calls after ``GRACE`` seconds."""
        self._ending.set()
        self._actor.end()
        asyncio.get_running_loop().call_later(GRACE, self._over.set)

    def is_idle(self, timeout: float) -> bool:
        """Returns whether no thread works on a call any more after so many seconds."""
        return not wait(set(self._under_way), timeout).not_done

    def _admit_request(self, request: Request) -> None:
        """Raises Refusal unless the request carries the token and is JSON.

        A page in a browser cannot send JSON to another site without asking, so it cannot play here. Without a
        token, the request must also name the server as its own users do, and not as a page could.
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
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, f"content-type: {kind!r:.80} was given, allowed: application/json")

    async def _read_body(self, request: Request) -> bytes:
        most, body = self._options.max_body, bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise Refusal(413, f"the request has more than {most} bytes, which is the most")
        return bytes(body)

    def _parse_call(self, body: bytes) -> Call:
        asked = _parse_object(body)
        name, args, kwargs = asked.get("method"), asked.get("args", []), asked.get("kwargs", {})
        call = self._bind(name, args, kwargs)
        timeout = call.kwargs.get("timeout")
        return replace(call, timeout=float(timeout)) if is_number(timeout) else call

    def _parse_named(self, name: str, body: bytes) -> Call:
        asked = _parse_object(body) if body.strip() else {}
        if "args" in asked or "kwargs" in asked:
            return self._bind(name, asked.get("args", []), asked.get("kwargs", {}))
        return self._bind(name, [], asked)

    def _bind(self, name: Any, args: Any, kwargs: Any) -> Call:
        """Returns the call of a method, or raises Refusal if there is none that takes these arguments."""
        method = self._actor.methods.get(name) if isinstance(name, str) else None
        if method is None:
            raise Refusal(404, f"method: {name!r:.80} was given, allowed: {', '.join(self._actor.methods)}")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise Refusal(400, "args: a list is allowed; kwargs: an object is allowed")
        signature = inspect.signature(method)
        for given in kwargs:
            if given not in signature.parameters:
                raise Refusal(400, unknown(f"argument of {name}", given, tuple(signature.parameters)))
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Refusal(400, f"arguments of {name}: {error}") from error
        return Call(method, args, kwargs)


def _parse_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object that a body is, or raises Refusal."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the request is no JSON: {error}") from error
    if not isinstance(asked, dict):
        raise Refusal(400, "the request is no object")
    return asked


def make_app(options: ServeOptions, token: str | None = None) -> Starlette:
    """Returns the application.

    Args:
        options: The server's options.
        token: The bearer token; None for the environment variable's.
    """
    actor: Actor[Any] = import_module(_MODULES[options.env]).make(options)
    token = os.environ.get(TOKEN, "") if token is None else token
    actor.evaluation_hosts = options.evaluation_hosts(token)
    server = Server(actor, options, token)
    app = Starlette(
        routes=[
            Route("/health", server.health),
            Route("/ready", server.ready),
            Route("/methods", server.methods),
            Route("/call", server.call, methods=["POST"]),
            Route("/{method}", server.call_named, methods=["POST"]),
        ]
    )
    app.state.server = server
    return app


class Http(uvicorn.Server):
    """uvicorn, which ends in bounded time.

    Args:
        server: What is served.
        config: uvicorn's settings.
    """

    def __init__(self, server: Server, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._server = server

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the calls under way, and waits for them as uvicorn does."""
        self._server.end()
        await super().shutdown(sockets)


async def _has_left(request: Request) -> None:
    """Returns when the caller has closed the connection. The request was read to its end before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _has_token(authorization: str, token: str) -> bool:
    """Returns whether a header carries the token: as a bearer, or as the password in a client's address."""
    scheme, _, given = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except ValueError:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode(), token.encode())


def _make_error(status: int, kind: str, message: str) -> Response:
    """Returns an error; ``kind`` is one of ``task_gym.remote.protocol.Failure``."""
    return JSONResponse(
        {"status": "failed", "result": None, "error": message, "kind": kind}, status_code=status
    )
