"""Calls through affinetes, which is imported at the first call: it patches asyncio in all the process."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Any

from task_gym.errors import ArgumentError
from task_gym.remote.protocol import Failure
from task_gym.remote.settings import TOKEN, Settings


class Client:
    """Calls the methods of the environment on one server. Its methods run on the loop of ``remote.loop``."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.base_url
        self._env = _load(self._url)

    async def call(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Returns the result of a method.

        Raises:
            Failure: there is none.
        """
        try:
            return await getattr(self._env, method)(**arguments)
        except Exception as error:  # affinetes wraps everything in classes of its own
            raise _failure(self._url, error) from error


def load_env(**arguments: Any) -> Any:
    """Returns what affinetes loads, without its log."""
    logger = logging.getLogger("affinetes")
    import affinetes

    load = affinetes.load_env  # which imports the rest, and sets the logger's level
    logger.setLevel(logging.CRITICAL)
    try:
        return load(**arguments)
    finally:
        logger.setLevel(logging.ERROR)


def _load(url: str) -> Any:
    from task_gym.remote.bounds import bound

    # Naming the type of the server leaves out the search for it, which blocks while the server is away.
    env = load_env(mode="url", base_url=url, env_type_override="function_based")
    token = os.environ.get(TOKEN)
    client = env._backend._http_executor.client
    bound(client)
    if token:
        if not all("!" <= sign <= "~" for sign in token):  # httpx would show it in its error
            raise ArgumentError(f"{TOKEN}: it has a space, a line end or another character of no header")
        # affinetes has no argument for headers, and would log a token that is part of the address.
        client.headers["Authorization"] = f"Bearer {token}"
    return env


def _failure(url: str, error: BaseException) -> Failure:
    """Returns the failure that an exception of affinetes means, from the exceptions that led to it."""
    import httpx

    server = f"server {url}"
    for cause in _causes(error):
        if isinstance(cause, Failure):
            return cause
        if isinstance(cause, httpx.HTTPStatusError):
            return _of_status(server, cause.response.status_code, cause.response.text)
        if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
            return Failure("away", f"{server} cannot be reached: {cause}", happened=False)
        if isinstance(cause, httpx.TimeoutException):
            return Failure("late", f"{server} did not answer in time")
        if isinstance(cause, httpx.TransportError):
            return Failure("away", f"{server} broke the connection: {cause}")
        if isinstance(cause, (ValueError, RecursionError)):  # of JSON and of UTF-8
            return Failure("broken", f"{server} sent no JSON: {cause}")
    return Failure("status", f"{server} failed: {error!s:.300}")


def _of_status(server: str, status: int, body: str) -> Failure:
    """Returns the failure of an HTTP status; GameSpiel's own server says more in the body."""
    try:
        failed = json.loads(body)
        kind, message = failed["kind"], str(failed["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        lines = body.strip().splitlines() or [""]
        return Failure("status", f"{server} answered with status {status}: {lines[0]:.300}")
    known = kind if kind in ("unknown", "full", "refused") else "status"
    return Failure(known, f"{server} answered: {message:.1000}", happened=known == "status")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
