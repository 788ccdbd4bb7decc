"""Varied worlds: what a small set's order follows from is not the same in all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trace_gym.admission.admit import LIMITS
from trace_gym.admission.worlds import HASH_SEEDS, WORLDS_FOR_SETS, jobs
from trace_gym.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HASH_SEEDS, limits=LIMITS) as sandbox:
        yield sandbox


def run_in_worlds(program: str, sandbox: Sandbox) -> list[str]:
    results = [
        sandbox.run(job.program, job.stdin, hash_seed=job.hash_seed)
        for job in jobs(program, "", WORLDS_FOR_SETS)
    ]
    assert [(result.status, result.stderr) for result in results] == [("ok", "")] * WORLDS_FOR_SETS
    return [result.stdout.strip() for result in results]


def test_a_class_takes_every_place_of_a_small_set(sandbox: Sandbox) -> None:
    # The hash of an address leaves its lowest four bits out, and a small set has eight places.
    places = run_in_worlds("class A:\n    pass\n\nprint(id(A) // 16 % 8)\n", sandbox)
    assert [int(place) for place in places[1:]] == [number % 8 for number in range(1, WORLDS_FOR_SETS)]


@pytest.mark.parametrize("made", ["def f():\n    pass\n", "f = lambda: 1\n", "f = [1]\n"])
def test_other_objects_have_several_places(made: str, sandbox: Sandbox) -> None:
    assert len(set(run_in_worlds(f"{made}print(id(f) // 16 % 8)\n", sandbox)[1:])) > 1


def test_classes_come_in_both_orders(sandbox: Sandbox) -> None:
    program = "class A:\n    pass\n\nprint(next(iter({A: 1, int: 2}.keys() & {A, int})).__name__)\n"
    assert set(run_in_worlds(program, sandbox)) == {"A", "int"}
