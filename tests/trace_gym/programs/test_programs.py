"""Tests of the builtin programs: the same everywhere, sound, of their level, and diverse."""

import json
from itertools import pairwise
from statistics import median

import pytest

from task_gym.errors import AdmissionError
from tests.trace_gym import golden_programs
from trace_gym.admission.measure import Measured, execute
from trace_gym.programs import builtin
from trace_gym.programs.builtin import LEVELS, NAMES, generate, ids_of, make
from trace_gym.programs.builtin.levels import level_of, points

FAMILIES = [
    name if name in ("classes", "stdin") else pytest.param(name, marks=pytest.mark.families) for name in NAMES
]

COUNT = 8
"""Programs to check per family and level."""


@pytest.mark.parametrize("family", NAMES)
def test_programs_are_what_they_were(family: str) -> None:
    """Checks code, input and output, here in a process with another hash seed than at the recording."""
    known = json.loads(golden_programs.FILE.read_text())
    assert list(known) == list(NAMES)
    found = {str(level): golden_programs.digest(family, level) for level in LEVELS}
    assert found == known[family], "if meant, write them with: python -m tests.trace_gym.golden_programs"


def test_an_id_is_one_program() -> None:
    ids = ids_of(level=4, family="classes")
    made = make(ids[5])
    assert make(ids[5]) == made
    assert generate(ids[5]) == made.program
    assert (made.program.family, made.program.level) == ("classes", 4)
    assert execute(made.program.code, made.program.stdin) == made.measured


def test_where_no_draft_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    useless = Measured("", 1, 0, 0, 0, "ValueError: no")
    monkeypatch.setattr(builtin, "execute", lambda *given, **limits: useless)
    with pytest.raises(
        AdmissionError, match="task id: 17 was given, for which no program of 'strings' at level 2"
    ):
        generate(17)  # 17 = 16 + 1: the second level, the second family


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_run_print_within_bounds_and_are_of_their_level(family: str) -> None:
    medians, lines, programs = [], [], []
    for level in LEVELS:
        ids = ids_of(level, family)
        costs, counts = [], []
        for position in range(COUNT):
            made = make(ids[len(ids) // 2 + position])  # not those of the digests
            program, measured = made.program, made.measured
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
            assert made.misses == 0
            programs.append(program)
            costs.append(points(measured))
            counts.append(measured.lines)
        medians.append(median(costs))
        lines.append(median(counts))
        assert level_of(level).low <= medians[-1] <= level_of(level).high
    assert all(low < high for low, high in pairwise(medians)), medians
    assert all(low < high for low, high in zip(lines, lines[2:], strict=False)), lines
    assert len({(program.code, program.stdin) for program in programs}) >= 0.97 * len(programs)
