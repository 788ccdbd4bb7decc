"""CodeTraceLines-v0: predict a program's output line by line."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from task_gym.arguments import read_reply
from task_gym.spaces import UnicodeText
from trace_gym.backends import Trace
from trace_gym.envs.base import REPLY_LENGTH, Step, TraceEnv
from trace_gym.envs.prompts import render_line
from trace_gym.score import clean_line, line_is_right, scores


class CodeTraceLinesEnv(TraceEnv, gym.Env[str, Any]):
    """An environment that asks for a program's output, one line per step, and then shows the line.

    ## Observation space
    A string: instruction, program, standard input, the true lines so far, and how to answer.

    ## Action space
    Text: a reply. Reasoning tags and a code fence are removed. White space at its end does not count.

    ## Info
    As for ``CodeTrace-v0``. ``turn`` is the number of lines answered. After a step, ``line`` says whether the
    line was right. ``by_scoring`` has the scores of all answers as one output.

    ## Rewards
    With ``scoring="lines"``, 1/n for each right line of n. The episode's return is then its score, the share
    of right lines. With another scoring, each step pays 0 and the last one the score of all answers as one
    output.

    Args:
        scoring: "lines", "affine" or "exact".
        **arguments: As for ``CodeTrace-v0``.
    """

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        super().__init__(*positional, **{"scoring": "lines", **arguments})
        self.action_space = UnicodeText(REPLY_LENGTH)
        self._lines: list[str] = []
        self._right = 0

    def _ask(self, trace: Trace) -> str:
        self._lines = trace.truth.removesuffix("\n").split("\n")
        self._right = 0
        return render_line(trace.code, trace.stdin, [])

    def _opening(self) -> tuple[str, dict[str, Any]]:
        text, info = super()._opening()
        return text, {**info, "line": None}

    def step(self, action: Any) -> Step:
        """Answers with the next line."""
        trace, reply = self._playing(), read_reply(action)
        right = line_is_right(self._lines[len(self._history)], reply)
        self._history.append(reply)
        self._right += right
        by_line = self._scoring == "lines"
        reward = right / len(self._lines) if by_line else 0.0
        if len(self._history) < len(self._lines):
            shown = self._lines[: len(self._history)]
            text = render_line(trace.code, trace.stdin, shown)
            return self._finish_step(text, reward, {"upstream_reward": reward, "line": right})
        by_scoring = scores(trace.truth, "\n".join(map(clean_line, self._history)))
        if by_line:
            return self._end(self._right / len(self._lines), by_scoring, reward, {"line": right})
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score, {"line": right})
