"""The builtin programs: the same everywhere, sound, of their level, and diverse; ids, draws and levels."""

from __future__ import annotations

import json
from itertools import pairwise
from statistics import median

import pytest

from task_gym.errors import AdmissionError, TaskIdError
from tests.trace_gym import golden
from trace_gym.admission.measure import Measured
from trace_gym.programs import builtin
from trace_gym.programs.builtin import LEVELS, NAMES, generate, ids_of, make
from trace_gym.programs.builtin.levels import level_of, points

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
            task = make(ids[len(ids) // 2 + position])  # not those of the digests
            program, measured = task.program, task.measured
            assert (program.family, program.level) == (family, level)
            assert measured.error is None
            assert measured.stdout.strip()
            assert measured.stdout.endswith("\n")
            assert len(measured.stdout.encode()) <= 2500
            assert measured.lines <= 20_000
            assert measured.depth <= 100  # far from any recursion limit
            assert len(program.code) <= level_of(level).characters
            assert program.code.endswith("\n") and "\n\n\n\n" not in program.code
            assert all(line == line.rstrip() and "\t" not in line for line in program.code.split("\n"))
            assert max(map(len, program.code.split("\n"))) <= 120
            assert "$" not in program.code
            assert (program.stdin != "") == (family == "stdin") == program.stdin.endswith("\n")
            assert task.misses == 0
            programs.append(program)
            costs.append(points(measured))
            counts.append(measured.lines)
        medians.append(median(costs))
        lines.append(median(counts))
        assert level_of(level).low <= medians[-1] <= level_of(level).high
    assert all(low < high for low, high in pairwise(medians)), medians
    assert all(low < high for low, high in zip(lines, lines[2:], strict=False)), lines
    assert len({(program.code, program.stdin) for program in programs}) >= 0.97 * len(programs)


# -- task ids, and the ids of a level and a family ---------------------------------------------------------


def test_of_a_list_of_ids() -> None:
    # Level 1's ids are those whose remainder by 160 is below 16; "strings" is the second family.
    assert list(ids_of(1, among=[(150, 170), 5])) == [*range(160, 171), 5]
    assert list(ids_of(1, "strings", among=[(150, 170), 1])) == [161, 1]
    assert list(ids_of(family="strings", among=[(0, 40)])) == [1, 17, 33]
    with pytest.raises(TaskIdError, match="17 was given, which holds no id of the kind asked for"):
        ids_of(1, among=[17])


# -- levels: points, bands, and distances from a band ------------------------------------------------------


def run(lines: int, output_lines: int = 1, live: int = 1, depth: int = 0) -> Measured:
    return Measured("", lines, output_lines, live, depth, None)


def test_points_worked_out() -> None:
    # 8**4 * 2**2 * 2 * (1 + 1) = 4096 * 4 * 2 * 2 = 65536 = 2**16, which has 17 bits.
    assert points(run(8, 2, 2, 1)) == 17
    # 10**4 * 1 * 3 * 2 = 60000, between 2**15 and 2**16.
    assert points(run(10, 1, 3, 1)) == 16
    # 1000**4 * 16**2 * 12 * 4 = 12288e12, between 2**53 (9007e12) and 2**54 (18014e12).
    assert points(run(1000, 16, 12, 3)) == 54
    assert points(run(0, 0, 0, 0)) == 1


@pytest.mark.parametrize(
    ("level", "measured", "misses"),
    [
        # Level 3 is 22 to 25 points, 1 to 10 lines of output.
        (3, run(16, 4, 2), (0, 0)),  # 2**16 * 2**4 * 2: 22 bits
        (3, run(8, 4, 2), (-4, 0)),  # half the lines: 18
        (3, run(32, 16, 2), (5, 6)),  # 2**20 * 2**8 * 2: 30 bits; six lines more than ten
        # Level 10 needs at least 8 lines, and 50 to 53 points.
        (10, run(1000, 4, 16, 7), (0, -4)),  # 10**12 * 16 * 16 * 8: 2.05e15, 51 bits
    ],
)
def test_misses(level: int, measured: Measured, misses: tuple[int, int]) -> None:
    assert level_of(level).misses(measured) == misses
