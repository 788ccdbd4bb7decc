"""CodeTraceChoice-v0: pick a program's output among plausible false ones."""

from __future__ import annotations

from operator import index
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.contract import ILLEGAL_REWARD, STRIKES
from task_gym.errors import ArgumentError, IllegalActionError, check_choice, illegal_action
from trace_gym.backends import Trace
from trace_gym.choices import OPTIONS
from trace_gym.env import Step, TraceEnv
from trace_gym.programs.draws import Draws
from trace_gym.prompts import render_choice, render_task
from trace_gym.score import SCORINGS, scores

#: Keeps the order's stream apart from whatever else begins with an episode's seed.
_STREAM = 0x0DE4


class CodeTraceChoiceEnv(TraceEnv):
    """Pick the true output of a program among up to seven false ones, in one step.

    Of the task's program, mutants are made: programs with one thing wrong, as an integer one off, another
    operator, or a branch not taken. Up to seven of them that print something else, and the program itself,
    are its versions. Which of them is shown is drawn by the task id, whichever as likely; the outputs of all
    are to choose from. So the outputs alone tell nothing of which is the true one.

    The outputs differ from each other by more than white space and case, none is more than twice as long as
    another, and they stand in an order drawn from the seed. A program with fewer than four versions is not
    admitted. With ``injector="affine"`` the versions are of upstream's own program, prints included.

    ## Observation space
    A string: what to do, the program, what it reads, the outputs by number, and what to answer.

    ## Action space
    ``Discrete(8)``: the number of an output.

    ## Info
    As for ``CodeTrace-v0``, and ``action_mask`` (int8, shape (8,), 1 = legal, all zeros only after the end),
    ``legal_actions``, ``admissible_commands`` (the outputs); at the end ``by_scoring`` is that of the output
    that was picked, and ``mutation`` says what was shown: a mutant, by its kind ("off_by_one", "operator",
    "skip"), or the task's own program ("").

    ## Rewards
    The score of the picked output that ``scoring`` names. An action that is no option: -0.01, and the third
    in a row gives up.

    Args:
        illegal: "penalize" (the third in a row gives up, with score 0), "forfeit" (the first does) or
            "raise".
        listed: Whether the question lists the outputs by number. If not, it is asked as by ``CodeTrace-v0``;
            the outputs are in ``info["admissible_commands"]`` alone: for who says how probable each of them
            is, as ``task_gym.wrappers.NamedActions`` asks.
        **arguments: As for ``CodeTrace-v0``.
    """

    _false_outputs = True

    def __init__(
        self, *positional: Any, illegal: str = "penalize", listed: bool = True, **arguments: Any
    ) -> None:
        check_choice("illegal", illegal, ("penalize", "forfeit", "raise"))
        check_choice("listed", listed, (True, False))
        super().__init__(*positional, **arguments)
        self._arguments |= {"illegal": illegal, "listed": listed}
        self._illegal, self.listed = illegal, listed
        self.action_space = gym.spaces.Discrete(OPTIONS)
        self._outputs: list[str] = []
        self._strikes = 0

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask: bool, shape (8,), True = legal; all False before the first reset and after the end."""
        return np.arange(OPTIONS) < (0 if self._over else len(self._outputs))

    def _ask(self, trace: Trace) -> str:
        # Sorted first: what is drawn follows from the seed, and so would the place of one that always began.
        self._outputs = Draws(self._seed << 32 | _STREAM).shuffled(sorted([trace.truth, *trace.false]))
        self._strikes = 0
        if not self.listed:
            return render_task(trace.source, trace.stdin)
        return render_choice(trace.source, trace.stdin, self._outputs)

    def step(self, action: Any) -> Step:
        """Pick an output; ``action`` is a whole number."""
        trace = self._playing()
        try:
            number = index(action)
        except TypeError as error:
            raise ArgumentError(f"action: {action!r} was given, allowed: a whole number") from error
        if not 0 <= number < len(self._outputs):
            return self._refuse(number)
        self._given.append(number)
        by_scoring = scores(trace.truth, self._outputs[number])
        score = by_scoring[self._scoring]
        return self._end(score, by_scoring, score)

    def _refuse(self, number: int) -> Step:
        message = illegal_action(f"action: {number} was given", range(len(self._outputs)))
        if self._illegal == "raise":
            raise IllegalActionError(message)
        self._given.append(number)
        self._strikes += 1
        error = {"upstream_reward": ILLEGAL_REWARD, "error": {"type": "invalid_action", "message": message}}
        if self._strikes < (STRIKES if self._illegal == "penalize" else 1):
            return self._go_on(self._text, ILLEGAL_REWARD, error)
        return self._end(0.0, dict.fromkeys(SCORINGS, 0.0), ILLEGAL_REWARD, error)

    def _info(self) -> dict[str, Any]:
        legal = [] if self._over else list(range(len(self._outputs)))
        return {
            **super()._info(),
            "turn": len(self._given) - self._strikes,
            "action_mask": self.action_masks().astype(np.int8),
            "legal_actions": legal,
            "admissible_commands": [self._outputs[number] for number in legal],
            # Not before: the output most like the others is the program's own.
            **({"mutation": self._trace.mutation} if self._trace and self._over else {}),
        }
