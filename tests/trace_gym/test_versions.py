"""Versions of a program: that each is fit to be shown, and that none is likelier to be than another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from textwrap import dedent
from typing import Any, cast

import gymnasium as gym
import pytest

import trace_gym.backends.local as local
from task_gym.errors import ProgramError
from trace_gym.admission import HASH_SEEDS, LIMITS, judge
from trace_gym.choices import LEAST, OPTIONS, Version, versions
from trace_gym.mutate import KINDS, mutants
from trace_gym.sandbox import Job, Result, Sandbox
from trace_gym.score import squeeze

LOOP = dedent(
    """
    total = 0
    for value in range(2, 9):
        if value % 3 == 1 or value > 6:
            total += value * 5
        else:
            total -= 1
        print(value, total)
    """
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HASH_SEEDS, limits=LIMITS) as sandbox:
        yield sandbox


class Scripted:
    """A sandbox in which every program prints what it is told to, by number and hash seed."""

    hash_seeds = HASH_SEEDS

    def __init__(self, says: Callable[[int, int], tuple[str, str, str]]) -> None:
        self.says = says

    def run_until(self, jobs: Iterable[Job], done: Callable[[Result], bool]) -> None:
        for place, job in enumerate(jobs):
            assert job.hash_seed == HASH_SEEDS[place % 2]
            status, stdout, stderr = self.says(place // 2, place % 2)
            if done(Result(cast(Any, status), stdout, stderr, 0.0, "none")):
                return


def scripted(says: Callable[[int, int], tuple[str, str, str]], seed: int = 0) -> list[Version]:
    return versions(LOOP, "", "true\n", seed, cast(Sandbox, Scripted(says)))


def outputs(found: Iterable[Version]) -> set[str]:
    return {version.output for version in found}


def numbered(place: int, hash_seed: int) -> tuple[str, str, str]:
    return "ok", f"{place:04}\n", ""


FIRST_SEVEN = {"true\n", *(f"{place:04}\n" for place in range(7))}


def test_the_first_seven_that_differ_are_taken() -> None:
    found = scripted(numbered)
    assert outputs(found) == FIRST_SEVEN
    assert Counter(version.mutation == "" for version in found) == {True: 1, False: 7}
    assert next(version.source for version in found if not version.mutation) == LOOP


def test_each_is_shown_as_often_wherever_its_output_came_from() -> None:
    """The first of 800 seeds: each of eight 100 times expected, deviation 9.4; the seeds are fixed."""
    firsts = Counter(scripted(numbered, seed)[0].output for seed in range(800))
    assert set(firsts) == FIRST_SEVEN and all(62 <= count <= 138 for count in firsts.values())


def test_which_is_shown_says_nothing_of_the_others_order() -> None:
    """As above for the second of those in which the program itself is first, of 1,600: 200, 28.6 each."""
    found = [scripted(numbered, seed) for seed in range(1600)]
    seconds = Counter(one[1].output for one in found if not one[0].mutation)
    assert set(seconds) == FIRST_SEVEN - {"true\n"} and all(8 <= count <= 50 for count in seconds.values())


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ([("ok", "TRUE ", "")] * 2, "as the program, but for white space and case"),
        ([("ok", "0001 \n", "")] * 2, "as another, but for white space"),
        ([("ok", "0000\n", ""), ("ok", "0009\n", "")], "another under another hash seed"),
        ([("ok", "0000\n", "warning\n")] * 2, "something on its standard error"),
        ([("ok", "0000\n", ""), ("ok", "0000\n", "x")], "the same, under one hash seed only"),
        ([("error", "0000\n", "")] * 2, "an error"),
        ([("ok", "0000\n", ""), ("timeout", "0000\n", "")], "no end, under one hash seed"),
        ([("ok", "0" * 11, "")] * 2, "more than twice as long"),
        ([("ok", "0\n", "")] * 2, "less than half as long"),
        ([("ok", " \n\n \n", "")] * 2, "nothing but white space"),
        ([("ok", "a\ufffdb\n", "")] * 2, "no text"),
        ([("ok", "```\na\n```", "")] * 2, "what cleaning takes out of a reply"),
    ],
)
def test_what_is_no_version(refused: list[tuple[str, str, str]], why: str) -> None:
    """The mutant in third place says something else; the eighth is taken in its stead."""
    found = scripted(lambda place, hash_seed: refused[hash_seed] if place == 2 else numbered(place, 0))
    assert outputs(found) == FIRST_SEVEN - {"0002\n"} | {"0007\n"}, why


def test_none_is_more_than_twice_as_long_as_another() -> None:
    """The truth has 5; then 10 is taken, 4 is not (less than half of 10), 8 is."""
    lengths = {0: 10, 1: 4, 2: 11, 3: 8}
    found = scripted(lambda place, _: ("ok", f"{place:0{lengths.get(place, 5) - 1}}\n", ""))
    assert sorted(len(version.output) for version in found) == [5, 5, 5, 5, 5, 5, 8, 10]


def test_a_version_prints_what_it_says(sandbox: Sandbox) -> None:
    found = versions(LOOP, "", sandbox.run(LOOP).stdout, 5, sandbox)
    texts = {mutant.source: mutant.kind for mutant in mutants(LOOP, 0)}
    assert len(found) == OPTIONS and {version.mutation for version in found} == {"", *KINDS}
    for version in found:
        assert sandbox.run(version.source).stdout == version.output
        assert {**texts, LOOP: ""}[version.source] == version.mutation
    assert len({squeeze(version.output) for version in found}) == OPTIONS
    assert found == versions(LOOP, "", sandbox.run(LOOP).stdout, 5, sandbox)


def test_a_version_is_the_same_under_every_hash_seed(sandbox: Sandbox) -> None:
    """Half of the mutants print a set of texts, whose order varies."""
    source = dedent(
        """
        names = {"anna", "bert", "carl", "dora", "emil", "fred", "gina", "hans"}
        for size in range(3, 8):
            print(size * 7, sorted(names) if size < 9 else names)
        """
    )
    for seed in range(3):
        found = versions(source, "", sandbox.run(source).stdout, seed, sandbox)
        assert len(found) >= LEAST
        for version in found:
            assert judge(version.source, "", sandbox).truth == version.output
            assert not version.output.startswith("21 {")


def test_one_that_may_not_be_shown_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a mutant that is another one while its lines are counted: the next in line takes its place."""
    plain: Any = gym.make("CodeTraceChoice-v0", level=1).unwrapped
    task_id = next(
        task_id for task_id in range(0, 1600) if task_id % 160 < 16 and _mutated_first(plain, task_id)
    )
    before = plain.trace
    refused: list[str] = []

    def refuses(source: str, stdin: str, sandbox: Sandbox) -> Any:
        refused.append(source)
        verdict = judge(source, stdin, sandbox)
        return type(verdict)("", "no", verdict.sandbox) if len(refused) == 1 else verdict

    monkeypatch.setattr(local, "judge", refuses)
    backend = local.LocalBackend(plain._backend._source, "safe", True)
    after = backend.load(task_id)
    assert refused[0] == before.source != after.source
    assert {after.truth, *after.false} == {*before.false}
    backend.close()
    plain.close()


def _mutated_first(env: Any, task_id: int) -> bool:
    """Whether a mutant is shown, and there are some to spare."""
    env.reset(seed=0, options={"task_id": task_id})
    return bool(env.trace.mutation and len(env.trace.false) == OPTIONS - 1)


def test_upstreams_own_programs_are_shown_as_they_are() -> None:
    asked, chosen = (
        gym.make(name, level=2, injector="affine", task_ids=[(0, 3199)]).unwrapped
        for name in ("CodeTrace-v0", "CodeTraceChoice-v0")
    )
    for seed in range(6):
        task_id = 16 + 160 * seed
        asked.reset(seed=0, options={"task_id": task_id})
        _, info = chosen.reset(seed=0, options={"task_id": task_id})
        one, other = asked.trace, chosen.trace  # type: ignore[attr-defined]
        assert (other.source, other.truth, other.mutation) == (one.source, one.truth, "")
        assert one.truth in info["admissible_commands"]
        assert chosen.step(0)[-1]["mutation"] == ""
    chosen.close()


def test_what_does_not_parse_has_no_versions(sandbox: Sandbox) -> None:
    with pytest.raises(ProgramError):
        versions("print(1", "", "1\n", 0, sandbox)
