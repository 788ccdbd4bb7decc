"""False outputs to choose among: what a program would print with something wrong in it."""

from __future__ import annotations

from collections.abc import Iterator

from trace_gym.limited import limited
from trace_gym.mutate import mutants
from trace_gym.programs.draws import Draws
from trace_gym.sandbox import Job, Sandbox
from trace_gym.score import squeeze

#: Outputs that are offered, the true one included: at most, and at least.
OPTIONS, LEAST = 8, 4

#: Mutants run at most, for the centre and for the rest.
_MOST_MUTANTS = 48

#: Mutants run at a time: nearly always enough, as many as are wanted and some to spare.
_BATCH = 10

#: A mutant may execute this many lines; those that loop for ever then end at once.
_MOST_LINES = 100_000


def false_outputs(source: str, stdin: str, truth: str, seed: int, sandbox: Sandbox) -> list[str]:
    """Up to seven outputs of mutants, each different from the others and from the truth.

    Different with white space and case left out, and between half and twice as long as the truth.

    All outputs but one differ from a centre by one mutation. Were that always the truth, it could be told
    without the program, as the output that is most like the others. So the centre is the truth one time in
    eight only, and else a mutant of the program, whose own mutants are the others.

    Args:
        seed: Decides the centre and the mutants.
        sandbox: Mutants are untrusted code.
    """
    draws = Draws(seed)
    found = _Found(truth)
    if draws.below(OPTIONS):
        centre = next(_usable(source, stdin, seed, sandbox, found), None)
        if centre is None:
            return []
        source, seed = centre, draws.below(2**32)
    for _ in _usable(source, stdin, seed, sandbox, found):
        if len(found.outputs) == OPTIONS - 1:
            break
    return found.outputs


class _Found:
    """The false outputs so far."""

    def __init__(self, truth: str) -> None:
        self.outputs: list[str] = []
        self._seen = {squeeze(truth)}
        self._low, self._high = len(truth) // 2, 2 * len(truth)

    def take(self, output: str) -> bool:
        """Take an output in, if it is one that may be offered."""
        squeezed = squeeze(output)
        if squeezed in self._seen or not self._low <= len(output) <= self._high or not squeezed:
            return False
        self._seen.add(squeezed)
        self.outputs.append(output)
        return True


def _usable(source: str, stdin: str, seed: int, sandbox: Sandbox, found: _Found) -> Iterator[str]:
    """The mutants whose outputs may be offered, each taken in before it is yielded."""
    made = [mutant.source for mutant in mutants(source, seed, _MOST_MUTANTS)]
    for start in range(0, len(made), _BATCH):
        batch = made[start : start + _BATCH]
        results = sandbox.run_many([Job(limited(mutant, _MOST_LINES), stdin) for mutant in batch])
        for mutant, result in zip(batch, results, strict=True):
            if result.status == "ok" and not result.stderr and found.take(result.stdout):
                yield mutant
