"""Versions of a program that print different things: one is shown, the outputs of all are to choose from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from typing import NamedTuple

from task_gym.errors import ProgramError
from trace_gym.admission import unfit
from trace_gym.limited import limited
from trace_gym.mutate import Mutant, mutants
from trace_gym.programs.draws import Draws
from trace_gym.sandbox import Job, Result, Sandbox
from trace_gym.score import squeeze

#: Outputs that are offered, the true one included: at most, and at least.
OPTIONS, LEAST = 8, 4

#: Mutants run at most.
_MOST_MUTANTS = 48

#: Lines that a mutant may execute; those that loop for ever then end at once.
_MOST_LINES = 100_000

#: Keeps what is drawn here apart from what else is drawn from a task id, as the program itself.
_STREAM = 0xC401CE


class Version(NamedTuple):
    """A program, and what it prints.

    Attributes:
        source: Its text.
        output: Its standard output, the same under every hash seed.
        mutation: What kind of mutant it is, one of ``trace_gym.mutate.KINDS``; "" for the program itself.
    """

    source: str
    output: str
    mutation: str


def versions(source: str, stdin: str, output: str, seed: int, sandbox: Sandbox) -> list[Version]:
    """The program and up to seven of its mutants that print something else, in random order.

    What they print differs with white space and case left out, and none of it is more than twice as long as
    another's. Each is as fit to be shown as the program is (see :mod:`trace_gym.admission`), but that a
    mutant may execute fewer lines.

    Whichever is shown, the same outputs are to choose from. So, if it is the first, each of them is as likely
    to be the true one, and nothing can be told from the outputs alone.

    Args:
        output: What the program prints.
        seed: Decides which mutants are tried, and the order.
        sandbox: Mutants are untrusted code; each runs under all of its hash seeds.

    Raises:
        ProgramError: the source does not parse.
    """
    draws = Draws(seed << 32 | _STREAM)
    found = [Version(source, output, "")]
    seen = {squeeze(output)}

    def is_wanted(text: str) -> bool:
        lengths = [len(text), *(len(version.output) for version in found)]
        return max(lengths) <= 2 * min(lengths) and squeeze(text) not in seen and not unfit(text)

    def is_enough(mutant: Mutant, text: str) -> bool:
        if is_wanted(text):
            seen.add(squeeze(text))
            found.append(Version(mutant.source, text, mutant.kind))
        return len(found) == OPTIONS

    _run(islice(mutants(source, draws.below(2**32)), _MOST_MUTANTS), stdin, sandbox, is_enough)
    return draws.shuffled([found[0], *_confirmed(found[1:], stdin, sandbox)])


def _run(
    candidates: Iterable[Mutant], stdin: str, sandbox: Sandbox, is_enough: Callable[[Mutant, str], bool]
) -> None:
    """Run mutants, their lines counted, until ``is_enough``, which is given each that ends well and what it
    prints, says so."""
    made: deque[Mutant] = deque()

    def jobs() -> Iterator[Job]:
        hash_seeds = cycle(sandbox.hash_seeds)  # in turn, as under two of them programs run side by side
        for mutant in candidates:
            try:
                program = limited(mutant.source, _MOST_LINES)
            except (ProgramError, SyntaxError):  # deeper than its program, and so too deep
                continue
            made.append(mutant)
            yield Job(program, stdin, next(hash_seeds))

    def done(result: Result) -> bool:
        mutant = made.popleft()
        return result.status == "ok" and not result.stderr and is_enough(mutant, result.stdout)

    sandbox.run_until(jobs(), done)


def _confirmed(found: list[Version], stdin: str, sandbox: Sandbox) -> list[Version]:
    """Those that print what they did under every hash seed, and with nobody counting.

    All of them are tried and not only the one that is shown: one that could not be would be known by that.
    """
    runs = len(sandbox.hash_seeds)
    results = sandbox.run_many(Job(each.source, stdin, seed) for each in found for seed in sandbox.hash_seeds)
    return [
        each
        for place, each in enumerate(found)
        if all(
            (result.status, result.stderr, result.stdout) == ("ok", "", each.output)
            for result in results[place * runs : (place + 1) * runs]
        )
    ]
