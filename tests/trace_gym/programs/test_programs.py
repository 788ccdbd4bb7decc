"""Tests of the builtin programs: the same everywhere, sound, of their level, and diverse."""

import ast
import builtins
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from statistics import median

import pytest

from task_gym.errors import AdmissionError
from tests.trace_gym import golden_programs
from trace_gym.admission.measure import Measured, execute
from trace_gym.programs import builtin
from trace_gym.programs.base import Program
from trace_gym.programs.builtin import LEVELS, NAMES, Made, generate, ids_of, make
from trace_gym.programs.builtin.levels import level_of, points

COUNT = 8
"""Programs to check per family and level."""


@cache
def sample(family: str, level: int) -> tuple[Made, ...]:
    ids = ids_of(level, family)
    # From the middle of the ids, apart from those of the digests.
    return tuple(make(ids[len(ids) // 2 + position]) for position in range(COUNT))


def everything() -> Iterator[Made]:
    for family in NAMES:
        for level in LEVELS:
            yield from sample(family, level)


def names_bound(tree: ast.AST) -> set[str]:
    """Returns every name that a program gives to something."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            bound.add(node.name)
    return bound


@pytest.mark.parametrize("family", NAMES)
def test_programs_are_what_they_were(family: str) -> None:
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


@pytest.mark.parametrize("family", NAMES)
def test_every_program_runs_and_prints_within_bounds(family: str) -> None:
    for level in LEVELS:
        for made in sample(family, level):
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


def test_only_the_family_that_reads_has_input() -> None:
    for made in everything():
        assert (made.program.stdin != "") == (made.program.family == "stdin")
        assert made.program.stdin == "" or made.program.stdin.endswith("\n")


@pytest.mark.parametrize("family", NAMES)
def test_levels_rise(family: str) -> None:
    medians = [median(points(made.measured) for made in sample(family, level)) for level in LEVELS]
    assert all(low < high for low, high in pairwise(medians)), medians
    lines = [median(made.measured.lines for made in sample(family, level)) for level in LEVELS]
    assert all(low < high for low, high in zip(lines, lines[2:], strict=False)), lines


def test_a_level_is_the_same_in_every_family() -> None:
    for level in LEVELS:
        medians = [median(points(made.measured) for made in sample(family, level)) for family in NAMES]
        band = level_of(level)
        assert all(band.low <= cost <= band.high for cost in medians)
    missed = [made for made in everything() if made.misses]
    assert len(missed) <= COUNT * len(NAMES) * len(LEVELS) // 100
    assert all(made.misses <= 2 for made in missed)


@pytest.mark.parametrize("family", NAMES)
def test_programs_differ(family: str) -> None:
    programs = [made.program for level in LEVELS for made in sample(family, level)]
    assert len({(program.code, program.stdin) for program in programs}) >= 0.97 * len(programs)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 10])
def test_many_programs_differ(level: int) -> None:
    programs = [generate(task_id) for task_id in islice(ids_of(level), 480)]  # thirty of each family
    assert len({(program.code, program.stdin) for program in programs}) >= 0.98 * len(programs)


ALLOWED = {
    *("abs", "bin", "chr", "dict", "enumerate", "hex", "input", "int", "isinstance", "iter", "len", "list"),
    *("map", "max", "min", "next", "ord", "print", "range", "reversed", "sorted", "str", "sum", "super"),
    *("tuple", "type", "zip", "Exception", "StopIteration"),
    *(name for name in vars(builtins) if name.endswith("Error")),
}
"""The builtins that programs may use: their results are the same in every run and version."""


def test_programs_stay_in_a_part_of_python_that_is_the_same_everywhere() -> None:
    for made in everything():
        tree = ast.parse(made.program.code)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        bound = names_bound(tree)
        assert (used - bound) & set(vars(builtins)) <= ALLOWED
        assert not bound & set(vars(builtins)), "a builtin is hidden"
        nodes = {type(node) for node in ast.walk(tree)}
        assert not nodes & {ast.Import, ast.ImportFrom, ast.Set, ast.SetComp, ast.Div, ast.Match}
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not any(isinstance(value, (float, complex, bytes)) for value in constants)
        # Debug prints are lines of their own, and may show any variable.
        assert not any(
            keyword.arg in ("end", "sep", "file")
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            for keyword in node.keywords
        )


def test_no_objects_with_an_order_of_their_own_are_sorted() -> None:
    # The number of comparisons in sort has changed between versions, so their effects must not be visible.
    for made in everything():
        code = made.program.code
        assert "__lt__" not in code or not (".sort(" in code or "sorted(" in code)


RUNNER = """
import contextlib, io, json, sys
outputs = []
for code, stdin in json.load(sys.stdin):
    sys.stdin, out = io.StringIO(stdin), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "program", "exec"), {"__name__": "__main__"})
    outputs.append(out.getvalue())
json.dump(outputs, sys.stdout)
"""


def run_elsewhere(programs: list[Program], hash_seed: str) -> list[str]:
    """Returns the outputs in another interpreter, whose standard error must be empty."""
    done = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", "-c", RUNNER],
        input=json.dumps([(program.code, program.stdin) for program in programs]),
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": hash_seed},
        check=True,
    )
    assert done.stderr == ""
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_interpreter_prints_the_same_whatever_its_hash_seed(hash_seed: str) -> None:
    made = list(everything())
    assert run_elsewhere([one.program for one in made], hash_seed) == [one.measured.stdout for one in made]


@pytest.mark.parametrize("family", NAMES)
def test_a_program_is_a_file_that_runs(family: str, tmp_path: Path) -> None:
    made = sample(family, 6)[0]
    file = tmp_path / "program.py"
    file.write_text(made.program.code)
    done = subprocess.run(
        [sys.executable, file], input=made.program.stdin, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, made.measured.stdout, "")
