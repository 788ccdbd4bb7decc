"""False outputs to choose among: what a program would print with something wrong in it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import cycle, islice

from task_gym.errors import ProgramError
from trace_gym.limited import limited
from trace_gym.mutate import mutants
from trace_gym.programs.draws import Draws
from trace_gym.sandbox import Job, Result, Sandbox
from trace_gym.score import squeeze

#: Outputs that are offered, the true one included: at most, and at least.
OPTIONS, LEAST = 8, 4

#: Mutants run at most, for the centre and for the rest.
_MOST_CENTRES, _MOST_MUTANTS = 24, 48

#: Lines that a mutant may execute; those that loop for ever then end at once.
_MOST_LINES = 100_000

_NEGATIVE = re.compile(r"(?<![\w.])-\d")


def false_outputs(source: str, stdin: str, truth: str, seed: int, sandbox: Sandbox) -> list[str]:
    """Up to seven outputs of mutants, each different from the others and from the truth.

    Different with white space and case left out, and between half and twice as long as the truth. They are
    chosen so that less of the truth is to be told from them without the program:

    - All outputs but one differ from a centre by one mutation. Were that always the truth, it would be the
      output that is most like the others. So the centre is the truth one time in eight only, and else a
      mutant of the program, whose own mutants are the others.
    - Most mutants print less than their program. So the truth's place among the outputs by length is drawn
      first, and shorter and longer ones are looked for until it has that place; and every second centre is
      longer than the truth.
    - Programs seldom print negative numbers, and mutants often do. So all outputs hold some or
      none does.

    Args:
        seed: Decides the centre, the place and the mutants.
        sandbox: Mutants are untrusted code.
    """
    draws = Draws(seed)
    found = _Found(truth, draws)
    if draws.below(OPTIONS):
        centre = _centre(source, stdin, draws, sandbox, found)
        if centre is None:
            return []
        source = centre

    def enough(mutant: str, output: str) -> bool:
        found.take(output)
        return found.complete

    _run_mutants(source, stdin, draws.below(2**32), _MOST_MUTANTS, sandbox, enough)
    return found.chosen()


def _centre(source: str, stdin: str, draws: Draws, sandbox: Sandbox, found: _Found) -> str | None:
    """A mutant whose output may be offered: the first that is longer than the truth, or not, as is drawn.

    The first of all where there is none; its output is taken in.
    """
    longer = draws.chance(50)
    fitting: list[tuple[str, str]] = []

    def is_wanted(output: str) -> bool:
        return (len(output) > len(found.truth)) == longer

    def enough(mutant: str, output: str) -> bool:
        if not found.fits(output):
            return False
        fitting.append((mutant, output))
        return is_wanted(output)

    _run_mutants(source, stdin, draws.below(2**32), _MOST_CENTRES, sandbox, enough)
    if not fitting:
        return None
    centre, output = fitting[-1] if is_wanted(fitting[-1][1]) else fitting[0]
    found.take(output)
    return centre


def has_negative(output: str) -> bool:
    """Whether a negative number stands in an output."""
    return _NEGATIVE.search(output) is not None


class _Found:
    """The false outputs so far, shorter and longer ones apart.

    Args:
        truth: The true one.
        draws: Decides how many are to be shorter, and where those of the same length go.
    """

    def __init__(self, truth: str, draws: Draws) -> None:
        self.truth = truth
        self._shorter: list[str] = []
        self._longer: list[str] = []
        self._draws = draws.fork()
        self._wanted = self._draws.below(OPTIONS)  # shorter ones
        self._seen = {squeeze(truth)}
        self._negative = has_negative(truth)

    @property
    def complete(self) -> bool:
        """Whether there are as many of both kinds as are wanted."""
        return len(self._shorter) >= self._wanted and len(self._longer) >= OPTIONS - 1 - self._wanted

    def fits(self, output: str) -> bool:
        """Whether an output is one that may be offered."""
        squeezed = squeeze(output)
        alike = len(self.truth) // 2 <= len(output) <= 2 * len(self.truth)
        alike = alike and has_negative(output) == self._negative
        return alike and bool(squeezed) and squeezed not in self._seen

    def take(self, output: str) -> None:
        """Take an output in, if it is one that may be offered."""
        if self.fits(output):
            self._seen.add(squeeze(output))
            more = len(output) - len(self.truth)
            (self._longer if more > 0 or (more == 0 and self._draws.chance(50)) else self._shorter).append(
                output
            )

    def chosen(self) -> list[str]:
        """Seven of them, or all if there are fewer: as many shorter ones as are wanted, or as can be had."""
        shorter = max(min(self._wanted, len(self._shorter)), OPTIONS - 1 - len(self._longer))
        return [*self._shorter[:shorter], *self._longer[: OPTIONS - 1 - min(shorter, len(self._shorter))]]


def _run_mutants(
    source: str, stdin: str, seed: int, count: int, sandbox: Sandbox, enough: Callable[[str, str], bool]
) -> None:
    """Run up to so many mutants, until ``enough``, which is given each that runs without an error and what it
    prints, says so."""
    made: deque[str] = deque()

    def jobs() -> Iterator[Job]:
        hash_seeds = cycle(sandbox.hash_seeds)  # in turn, as under two of them programs run side by side
        for mutant in islice(mutants(source, seed), count):
            try:
                program = limited(mutant.source, _MOST_LINES)
            except (ProgramError, SyntaxError):  # deeper than its program, and so too deep
                continue
            made.append(mutant.source)
            yield Job(program, stdin, next(hash_seeds))

    def done(result: Result) -> bool:
        mutant = made.popleft()
        return result.status == "ok" and not result.stderr and enough(mutant, result.stdout)

    sandbox.run_until(jobs(), done)
