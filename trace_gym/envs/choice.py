"""CodeTraceChoice-v0: pick a program's output among plausible false ones."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.arguments import read_action
from task_gym.contract import ILLEGAL_REWARD, Strikes, illegal_info
from task_gym.errors import check_choice, illegal_action, quote
from trace_gym.backends import Trace
from trace_gym.envs.base import Step, TraceEnv
from trace_gym.envs.prompts import render_choice, render_task
from trace_gym.mutants.versions import OPTIONS
from trace_gym.programs.draws import Draws
from trace_gym.score import SCORINGS, scores

_KEY = 0x0DE4
"""Separates the order's random numbers from others that begin with the episode's seed."""


class CodeTraceChoiceEnv(TraceEnv, gym.Env[str, Any]):
    """An environment that asks for the true output of a program among up to seven false ones, in one step.

    We generate mutants of the task's program: programs with one thing wrong, such as an integer one off,
    another operator, or a branch not taken. The program and up to seven mutants that print something else are
    its versions. The task id draws uniformly which version is shown. The outputs of all versions are the
    options, so the outputs alone do not give away the true one.

    The outputs differ from each other by more than white space and case, and none is more than twice as long
    as another. The seed draws their order. A program with fewer than four versions is not admitted. With
    ``injector="affine"`` the versions are of upstream's own program, prints included.

    ## Observation space
    A string: instruction, program, standard input, numbered outputs, and how to answer.

    ## Action space
    ``Discrete(8)``: the number of an output.

    ## Info
    As for ``CodeTrace-v0``, and ``action_mask`` (int8, shape (8,), 1 = legal, all zeros only after the end),
    ``legal_actions``, ``admissible_commands`` (the outputs). At the end, ``by_scoring`` has the scores of the
    picked output. ``mutation`` is the kind of the mutant that was shown ("off_by_one", "operator", "skip"),
    or "" if the task's own program was shown.

    ## Rewards
    The score of the picked output that ``scoring`` names. An illegal action costs 0.01, and the third in a
    row gives up.

    Args:
        illegal: "penalize" (the third in a row gives up, with score 0), "forfeit" (the first does) or
            "raise".
        listed: Whether the observation lists the outputs by number. If not, the observation is that of
            ``CodeTrace-v0``, and the outputs are only in ``info["admissible_commands"]``. This is for agents
            that give each output a probability, as with ``task_gym.wrappers.NamedActions``.
        **arguments: As for ``CodeTrace-v0``.
    """

    _false_outputs = True

    def __init__(
        self, *positional: Any, illegal: str = "penalize", listed: bool = True, **arguments: Any
    ) -> None:
        self._strikes = Strikes(illegal)
        check_choice("listed", listed, (True, False))
        super().__init__(*positional, **arguments)
        self._arguments |= {"illegal": illegal, "listed": listed}
        self.listed = listed
        self.action_space = gym.spaces.Discrete(OPTIONS)
        self._outputs: list[str] = []

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask: bool, shape (8,), True = legal; all False before a reset and after the end."""
        return np.arange(OPTIONS) < (0 if self._over else len(self._outputs))

    def _ask(self, trace: Trace) -> str:
        # Without sorting, the place of the truth would follow from the seed.
        self._outputs = Draws(self._seed << 32 | _KEY).shuffled(sorted([trace.truth, *trace.false]))
        self._strikes.count = 0
        if not self.listed:
            return render_task(trace.code, trace.stdin)
        return render_choice(trace.code, trace.stdin, self._outputs)

    def step(self, action: Any) -> Step:
        """Picks an output; ``action`` is a whole number."""
        trace = self._playing()
        number = read_action(action)
        if not 0 <= number < len(self._outputs):
            return self._refuse(number)
        self._history.append(number)
        by_scoring = scores(trace.truth, self._outputs[number])
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score)

    def _refuse(self, number: int) -> Step:
        message = illegal_action(f"action: {quote(number)} was given", range(len(self._outputs)))
        gives_up = self._strikes.add(message)
        self._history.append(number)
        more = illegal_info(message)
        if gives_up:
            return self._end(0.0, dict.fromkeys(SCORINGS, 0.0), ILLEGAL_REWARD, more)
        return self._finish_step(self._text, ILLEGAL_REWARD, more)

    def _info(self) -> dict[str, Any]:
        legal = [] if self._over else list(range(len(self._outputs)))
        return {
            **super()._info(),
            "turn": len(self._history) - self._strikes.count,
            "action_mask": self.action_masks().astype(np.int8),
            "legal_actions": legal,
            "admissible_commands": [self._outputs[number] for number in legal],
            # Not before the end: the output most like the others is that of the task's program.
            **({"mutation": self._trace.mutation} if self._trace and self._over else {}),
        }
