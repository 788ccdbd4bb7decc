"""The actor that asks for the output of programs."""

from __future__ import annotations

import secrets
from typing import Any

from gamespiel.endpoints.chat import Chat
from gamespiel.endpoints.traces import ask_trace, describe_refused_trace
from gamespiel.serving.actors import ENDPOINT, MODEL, Actor, Response, explain_error, turn
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.trace_processes import TraceProcesses
from task_gym.errors import ArgumentError, OptionError, SeedError
from task_gym.processes import OFFERED
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.programs.base import TASKS
from trace_gym.sandbox import trouble

LATEST = 20.0
"""Seconds after its time at which a reply that has begun is given up. ``/call`` gives it up before."""

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
        self._now = turn(text, 0.0, False, False, _name_facts(info))

    def response(self) -> Response:
        """Returns the question, or the outcome."""
        return self._now

    def state(self) -> Response:
        """Returns the question, or that it was answered, with reward 0."""
        if self._now["done"]:
            return self._now | {"observation": self._describe_end(), "reward": 0.0}
        return self._now

    def step(self, reply: str) -> Response:
        """Compares a reply with the program's output."""
        if self._now["done"]:
            error = explain_error("episode_done", "the episode is over: reset begins another")
            info = {**self._now["info"], "error": error}
            return self._now | {"observation": self._describe_end(), "info": info}
        text, reward, _, _, info = self._env.step(reply)
        del info["history"]
        self._now = turn(text, reward, True, False, _name_facts(info))
        return self._now

    def _describe_end(self) -> str:
        return f"The episode is over, with score {self._now['reward']}."


def _name_facts(info: Response) -> Response:
    """Returns ``info`` with the names that upstream has for some facts, too."""
    score = info.get("score", 0.0)
    return {**info, "step_count": info["turn"], "score": score, "dataset_index": info["row"]}


class ServedEnv(CodeTraceEnv):
    """The environment with a backend that all callers share.

    Args:
        source: The source of the programs.
        injector: Who puts debug prints into them.
        backend: The backend; None for the source's own.
    """

    def __init__(self, source: str, injector: str, backend: TraceProcesses | None) -> None:
        super().__init__(source=source, injector=injector)
        self._backend = backend or self._backend


class TraceActor(Actor):
    """Asks for the output of programs from one source.

    Programs of data sets run in the sandbox, in user namespaces, and in processes that end if the caller
    leaves. Builtin ones run in this process: they are the generator's.
    """

    kind = "trace"
    unknown_info: Response = {"task_id": None, "seed": None, "step_count": 0, "score": 0.0}  # noqa: RUF012

    def __init__(self, options: ServeOptions) -> None:
        super().__init__(options)
        self._source = options.source
        self._injector = options.injector
        self._processes: TraceProcesses | None = None
        name = self._make_env().source  # which raises if there is no such source
        if self._source != "builtin" and OFFERED:
            self._processes = TraceProcesses(self._source, self._injector, name)
        self._trouble = None if self._source == "builtin" else trouble(LEVEL)

    def reset(self, task_id: Any = None, seed: Any = None) -> Response:
        """Begins an episode. Without a task id or a seed, one is drawn.

        As upstream, a value that is no task id is an episode that is over, with ``info["error"]``.

        Raises:
            ArgumentError: programs must run in a sandbox that this machine does not offer.
        """
        self._check_sandbox()
        task = _draw_task(task_id)
        try:
            return self.begin(seed, lambda drawn: TraceEpisode(self._make_env(), task, drawn))
        except OptionError as error:
            info = {**self.unknown_info, "error": explain_error("generation_error", str(error))}
            return turn(f"Error generating challenge: {error}", 0.0, True, True, info) | {"episode_id": None}

    def evaluate(
        self,
        model: Any = MODEL,
        base_url: Any = ENDPOINT,
        timeout: Any = None,
        temperature: Any = None,
        api_key: Any = None,
        seed: Any = None,
        task_id: Any = None,
        max_tokens: Any = None,
    ) -> Response:
        """Asks a model for a program's output; the arguments are as those of ``GameActor.evaluate``.

        The timeout is the seconds until the model's reply begins; None for 600. The seed is that of the
        model's draws. As upstream, arguments with which no model can be asked are a result with "error".

        Raises:
            HostError: the server may not ask this host.
        """
        self._check_sandbox()
        task = _draw_task(task_id)

        def play(chat: Chat, drawn: int, limit: float) -> Response:
            return ask_trace(chat, self._make_env(), task, drawn, limit + LATEST)

        try:
            endpoint = model, base_url, api_key
            return self.ask(play, seed, endpoint, timeout, temperature, max_tokens)
        except (ArgumentError, SeedError) as error:
            return describe_refused_trace(self._make_env(), task, seed, str(error))

    def end(self) -> None:
        """Gives up the episodes that ``evaluate`` plays, and ends the processes that make traces."""
        super().end()
        if self._processes is not None:
            self._processes.end()

    def _make_env(self) -> CodeTraceEnv:
        return ServedEnv(self._source, self._injector, self._processes)

    def _check_sandbox(self) -> None:
        if self._trouble is not None:
            raise ArgumentError(
                f"source: {self._source!r} was given to the server, and its programs run in the sandbox's "
                f"level {LEVEL!r} only; allowed here: 'builtin'; {self._trouble}"
            )


def _draw_task(task_id: int | None) -> int:
    return secrets.randbelow(TASKS) if task_id is None else task_id
