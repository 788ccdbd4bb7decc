"""The actor that asks for the output of programs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from gamespiel.serving.actors import Actor, Response, turn
from gamespiel.serving.options import ServeOptions
from task_gym.errors import SandboxError
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.programs.base import TASKS


class TraceEpisode:
    """One program, answered once.

    Args:
        env: The environment that asks; the episode has it for itself.
        task_id: The task.
        seed: Told in ``info``; nothing depends on it.
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

    Programs of data sets run in the sandbox, builtin ones in this process: the generator wrote them.
    """

    def __init__(self, options: ServeOptions) -> None:
        super().__init__(options)
        self._source = options.source
        CodeTraceEnv(source=self._source)  # which raises if there is no such source

    def begin(self, task_id: int | None, seed: int, arguments: Mapping[str, Any]) -> TraceEpisode:
        """Returns a new episode.

        Raises:
            SandboxError: the program must run in the sandbox, which this machine does not offer.
        """
        if task_id is None:
            task_id = secrets.randbelow(TASKS)
        try:
            return TraceEpisode(CodeTraceEnv(source=self._source), task_id, seed)
        except SandboxError as error:
            raise SandboxError(
                f"source: {self._source!r} has programs that run in the sandbox only; {error}"
            ) from error


def make(options: ServeOptions) -> TraceActor:
    """Returns the actor."""
    return TraceActor(options)
