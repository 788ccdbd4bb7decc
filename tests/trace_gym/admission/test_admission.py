"""Tests of admission: it takes the sound rows of our data set and refuses the others for the right reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.trace_gym.rows import EVERY, PATH, SIZE, Row, rows, text
from trace_gym.admission import admit
from trace_gym.admission.admit import HASH_SEEDS, LIMITS, MOST_OUTPUT, judge, judge_own
from trace_gym.sandbox import LEVELS, Limits, Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HASH_SEEDS, limits=LIMITS) as sandbox:
        yield sandbox


def test_the_file_is_what_its_script_writes() -> None:
    assert PATH.read_text(encoding="utf-8") == text()
    assert len(rows()) == SIZE == len({(row.program, row.inputs) for row in rows()})
    assert sum(bool(row.reason) for row in rows()) == SIZE // EVERY


@pytest.mark.parametrize("part", range(8))
def test_exactly_the_sound_rows_are_admitted(part: int, sandbox: Sandbox) -> None:
    for row in rows()[part::8]:
        check_row(row, sandbox)


def check_row(row: Row, sandbox: Sandbox) -> None:
    verdict = judge(row.program, row.inputs, sandbox)
    assert verdict.sandbox in LEVELS
    if row.reason:
        assert re.search(row.reason, verdict.reason), (verdict.reason, row.program)
        assert verdict.truth == ""
    else:
        assert verdict.reason == "", row.program
        assert verdict.truth.strip()


# "y" and a line end are two bytes, so 2048 such lines are the most.
@pytest.mark.parametrize(
    ("program", "admitted"),
    [
        ("for i in range(2048): print('y')", True),
        ("for i in range(2049): print('y')", False),
        (f"print('é' * {MOST_OUTPUT // 2 - 1}, end='\\n\\n')", True),
        (f"print('é' * {MOST_OUTPUT // 2}, end='')", True),
        (f"print('é' * {MOST_OUTPUT // 2}, end='.')", False),
    ],
)
def test_the_limit_of_output_counts_bytes(program: str, admitted: bool, sandbox: Sandbox) -> None:
    verdict = judge(program, "", sandbox)
    assert (verdict.reason == "") == admitted
    assert verdict == judge(program, "", sandbox)
    # In this process the run ends with an error of its own.
    assert (judge_own(program, "").reason == "") == admitted


# The loop's statement, then in each pass the pass itself and the statement in it: 2n + 1, and the print.
@pytest.mark.parametrize(("passes", "admitted"), [(499_999, True), (500_000, False)])
def test_the_limit_of_lines_is_exact(passes: int, admitted: bool, sandbox: Sandbox) -> None:
    program = f"for i in range({passes}):\n    pass\nprint(i)\n"
    assert 2 * 499_999 + 2 == 1_000_000
    verdict = judge(program, "", sandbox)
    assert (verdict.reason, verdict.truth) == (
        ("", f"{passes - 1}\n") if admitted else ("it executes more than 1000000 lines", "")
    )


@pytest.mark.parametrize(
    "program",
    [
        "import time\nprint(1)\ntime.sleep(60)\n",  # waits
        "import itertools\nprint(sum(itertools.repeat(0)))\n",  # one line for ever
    ],
)
def test_what_does_not_end_is_given_up(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admit, "LIMITS", Limits(cpu_seconds=1, wall_seconds=2.0))
    with Sandbox(HASH_SEEDS, limits=admit.LIMITS) as sandbox:
        assert judge(program, "", sandbox).reason == "it does not end"


def test_bytes_that_are_no_text_are_refused(sandbox: Sandbox) -> None:
    program = "import sys\nsys.stdout.buffer.write(bytes([255, 10]))\n"
    assert judge(program, "", sandbox).reason == "its output is not all text"


def test_a_program_that_looks_at_itself_is_refused(sandbox: Sandbox) -> None:
    verdict = judge("print('__tick__' in globals())\n", "", sandbox)  # False, but True in the counted run
    assert verdict.reason == (
        "its lines cannot be counted: its output varies, or it behaves otherwise when they are"
    )
