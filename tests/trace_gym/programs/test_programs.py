"""The builtin programs: the same everywhere, sound, of their level, and diverse."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import median

import pytest

from task_gym.errors import AdmissionError
from tests.trace_gym import golden
from trace_gym.admission.measure import Measured, execute
from trace_gym.programs import builtin
from trace_gym.programs.builtin import LEVELS, NAMES, Level, generate, ids_of, points

SOME = [name if name == "stdin" else pytest.param(name, marks=pytest.mark.families) for name in NAMES]
SAMPLE = [
    name if name == "stdin" else pytest.param(name, marks=[pytest.mark.families, pytest.mark.sample])
    for name in NAMES
]

COUNT = 8
"""Programs to check per family and level."""


@pytest.mark.parametrize("family", SAMPLE)
def test_programs_are_what_they_were(family: str) -> None:
    """Checks code, input and output, here in a process with another hash seed than at the recording."""
    known = json.loads(golden.PROGRAMS.read_text())
    assert list(known) == list(NAMES)
    digests = {str(level): golden.digest(family, level) for level in LEVELS}
    assert digests == known[family], "if meant, write them with: python -m tests.trace_gym.golden programs"


def test_where_no_draft_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    useless = Measured("", 1, 0, 0, 0, "ValueError: no")
    monkeypatch.setattr(builtin, "execute", lambda *arguments, **limits: useless)
    with pytest.raises(
        AdmissionError, match="task id: 17 was given, for which no program of 'strings' at level 2"
    ):
        generate(17)  # 17 = 16 + 1: the second level, the second family


@pytest.mark.parametrize("family", SOME)
def test_programs_run_print_within_bounds_and_are_of_their_level(family: str) -> None:
    medians, lines, programs = [], [], []
    for level in LEVELS:
        ids = ids_of(level, family)
        costs, counts = [], []
        for position in range(COUNT):
            program = generate(ids[len(ids) // 2 + position])  # not those of the digests
            measured = execute(program.code, program.stdin)
            assert (program.family, program.level) == (family, level)
            assert measured.error is None
            assert measured.stdout.strip()
            assert measured.stdout.endswith("\n")
            assert len(measured.stdout.encode()) <= 2500
            assert measured.lines <= 20_000
            assert measured.depth <= 100  # far from any recursion limit
            assert len(program.code) <= Level(level).characters
            assert program.code.endswith("\n") and "\n\n\n\n" not in program.code
            assert all(line == line.rstrip() and "\t" not in line for line in program.code.split("\n"))
            assert max(map(len, program.code.split("\n"))) <= 120
            assert "$" not in program.code
            assert (program.stdin != "") == (family == "stdin") == program.stdin.endswith("\n")
            assert Level(level).misses(measured) == (0, 0)
            programs.append(program)
            costs.append(points(measured))
            counts.append(measured.lines)
        medians.append(median(costs))
        lines.append(median(counts))
        assert Level(level).low <= medians[-1] <= Level(level).high
    assert all(low < high for low, high in pairwise(medians)), medians
    assert all(low < high for low, high in zip(lines, lines[2:], strict=False)), lines
    assert len({(program.code, program.stdin) for program in programs}) >= 0.97 * len(programs)


@pytest.mark.parametrize(
    ("level", "counts", "misses"),
    [
        # Level 3 is 22 to 25 points, 1 to 10 lines of output.
        (3, (16, 4, 2, 0), (0, 0)),  # 2**16 * 2**4 * 2: 22 bits
        (3, (8, 4, 2, 0), (-4, 0)),  # half the lines: 18
        (3, (32, 16, 2, 0), (5, 6)),  # 2**20 * 2**8 * 2: 30 bits; six lines more than ten
        (1, (0, 0, 0, 0), (-8, -1)),  # none counts as one: 1 bit; level 1 begins at 9, with a line
        # Level 10 needs at least 8 lines, and 50 to 53 points.
        (10, (1000, 4, 16, 7), (0, -4)),  # 10**12 * 16 * 16 * 8: 2.05e15, 51 bits
    ],
)
def test_distances_from_a_level(level: int, counts: tuple[int, ...], misses: tuple[int, int]) -> None:
    assert Level(level).misses(Measured("", *counts, error=None)) == misses
