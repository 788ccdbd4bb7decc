"""CodeTrace-v0: predict exactly what a program prints."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from task_gym.arguments import read_reply
from task_gym.contract import ending_info
from task_gym.spaces import UnicodeText
from trace_gym.backends import AffinetesBackend, Answered, Trace
from trace_gym.backends.affinetes import FACTS
from trace_gym.envs.base import REPLY_LENGTH, Step, TraceEnv
from trace_gym.envs.prompts import render_end, render_task
from trace_gym.score import scores


class CodeTraceEnv(TraceEnv, gym.Env[str, Any]):
    """An environment that asks for the exact output of a program, in one step.

    ## Observation space
    A string: instruction, program with its debug prints, standard input, and how to answer. After the step,
    the true output.

    ## Action space
    Text: a reply. Reasoning tags and a code fence around the output are removed. An empty reply is allowed.

    ## Info
    Always: ``task_id``, ``seed``, ``game`` ("code_trace"), ``seat`` (0), ``opponent`` ("none"), ``turn``
    (answers given), ``source`` ("builtin", "hub@COMMIT" or the path given), ``family`` and ``level`` (of
    builtin programs, else None), ``row`` (of a data set, else None), ``replaced`` (number of programs that
    were not admitted), ``sandbox`` (the protection in force when programs ran: one of
    ``trace_gym.sandbox.LEVELS``, or "in-process" if only the builtin generator's program ran), ``python``
    (the version of Python, as "3.12", by which text and truth were made: with ``injector="affine"`` another
    one writes some programs otherwise).
    At the end: ``score``, ``by_scoring`` (this episode's score by each scoring, by name, see
    ``trace_gym.score``; a game has ``scores`` instead, a list with the score of each seat), ``success``,
    ``returns``, ``result`` ("win", "draw", "loss"), ``history``, ``truth``, ``upstream_reward`` (the score
    "affine").

    ## Rewards
    The score that ``scoring`` names, in [0, 1].

    Args:
        task_id: One task id, 0 … 10**11 - 1. At most one of ``task_id`` and ``task_ids`` is given; without
            both, every id may be drawn.
        task_ids: A list of ids and (first, last) ranges, ends included; each reset draws one id.
        source: "builtin" (generated, nothing to download), "hub" (affinetes' data set, through ``datasets``,
            at the commit of its branch when "hub" was first used on this machine), "hub@REVISION", or the
            path of a JSONL or Parquet file with the columns ``program`` and ``inputs``.
        level: 1 … 10: only builtin programs of this level are drawn.
        family: Only builtin programs of this family are drawn.
        injector: "safe" adds debug prints only where nothing can go wrong, and only as many as the output has
            room for. The next program replaces one that is not admitted. "affine" is upstream's own
            injection; an unsound program raises AdmissionError.
        scoring: "affine" (upstream's), "exact" or "lines".
        backend: "local", or "affinetes" for a server (docs/affinetes.md), which chooses the programs. Then
            ``truth`` and the scores beside "affine" are in ``info`` only if the server tells them, and a
            fault has ``info["fault"]``.
        render_mode: "ansi" (``render()`` returns the observation), "rgb_array" (returns its picture, a uint8
            array that always has the same shape) or "human" (every observation is printed).
        require: The protection that programs of a data set or a file need (``trace_gym.sandbox``):
            "namespaces", or "limits", which accepts the risk of running them without protection. With less,
            ``reset`` raises SandboxError, which says how to get it. Builtin programs and their mutants need
            only "limits".
        **server: With ``backend="affinetes"``: how the server is reached, see docs/affinetes.md.
            ``mode="url"`` has ``base_url`` (as "http://127.0.0.1:8000"); ``mode="docker"`` has ``image``,
            ``env_vars``, ``mem_limit``, ``cpu_limit``, ``pull`` and ``host``; both have ``timeout``, the
            seconds that one call may take.

    Raises:
        TaskGymError: an argument, reset option or seed is outside what is allowed; each kind has a subclass.
    """

    _can_be_served = True

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        super().__init__(*positional, **arguments)
        self.action_space = UnicodeText(REPLY_LENGTH)
        self._answered: Answered | None = None  # what a server said last

    def _ask(self, trace: Trace) -> str:
        return render_task(trace.code, trace.stdin)

    def step(self, action: Any) -> Step:
        """Answers with the predicted output."""
        if isinstance(self._backend, AffinetesBackend):
            return self._step_served(self._backend, read_reply(action))
        trace, reply = self._playing(), read_reply(action)
        self._history.append(reply)
        by_scoring = scores(trace.truth, reply)
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score)

    def _begin(self, task_id: int, seed: int) -> None:
        if not isinstance(self._backend, AffinetesBackend):
            super()._begin(task_id, seed)
            return
        self._answered, self._text = None, ""  # ask may raise
        answered = self._backend.ask(task_id, seed)
        self._answered, self._task_id, self._seed = answered, task_id, seed
        self._text = answered.text

    def _opening(self) -> tuple[str, dict[str, Any]]:
        text, info = super()._opening()
        if self._answered is not None and self._answered.fault:
            info |= self._read_ending(self._answered)
        return text, info

    def _step_served(self, backend: AffinetesBackend, reply: str) -> Step:
        """Answers a server's question; after a fault at reset, the step changes nothing."""
        self._check_playing()
        assert self._answered is not None
        self._history.append(reply)
        if not self._answered.fault:
            self._answered = backend.answer(reply)
        answered = self._answered
        ending, truth = self._read_ending(answered), answered.facts.get("truth")
        if answered.fault:
            return self._finish_step(answered.text, 0.0, ending, fails=True)
        text, score = answered.text, ending["score"]
        if isinstance(truth, str):
            ending["truth"] = truth
            text = render_end(truth, score)  # the server words the outcome with its own scoring
        return self._finish_step(text, score, ending, ends=True)

    def _read_ending(self, answered: Answered) -> dict[str, Any]:
        """Returns the part of ``info`` at the end that follows from a server's scores."""
        if answered.fault:
            ended = ending_info(None, None, "fault", self._history.copy())
            return {"upstream_reward": 0.0, **ended, "fault": answered.fault}
        return self._score_info(answered.by_scoring[self._scoring], dict(answered.by_scoring))

    def _info(self) -> dict[str, Any]:
        answered = self._answered
        if answered is None:
            return super()._info()
        info = self._common()
        return info | {name: answered.facts.get(name) for name in FACTS}
