"""The environments' base class: a program to trace, its info and its ending."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from task_gym.arguments import check_backend, check_names
from task_gym.contract import SUCCESS, ending_info, result_of
from task_gym.env import TaskEnv
from task_gym.errors import AdmissionError, ArgumentError, check_choice
from task_gym.remote import connect, read_settings
from task_gym.remote.settings import DEFAULTS, refuse_settings
from task_gym.spaces import UnicodeText
from trace_gym.backends import AffinetesBackend, Trace, TraceBackend, make_backend
from trace_gym.backends.base import OBSERVATION_LENGTH
from trace_gym.envs.prompts import render_end
from trace_gym.inject import STYLES
from trace_gym.sandbox import LEVELS as PROTECTIONS
from trace_gym.score import SCORINGS
from trace_gym.task import TaskSet

REPLY_LENGTH = 1 << 20
"""The most characters that a reply may have."""

GAME = "code_trace"
"""The value of ``info["game"]``."""

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
"""The version that writes programs with debug prints, and runs them. Another one writes some otherwise."""

_SERVERS = {
    "source": "builtin", "level": None, "family": None, "injector": "safe", "require": "namespaces",
}  # fmt: skip
"""Arguments that a server decides, with their defaults."""

Step = tuple[str, float, bool, bool, dict[str, Any]]


class TraceEnv(TaskEnv, gym.Env[str, Any]):
    """The environments' base: task, info and ending. Subclasses write the prompts and read the answers."""

    #: Whether the environment needs false outputs.
    _false_outputs = False
    #: Whether a server can ask in place of the local backend.
    _can_be_served = False

    def __init__(
        self,
        task_id: int | None = None,
        task_ids: Sequence[int | Sequence[int]] | None = None,
        source: str = "builtin",
        level: int | None = None,
        family: str | None = None,
        injector: str = "safe",
        scoring: str = "affine",
        backend: str = "local",
        render_mode: str | None = None,
        require: str = "namespaces",
        **server: Any,
    ) -> None:
        arguments = {
            "task_id": task_id, "task_ids": task_ids, "source": source, "level": level, "family": family,
            "injector": injector, "scoring": scoring, "backend": backend, "render_mode": render_mode,
            "require": require, **server,
        }  # fmt: skip
        check_names(type(self), server, DEFAULTS)
        check_choice("injector", injector, STYLES)
        check_choice("require", require, PROTECTIONS)
        check_choice("scoring", scoring, SCORINGS)
        check_backend(backend)
        self.waits = backend != "local"
        self._backend: TraceBackend | AffinetesBackend
        if self.waits:
            self._check_served(arguments)
            self._backend = AffinetesBackend(connect(read_settings(server, "trace")), scoring)
        else:
            refuse_settings(server)
            self._backend = make_backend(source, injector, self._false_outputs, require)
            # A copy must have the same programs, on any machine.
            arguments["source"] = self._backend.source
        super().__init__(TaskSet(task_id, task_ids, source, level, family), arguments)
        self._scoring = scoring
        self.observation_space = UnicodeText(OBSERVATION_LENGTH)
        self._trace: Trace | None = None
        self._task_id = self._seed = 0
        self._text = ""

    def _check_served(self, arguments: dict[str, Any]) -> None:
        """Raises ArgumentError if a server cannot ask, or if an argument is the server's to choose."""
        if not self._can_be_served:
            raise ArgumentError(
                f"backend: 'affinetes' was given to {type(self).__name__}, allowed there: 'local'; a server "
                "asks as CodeTrace-v0 does"
            )
        for name, default in _SERVERS.items():
            if arguments[name] != default:
                raise ArgumentError(
                    f"{name}: {arguments[name]!r} was given with backend 'affinetes', allowed: with backend "
                    "'local' only; the server chooses its programs"
                )

    @property
    def source(self) -> str:
        """The source's name, which means the same programs everywhere: "hub" has its commit."""
        return self._backend.source

    @property
    def trace(self) -> Trace | None:
        """The program to trace, with its truth; None before the first reset."""
        return self._trace

    def close(self) -> None:
        """Ends the processes that run programs."""
        self._backend.close()

    def _ask(self, trace: Trace) -> str:
        """Prepares an episode and returns the first observation."""
        raise NotImplementedError

    def _begin(self, task_id: int, seed: int) -> None:
        assert not isinstance(self._backend, AffinetesBackend)
        self._trace, self._text = None, ""  # load may raise
        trace = self._backend.load(task_id)
        self._trace, self._task_id, self._seed = trace, task_id, seed
        self._text = self._ask(trace)
        if self._text not in self.observation_space:
            self._trace = None
            raise AdmissionError(
                f"task id: {task_id} was given, whose observation has {len(self._text):,} characters; "
                f"allowed: {OBSERVATION_LENGTH:,}"
            )

    def _opening(self) -> tuple[str, dict[str, Any]]:
        return self._text, {**self._info(), "upstream_reward": 0.0}

    def _shown(self) -> str:
        return self._text

    def _playing(self) -> Trace:
        """Returns the trace of the running episode; raises EpisodeError if there is none."""
        self._check_playing()
        assert self._trace is not None
        return self._trace

    def _finish_step(
        self, text: str, reward: float, more: dict[str, Any], ends: bool = False, fails: bool = False
    ) -> Step:
        """Returns a step's result, and shows it to a person; ``fails``: a server's fault cuts the episode."""
        self._text, self._over = text, ends or fails
        if self.render_mode == "human":
            self.render()
        return text, reward, ends, fails, {**self._info(), **more}

    def _end(
        self, score: float, by_scoring: dict[str, float], reward: float, more: dict[str, Any] | None = None
    ) -> Step:
        """Ends the episode and returns the result of its last step; ``more``: further entries of ``info``."""
        assert self._trace is not None
        truth = self._trace.truth
        ending = {**self._score_info(score, by_scoring), "truth": truth, **(more or {})}
        return self._finish_step(render_end(truth, score), reward, ending, ends=True)

    def _score_info(self, score: float, by_scoring: dict[str, float]) -> dict[str, Any]:
        """Returns the part of ``info`` at the end that follows from the scores."""
        ended = ending_info(
            score, [score], result_of(score - SUCCESS), self._history.copy(), by_scoring=by_scoring
        )
        return {"upstream_reward": by_scoring["affine"], **ended}

    def _common(self) -> dict[str, Any]:
        """Returns the part of ``info`` that does not depend on the program."""
        return {
            "task_id": self._task_id,
            "seed": self._seed,
            "game": GAME,
            "seat": 0,
            "opponent": "none",
            "turn": len(self._history),
            "source": self.source,
        }

    def _info(self) -> dict[str, Any]:
        trace = self._trace
        assert trace is not None
        return {
            **self._common(),
            "family": trace.family,
            "level": trace.level,
            "row": trace.row,
            "replaced": trace.replaced,
            "sandbox": trace.sandbox,
            "python": PYTHON,
        }
