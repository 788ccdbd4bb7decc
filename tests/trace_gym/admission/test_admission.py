"""Tests of admission: it takes the sound rows of our data set and refuses the others for the right reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.trace_gym.rows import rows
from trace_gym.admission.admit import MOST_OUTPUT, VARIES, judge, judge_own, refuse_row
from trace_gym.admission.worlds import HASH_SEEDS, WORLDS, WORLDS_FOR_CHANCE, hash_seeds, jobs
from trace_gym.sandbox import Limits, Sandbox

VERDICTS = Path(__file__).parents[2] / "data" / "verdicts.jsonl"
"""Ordinary programs, each with whether its output is the same at any place and time and on any machine."""

PARTS = 22

parts = pytest.mark.parametrize(
    "part",
    [
        pytest.param(0, marks=[pytest.mark.launch, pytest.mark.sample]),
        *(pytest.param(part, marks=pytest.mark.families) for part in range(1, PARTS)),
    ],
)


@parts
def test_exactly_the_sound_rows_are_admitted(part: int, sandbox: Sandbox) -> None:
    for row in rows()[part::PARTS]:
        verdict = judge(row.program, row.inputs, sandbox)
        if row.reason:
            assert re.search(row.reason, verdict.reason), (verdict.reason, row.program)
            assert verdict.truth == ""
        else:
            assert verdict.reason == "", row.program
            assert verdict.truth.strip()


@parts
def test_ordinary_programs_have_the_verdict_of_their_row(part: int, sandbox: Sandbox) -> None:
    """Rows with ``known`` are admission's known errors, some of them on one release of Python only."""
    for row in map(json.loads, VERDICTS.read_text(encoding="utf-8").splitlines()[part::PARTS]):
        verdict = judge(row["program"], row["inputs"], sandbox)
        assert row["sound"] == (not verdict.reason) or row.get("known"), (row["program"], verdict.reason)
        assert bool(verdict.truth) == (not verdict.reason)


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


@pytest.mark.launch
@pytest.mark.sample
def test_what_does_not_end_is_given_up() -> None:
    waits = "import threading\nprint(1)\nthreading.Event().wait()\n"
    one_line_for_ever = "import itertools\nprint(sum(itertools.repeat(0)))\n"
    with Sandbox(HASH_SEEDS, limits=Limits(cpu_seconds=1, wall_seconds=0.4)) as sandbox:
        for program in (waits, one_line_for_ever):
            assert judge(program, "", sandbox).reason == "it does not end"


@pytest.mark.launch
@pytest.mark.sample
def test_what_sleeps_is_refused_at_once(sandbox: Sandbox) -> None:
    """Two of three sleeps of 0.4 s are within the second that is allowed, and the third is not."""
    program = "import time\nfor i in range({}):\n    time.sleep(0.4)\nprint(i)\n"
    assert judge(program.format(2), "", sandbox).truth == "1\n"
    reason = "line 3: time.sleep() sleeps for more than 1 s in all"
    assert judge(program.format(3), "", sandbox).reason == reason
    assert judge("from time import sleep\nsleep(10**6)\n", "", sandbox).reason == reason.replace("3", "2")
    in_a_thread = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(50,)).start()\nprint(1)\n"
    )
    assert judge(in_a_thread, "", sandbox).reason == reason.removeprefix("line 3: ")


@pytest.mark.parametrize(
    ("code", "stdin", "reason"),
    [
        ("x = 1\n" * 20_000, "", "it has 120,000 characters; allowed: 32,768 bytes"),
        ("#" * 32_768, "", ""),
        ("#" * 32_769, "", "it has 32,769 characters; allowed: 32,768 bytes"),
        ("#" + "é" * 16_384, "", "it has 16,385 characters; allowed: 32,768 bytes"),  # two bytes each
        ("\n" * 1_999, "", ""),  # the last line has no end
        ("\r" * 2_000, "", "it has 2,001 lines; allowed: 2,000"),
        ("print(1)", "x" * 65_536, ""),
        ("print(1)", "é" * 32_769, "its input has 32,769 characters; allowed: 65,536 bytes"),
    ],
)
def test_sizes_are_looked_at_before_anything_else(code: str, stdin: str, reason: str) -> None:
    assert refuse_row(code, stdin) == reason


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print(1)\n" + "#" * 131_072, "it has more than 131,072 bytes with its debug prints"),
        ("import sys\nsys.stdout.buffer.write(bytes([255, 10]))\n", "its output is not all text"),
        # False, but True in the counted run.
        ("print('__tick__' in globals())\n", "its lines cannot be counted: its output varies, or it "),
        (
            "raise ValueError('\\x1b]0;title\\x07')\n",
            r"status 'error': ValueError: \x1b]0;title\x07",
        ),  # no controls
        (f"print({'9' * 5000} % 7)\n", "Exceeds the limit (4300 digits)"),
        ("return 1\n", "it does not parse: 'return' outside function"),
        ("x = " + "(" * 50 + "-" * 20_000 + "1" + ")" * 50, "nested too deeply"),
    ],
)
def test_reasons(program: str, reason: str, sandbox: Sandbox) -> None:
    assert reason in judge(program, "", sandbox).reason


