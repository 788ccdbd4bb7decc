"""CodeTrace-v0: predict exactly what a program prints."""

from __future__ import annotations

from typing import Any

from task_gym.checks import read_reply
from task_gym.spaces import UnicodeText
from trace_gym.backends import Trace
from trace_gym.envs.base import REPLY_LENGTH, Step, TraceEnv
from trace_gym.envs.prompts import render_task
from trace_gym.score import scores


class CodeTraceEnv(TraceEnv):
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
    ``trace_gym.sandbox.LEVELS``, or "in-process" if only the builtin generator's program ran).
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
        backend: "local".
        render_mode: "ansi" (``render()`` returns the observation), "rgb_array" (returns its picture, a uint8
            array that always has the same shape) or "human" (every observation is printed).

    Raises:
        TaskGymError: an argument, reset option or seed is outside what is allowed; each kind has a subclass.
    """

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        super().__init__(*positional, **arguments)
        self.action_space = UnicodeText(REPLY_LENGTH)

    def _ask(self, trace: Trace) -> str:
        return render_task(trace.code, trace.stdin)

    def step(self, action: Any) -> Step:
        """Answers with the predicted output."""
        trace, reply = self._playing(), read_reply(action)
        self._given.append(reply)
        by_scoring = scores(trace.truth, reply)
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score)
