"""Versions of a program with different outputs. One is shown, and the outputs of all are the options."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from typing import NamedTuple

from task_gym.errors import ProgramError
from trace_gym.admission.admit import OWN_HASH_SEEDS, runs, unfit
from trace_gym.admission.counting import limit_lines
from trace_gym.admission.worlds import guard_program
from trace_gym.mutants.mutate import Mutant, mutants
from trace_gym.programs.draws import Draws
from trace_gym.sandbox import Job, Result, Sandbox
from trace_gym.score import squeeze

OPTIONS, LEAST = 8, 4
"""The most and the fewest options, the true output included."""

_MOST_MUTANTS = 48
"""Mutants to run, at most."""

_MOST_LINES = 100_000
"""Lines that a mutant may execute. The limit soon ends a mutant that loops for ever."""

_KEY = 0xC401CE
"""Separates the random numbers here from others of the same task id, such as the program's."""


class Version(NamedTuple):
    """A program and its output.

    Attributes:
        code: The program's text.
        output: The standard output, the same in every world.
        mutation: The kind of mutant, one of ``trace_gym.mutants.mutate.KINDS``; "" for the program itself.
    """

    code: str
    output: str
    mutation: str


def versions(
    code: str, stdin: str, output: str, seed: int, sandbox: Sandbox, *, trusted: bool = False
) -> list[Version]:
    """Returns the program and up to seven of its mutants that print something else, in random order.

    The outputs differ from each other by more than white space and case, and none is more than twice as long
    as another. Each version is fit to be shown (see ``trace_gym.admission.admit``), but a mutant may
    execute fewer lines.

    The options are the same outputs whichever version is shown. So if the first version is shown, each output
    is equally likely to be the true one, and the outputs alone do not give it away.

    Args:
        code: The program's text.
        stdin: Its standard input.
        output: Its output.
        seed: The seed that draws the mutants and the order.
        sandbox: The sandbox for the mutants, with ``worlds.HASH_SEEDS``, or ``OWN_HASH_SEEDS`` if trusted.
        trusted: Whether the program is the builtin generator's. Then its mutants name nothing that varies,
            and run under two hash seeds.

    Raises:
        ProgramError: the program does not parse.
    """
    draws = Draws(seed << 32 | _KEY)
    found = [Version(code, output, "")]
    seen = {squeeze(output)}

    def is_wanted(text: str) -> bool:
        lengths = [len(text), *(len(version.output) for version in found)]
        return max(lengths) <= 2 * min(lengths) and squeeze(text) not in seen and not unfit(text)

    def is_enough(mutant: Mutant, text: str) -> bool:
        if is_wanted(text):
            seen.add(squeeze(text))
            found.append(Version(mutant.code, text, mutant.kind))
        return len(found) == OPTIONS

    candidates = islice(mutants(code, draws.below(2**32)), _MOST_MUTANTS)
    _run(candidates, stdin, sandbox, trusted, is_enough)
    return draws.shuffled([found[0], *_confirmed(found[1:], stdin, sandbox, trusted)])


def _run(
    candidates: Iterable[Mutant],
    stdin: str,
    sandbox: Sandbox,
    trusted: bool,
    is_enough: Callable[[Mutant, str], bool],
) -> None:
    """Runs mutants with their lines counted, and guarded if untrusted, until ``is_enough`` returns True.

    ``is_enough`` gets each mutant that ends without error, and its output.
    """
    made: deque[Mutant] = deque()

    def jobs() -> Iterator[Job]:
        hash_seeds = cycle(OWN_HASH_SEEDS)  # in turn: jobs of different hash seeds run side by side
        for mutant in candidates:
            try:
                program = (limit_lines if trusted else guard_program)(mutant.code, _MOST_LINES)
            except (ProgramError, SyntaxError):  # nested deeper than its program
                continue
            made.append(mutant)
            yield Job(program, stdin, next(hash_seeds))

    def done(result: Result) -> bool:
        mutant = made.popleft()
        return result.status == "ok" and not result.stderr and is_enough(mutant, result.stdout)

    sandbox.run_until(jobs(), done)


def _confirmed(found: list[Version], stdin: str, sandbox: Sandbox, trusted: bool) -> list[Version]:
    """Returns the versions that print the same in every world and without counting.

    All versions are checked, not only the one that is shown. Otherwise, being impossible to show would give
    an output away.
    """
    jobs = [
        [Job(each.code, stdin, seed) for seed in OWN_HASH_SEEDS] if trusted else runs(each.code, stdin)
        for each in found
    ]
    results = iter(sandbox.run_many(job for those in jobs for job in those))
    return [
        each
        for each, those in zip(found, jobs, strict=True)
        if all(
            [
                (result.status, result.stderr, result.stdout) == ("ok", "", each.output)
                for result in islice(results, len(those))
            ]
        )
    ]