def test_a_reason_shows_the_line_that_varies(sandbox: Sandbox) -> None:
    reason = judge("import os\nprint('folder')\nprint(os.path.basename(os.getcwd()))\n", "", sandbox).reason
    assert reason.startswith(f"{VARIES}: its line 2 is '") and reason.endswith("or 'ww7'")


# -- the worlds --------------------------------------------------------------------------------------------


EXPRESSIONS = (
    *("hash('a')", "id([]) % 4096", "id(print)", "os.getpid()", "os.getcwd()", "os.uname().nodename"),
    *("os.cpu_count()", "sys.getrecursionlimit()", "sys.getswitchinterval()", "time.tzname"),
    *("time.localtime(0).tm_hour", "time.gmtime().tm_year", "int(time.time()) // 3600"),
    *("time.monotonic_ns() // 10**12", "round(time.time() - time.time())", "datetime.datetime.now().year"),
)


def test_worlds_differ(sandbox: Sandbox) -> None:
    """At least three values: switching, and the first two places of the smallest objects, have few more."""
    program = "import datetime, os, sys, time\n" + "".join(f"print({each})\n" for each in EXPRESSIONS)
    results = sandbox.run_many(jobs(program, ""))
    assert all((result.status, result.stderr) == ("ok", "") for result in results), results
    values = zip(*(result.stdout.splitlines() for result in results), strict=True)
    counts = {code: len(set(shown)) for code, shown in zip(EXPRESSIONS, values, strict=True)}
    assert min(counts.values()) >= 3, counts


def test_a_world_is_as_empty_as_the_sandbox(sandbox: Sandbox) -> None:
    program = "import os\nprint(os.listdir(), __name__, sorted(globals()), open(0).read())\n"
    plain, *others = sandbox.run_many(jobs(program, "in"))
    assert {result.stdout for result in others} == {plain.stdout}


WAITS = ("time.sleep(0.1)", "threading.Event().wait(0.1)", "asyncio.run(asyncio.sleep(0.1))")


@pytest.mark.launch
@pytest.mark.sample
def test_a_wait_takes_its_time_on_the_clock(sandbox: Sandbox) -> None:
    """In the world too in which work takes none."""
    program = "import asyncio, threading, time\n"
    for wait in WAITS:
        program += f"t = time.monotonic()\n{wait}\nprint(time.monotonic() - t > 0.09)\n"
    assert judge(program, "", sandbox).truth == "True\n" * 3


def run_in_worlds(program: str, sandbox: Sandbox) -> list[str]:
    results = sandbox.run_many(jobs(f"{program}  # set\n", ""))
    assert [(result.status, result.stderr) for result in results] == [("ok", "")] * WORLDS_FOR_CHANCE
    return [result.stdout.strip() for result in results]


@pytest.mark.launch
@pytest.mark.sample
def test_a_class_takes_every_place_of_a_small_set(sandbox: Sandbox) -> None:
    """Also in workers that have run many programs, whose garbage once left it one place in all worlds."""
    program = "class A:\n    pass\n\nprint(id(A) // 16 % 8)"
    sandbox.run_many([jobs(f"{program}  # set\n", "")[2]._replace(program="")] * 120)
    # The hash of an address leaves its lowest four bits out, and a small set has eight places.
    places = run_in_worlds(program, sandbox)
    assert [int(place) for place in places[1:]] == [number % 8 for number in range(1, WORLDS_FOR_CHANCE)]


@pytest.mark.parametrize("statement", ["def f():\n    pass\n", "f = lambda: 1\n", "f = [1]\n"])
def test_other_objects_have_several_places(statement: str, sandbox: Sandbox) -> None:
    assert len(set(run_in_worlds(f"{statement}print(id(f) // 16 % 8)", sandbox)[1:])) > 1


@pytest.mark.parametrize(
    ("program", "count"),
    [
        ("print({1, 2})", WORLDS_FOR_CHANCE),
        ("f = frozenset", WORLDS_FOR_CHANCE),
        ("print(a.keys() & b)", WORLDS_FOR_CHANCE),
        ("import random", WORLDS_FOR_CHANCE),
        ("print({1: 2}, a - b, [3])", WORLDS),
    ],
)
def test_a_program_draws_its_hash_seeds(program: str, count: int) -> None:
    """Another text has others, in programs that may show an order, and all are the sandbox's."""
    seeds = hash_seeds(program)
    assert len(seeds) == len(set(seeds)) == count and set(seeds) <= set(HASH_SEEDS)
    assert seeds != hash_seeds(program + "#")
