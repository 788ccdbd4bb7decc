"""Versions of a program with different outputs. One is shown, and the outputs of all are the options."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, cycle, islice
from typing import NamedTuple

from task_gym.errors import ProgramError
from trace_gym.admission.admit import OWN_HASH_SEEDS, unfit
from trace_gym.admission.counting import limit_lines
from trace_gym.admission.worlds import guard_program, jobs
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
    candidates = islice(mutants(code, draws.below(2**32)), _MOST_MUTANTS)
    running: deque[Mutant] = deque()
    shown = Version(code, output, "")
    others: list[Version] = []
    seen = {squeeze(output)}
    lengths = [len(output)]

    def mutant_jobs() -> Iterator[Job]:
        limit = limit_lines if trusted else guard_program
        hash_seeds = cycle(OWN_HASH_SEEDS)  # in turn: jobs of different hash seeds run side by side
        for mutant in candidates:
            try:
                program = limit(mutant.code, _MOST_LINES)
            except (ProgramError, SyntaxError):  # nested deeper than its program
                continue
            running.append(mutant)
            yield Job(program, stdin, next(hash_seeds))

    def is_enough(result: Result) -> bool:
        mutant, text = running.popleft(), result.stdout
        is_alike = max(*lengths, len(text)) <= 2 * min(*lengths, len(text))
        has_ended = result.status == "ok" and not result.stderr
        if has_ended and is_alike and squeeze(text) not in seen and not unfit(text):
            seen.add(squeeze(text))
            lengths.append(len(text))
            others.append(Version(mutant.code, text, mutant.kind))
        return len(lengths) == OPTIONS

    sandbox.run_until(mutant_jobs(), is_enough)
    return draws.shuffled([shown, *_confirm(others, stdin, sandbox, trusted)])


def _confirm(mutated: list[Version], stdin: str, sandbox: Sandbox, trusted: bool) -> list[Version]:
    """Returns the versions that print the same in every world and without counting.

    All versions are checked, not only the one that is shown. Otherwise, being impossible to show would give
    an output away.
    """
    runs = [
        [Job(version.code, stdin, seed) for seed in OWN_HASH_SEEDS] if trusted else jobs(version.code, stdin)
        for version in mutated
    ]
    results = iter(sandbox.run_many(chain.from_iterable(runs)))
    return [
        version
        for version, its_runs in zip(mutated, runs, strict=True)
        if {(result.status, result.stderr, result.stdout) for result in islice(results, len(its_runs))}
        == {("ok", "", version.output)}
    ]
