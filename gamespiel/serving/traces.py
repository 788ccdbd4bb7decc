"""The actor that asks for the output of programs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from gamespiel.endpoints.chat import Chat
from gamespiel.endpoints.traces import TIMEOUT, ask_trace
from gamespiel.serving.actors import Actor, Response, turn
from gamespiel.serving.options import ServeOptions
from task_gym.errors import ArgumentError
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.programs.base import TASKS
from trace_gym.sandbox import trouble

LEVEL = "namespaces"
"""The sandbox's level for programs of data sets. At weaker ones they could read the server's own secrets."""


class TraceEpisode:
    """One program, answered once.

    Args:
        env: The environment that asks; the episode has it for itself.
        task_id: The task.
        seed: Reported in ``info``; nothing depends on it.
    """

    def __init__(self, env: CodeTraceEnv, task_id: int, seed: int) -> None:
        self._env = env
        text, info = env.reset(seed=seed, options={"task_id": task_id})
        self._now = turn(text, 0.0, False, False, info)

    def response(self) -> Response:
        """Returns the question, or the outcome."""
        return self._now

    def step(self, reply: str) -> Response:
        """Compares a reply with the program's output."""
        if not self._now["done"]:
            text, reward, _, _, info = self._env.step(reply)
            del info["history"]
            self._now = turn(text, reward, True, False, info)
        return self._now


class TraceActor(Actor[TraceEpisode]):
    """Asks for the output of programs from one source.

    Programs of data sets run in the sandbox, in user namespaces. Builtin ones run in this process: they are
    the generator's.
    """

    def __init__(self, options: ServeOptions) -> None:
        super().__init__(options)
        self._source = options.source
        CodeTraceEnv(source=self._source)  # which raises if there is no such source
        self._trouble = None if self._source == "builtin" else trouble(LEVEL)

    def begin(self, task_id: int | None, seed: int, arguments: Mapping[str, Any]) -> TraceEpisode:
        """Returns a new episode.

        Raises:
            ArgumentError: programs must run in a sandbox that this machine does not offer.
        """
        self._check_sandbox()
        return TraceEpisode(CodeTraceEnv(source=self._source), _draw_task(task_id), seed)

    def play(
        self, chat: Chat, task_id: int | None, seed: int, timeout: float | None, arguments: Mapping[str, Any]
    ) -> Response:
        """Asks a model for a program's output."""
        self._check_sandbox()
        env, limit = CodeTraceEnv(source=self._source), TIMEOUT if timeout is None else timeout
        return ask_trace(chat, env, _draw_task(task_id), seed, limit)

    def _check_sandbox(self) -> None:
        if self._trouble is not None:
            raise ArgumentError(
                f"source: {self._source!r} was given to the server, and its programs run in the sandbox's "
                f"level {LEVEL!r} only; allowed here: 'builtin'; {self._trouble}"
            )


def _draw_task(task_id: int | None) -> int:
    return secrets.randbelow(TASKS) if task_id is None else task_id


def make(options: ServeOptions) -> TraceActor:
    """Returns the actor."""
    return TraceActor(options)
