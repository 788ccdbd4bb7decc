"""What the environments share, and CodeTrace-v0: predict what a program prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from task_gym.contract import SUCCESS
from task_gym.env import TaskEnv
from task_gym.errors import ArgumentError, check_choice
from task_gym.spaces import UnicodeText
from trace_gym.backends import Trace, make_backend
from trace_gym.inject import STYLES
from trace_gym.prompts import render_end, render_task
from trace_gym.score import SCORINGS, scores
from trace_gym.task import TaskSet

#: Characters an observation and a reply may have.
OBSERVATION_LENGTH, REPLY_LENGTH = 1 << 20, 1 << 20

#: What ``info["game"]`` says.
GAME = "code_trace"

Step = tuple[str, float, bool, bool, dict[str, Any]]


class TraceEnv(TaskEnv):
    """A program to trace: task, info and ending; how it is asked is up to the environment."""

    #: Whether false outputs are needed.
    _false_outputs = False

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
    ) -> None:
        arguments = {
            "task_id": task_id, "task_ids": task_ids, "source": source, "level": level, "family": family,
            "injector": injector, "scoring": scoring, "backend": backend, "render_mode": render_mode,
        }  # fmt: skip
        check_choice("injector", injector, STYLES)
        check_choice("scoring", scoring, SCORINGS)
        self._backend = make_backend(backend, source, injector, self._false_outputs)
        # So that a copy, on whatever machine, has the same programs.
        arguments["source"] = self._backend.source
        super().__init__(TaskSet(task_id, task_ids, source, level, family), arguments)
        self._scoring = scoring
        self.observation_space = UnicodeText(OBSERVATION_LENGTH)
        self._trace: Trace | None = None
        self._task_id = self._seed = 0
        self._text = ""

    @property
    def source(self) -> str:
        """Where programs come from, by the name that means the same ones everywhere: "hub" has its commit."""
        return self._backend.source

    @property
    def trace(self) -> Trace | None:
        """The program being traced, with its truth; None before the first reset."""
        return self._trace

    def close(self) -> None:
        """End the processes that programs are run in."""
        self._backend.close()

    def _ask(self, trace: Trace) -> str:
        """Make ready for an episode; the first observation."""
        raise NotImplementedError

    def _begin(self, task_id: int, seed: int) -> None:
        self._trace, self._text = None, ""  # stays so if there is no such trace
        trace = self._backend.load(task_id)
        self._trace, self._task_id, self._seed = trace, task_id, seed
        self._text = self._ask(trace)

    def _opening(self) -> tuple[str, dict[str, Any]]:
        return self._text, self._info()

    def _shown(self) -> str:
        return self._text

    def _playing(self) -> Trace:
        """The trace of an episode that is under way, or an EpisodeError."""
        self._check_playing()
        assert self._trace is not None
        return self._trace

    def _go_on(self, text: str, reward: float, more: dict[str, Any] | None = None) -> Step:
        """A step that does not end the episode."""
        self._text = text
        if self.render_mode == "human":
            self.render()
        return text, reward, False, False, {**self._info(), "upstream_reward": reward, **(more or {})}

    def _end(
        self, score: float, by_scoring: dict[str, float], reward: float, more: dict[str, Any] | None = None
    ) -> Step:
        """The step that ends the episode.

        Args:
            score: The episode's.
            by_scoring: All the scores, by name.
            reward: What this step pays.
            more: What else ``info`` is to hold.
        """
        assert self._trace is not None
        self._over = True
        self._text = render_end(self._trace.truth, score)
        if self.render_mode == "human":
            self.render()
        ending = {
            "upstream_reward": by_scoring["affine"],
            "score": score,
            "by_scoring": by_scoring,
            "success": score > SUCCESS,
            "returns": [score],
            "result": "win" if score > SUCCESS else "draw" if score == SUCCESS else "loss",
            "history": self._given.copy(),
            "truth": self._trace.truth,
        }
        return self._text, reward, True, False, {**self._info(), **ending, **(more or {})}

    def _info(self) -> dict[str, Any]:
        trace = self._trace
        assert trace is not None
        return {
            "task_id": self._task_id,
            "seed": self._seed,
            "game": GAME,
            "seat": 0,
            "opponent": "none",
            "turn": len(self._given),
            "source": self.source,
            "family": trace.family,
            "level": trace.level,
            "row": trace.row,
            "replaced": trace.replaced,
            "sandbox": trace.sandbox,
        }


class CodeTraceEnv(TraceEnv):
    """Predict exactly what a program prints, in one step.

    ## Observation space
    A string: what to do, the program with its debug prints, what it reads, and how to answer. After the step,
    the true output.

    ## Action space
    Text: a reply. Reasoning tags and a code fence around the output are taken off; an empty reply is allowed.

    ## Info
    Always: ``task_id``, ``seed``, ``game`` ("code_trace"), ``seat`` (0), ``opponent`` ("none"), ``turn``
    (answers given), ``source`` ("builtin", "hub@COMMIT" or the path given), ``family`` and ``level`` (of
    builtin programs, else None), ``row`` (of a data set, else None), ``replaced`` (programs passed over
    because no sound question can be asked about them), ``sandbox`` (the protection in which programs were
    run: one of ``trace_gym.sandbox.LEVELS``, or "in-process" where only the generator's own program was).
    At the end: ``score``, ``by_scoring`` (all scores by name, see ``trace_gym.score``), ``success``,
    ``returns``, ``result`` ("win", "draw", "loss"), ``history``, ``truth``, ``upstream_reward`` (the score
    "affine").

    ## Rewards
    The score that ``scoring`` names, in [0, 1].

    Args:
        task_id: One task id, 0 … 10**11 - 1. At most one of ``task_id`` and ``task_ids`` is given; every id
            may be drawn if neither is.
        task_ids: A list of ids and (first, last) ranges, ends included; each reset draws one.
        source: "builtin" (made to order, nothing to download), "hub" (affinetes' data set, through
            ``datasets``, at the commit that its branch held when "hub" was first used on this machine) or
            "hub@REVISION", or the path of a JSONL or Parquet file with the columns ``program`` and
            ``inputs``.
        level: 1 … 10: only builtin programs of this level are drawn.
        family: The same for a family.
        injector: "safe": debug prints only where nothing can go wrong, and no more than the output has room
            for; a program that is not admitted is replaced by the next. "affine": upstream's own injection,
            and an AdmissionError where the program is unsound.
        scoring: "affine" (upstream's), "exact" or "lines".
        backend: "local".
        render_mode: "ansi" (``render()`` returns the observation), "rgb_array" (returns its picture, a uint8
            array that always has the same shape) or "human" (every observation is printed).

    Raises:
        TaskGymError: a named subclass for each argument, reset option or seed outside what is allowed.
    """

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        super().__init__(*positional, **arguments)
        self.action_space = UnicodeText(REPLY_LENGTH)

    def _ask(self, trace: Trace) -> str:
        return render_task(trace.source, trace.stdin)

    def step(self, action: Any) -> Step:
        """Give the predicted output."""
        trace, reply = self._playing(), check_reply(action)
        self._given.append(reply)
        by_scoring = scores(trace.truth, reply)
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score)


def check_reply(action: Any) -> str:
    """A reply as text, or an ArgumentError."""
    if not isinstance(action, str):
        raise ArgumentError(f"action: {action!r} was given, allowed: a reply as text")
    return action
