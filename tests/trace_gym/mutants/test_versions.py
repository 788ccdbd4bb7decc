"""Tests of a program's versions: each is fit to be shown, and each is equally likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from textwrap import dedent
from typing import Any, cast

import gymnasium as gym
import pytest

import trace_gym.mutants.choices as choices
from task_gym.errors import ProgramError
from trace_gym.admission.admit import LIMITS, OWN_HASH_SEEDS, judge
from trace_gym.admission.worlds import HASH_SEEDS
from trace_gym.mutants.choices import LEAST, OPTIONS, Version, versions
from trace_gym.mutants.mutate import KINDS, mutants
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


# Status, stdout and stderr of the n-th mutant: with its lines counted (None), and under a hash seed.
Script = Callable[[int, int | None], tuple[str, str, str]]


class Scripted:
    """A sandbox with given results for the mutants."""

    hash_seeds = OWN_HASH_SEEDS

    def __init__(self, script: Script) -> None:
        self.script = script
        self.numbers: dict[str, int] = {}

    def run_until(self, jobs: Iterable[Job], done: Callable[[Result], bool]) -> None:
        for number, job in enumerate(jobs):
            assert job.hash_seed == OWN_HASH_SEEDS[number % 2]
            self.numbers[job.program] = number
            if done(self.result(number, None)):
                return

    def run_many(self, jobs: Iterable[Job]) -> list[Result]:
        return [self.result(self.numbers[job.program], job.hash_seed) for job in jobs]

    def result(self, number: int, hash_seed: int | None) -> Result:
        status, stdout, stderr = self.script(number, hash_seed)
        return Result(cast(Any, status), stdout, stderr, 0.0, "none")


def scripted(script: Script, seed: int = 0) -> list[Version]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "limited", lambda code, _: code)
        return versions(LOOP, "", "true\n", seed, cast(Sandbox, Scripted(script)), trusted=True)


def outputs(found: Iterable[Version]) -> set[str]:
    return {version.output for version in found}


def numbered(number: int, hash_seed: int | None) -> tuple[str, str, str]:
    return "ok", f"{number:04}\n", ""


FIRST_SEVEN = {"true\n", *(f"{number:04}\n" for number in range(7))}


def test_the_first_seven_that_differ_are_taken() -> None:
    found = scripted(numbered)
    assert outputs(found) == FIRST_SEVEN
    assert Counter(version.mutation == "" for version in found) == {True: 1, False: 7}
    assert next(version.code for version in found if not version.mutation) == LOOP


def test_each_is_shown_as_often_wherever_its_output_came_from() -> None:
    """Each of eight versions is first equally often: 50 of 400 seeds, deviation 6.6. Seeds are fixed."""
    firsts = Counter(scripted(numbered, seed)[0].output for seed in range(400))
    assert set(firsts) == FIRST_SEVEN and all(30 <= count <= 70 for count in firsts.values())


@pytest.mark.trains
def test_which_is_shown_says_nothing_of_the_others_order() -> None:
    """As above for the second of those in which the program itself is first, of 1,600: 200, 28.6 each."""
    found = [scripted(numbered, seed) for seed in range(1600)]
    seconds = Counter(one[1].output for one in found if not one[0].mutation)
    assert set(seconds) == FIRST_SEVEN - {"true\n"} and all(8 <= count <= 50 for count in seconds.values())


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (("ok", "TRUE ", ""), "as the program, but for white space and case"),
        (("ok", "0001 \n", ""), "as another, but for white space"),
        (("ok", "0002\n", "warning\n"), "something on its standard error"),
        (("error", "0002\n", ""), "an error"),
        (("timeout", "0002\n", ""), "no end"),
        (("ok", "0" * 11, ""), "more than twice as long"),
        (("ok", "0\n", ""), "less than half as long"),
        (("ok", " \n\n \n", ""), "nothing but white space"),
        (("ok", "a\ufffdb\n", ""), "no text"),
        (("ok", "```\na\n```", ""), "what cleaning takes out of a reply"),
    ],
)
def test_what_is_no_version(refused: tuple[str, str, str], why: str) -> None:
    """The third mutant prints something else, and the eighth replaces it."""
    found = scripted(lambda number, hash_seed: refused if number == 2 else numbered(number, hash_seed))
    assert outputs(found) == FIRST_SEVEN - {"0002\n"} | {"0007\n"}, why


@pytest.mark.parametrize("refused", [("ok", "0009\n", ""), ("ok", "0002\n", "x"), ("error", "0002\n", "")])
@pytest.mark.parametrize("hash_seed", OWN_HASH_SEEDS)
def test_one_that_could_not_be_shown_is_left_out(hash_seed: int, refused: tuple[str, str, str]) -> None:
    """It is left out even if another version is shown. Otherwise, being impossible to show would tell."""
    for seed in range(4):
        found = scripted(
            lambda number, under: refused if (number, under) == (2, hash_seed) else numbered(number, under),
            seed,
        )
        assert outputs(found) == FIRST_SEVEN - {"0002\n"}


def test_none_is_more_than_twice_as_long_as_another() -> None:
    """The truth has 5; then 10 is taken, 4 is not (less than half of 10), 8 is."""
    lengths = {0: 10, 1: 4, 2: 11, 3: 8}
    found = scripted(lambda number, _: ("ok", f"{number:0{lengths.get(number, 5) - 1}}\n", ""))
    assert sorted(len(version.output) for version in found) == [5, 5, 5, 5, 5, 5, 8, 10]


def test_a_version_prints_what_it_says(sandbox: Sandbox) -> None:
    found = versions(LOOP, "", sandbox.run(LOOP).stdout, 5, sandbox)
    texts = {mutant.code: mutant.kind for mutant in mutants(LOOP, 0)}
    assert len(found) == OPTIONS and {version.mutation for version in found} == {"", *KINDS}
    for version in found:
        assert sandbox.run(version.code).stdout == version.output
        assert {**texts, LOOP: ""}[version.code] == version.mutation
    assert len({squeeze(version.output) for version in found}) == OPTIONS
    assert found == versions(LOOP, "", sandbox.run(LOOP).stdout, 5, sandbox)


NAMES = dedent(
    """
    names = {"anna", "bert", "carl", "dora", "emil", "fred", "gina", "hans"}
    for size in range(3, 8):
        print(size * 7, sorted(names) if size < 9 else names)
    """
)
"""Two of its mutants print a set of strings, whose order varies."""

COUNTING = dedent(
    """
    size = len(globals())
    for k in range(3, 8):
        print(size - size if k > 9 else k, k * 7)
        if k > 9:
            print(size)
    """
)
"""Two of its mutants count the names that counting lines needs."""


@pytest.mark.parametrize("code", [NAMES, pytest.param(COUNTING, marks=pytest.mark.families)])
def test_a_version_prints_the_same_under_every_hash_seed_and_when_its_lines_are_counted(
    code: str, sandbox: Sandbox
) -> None:
    found = versions(code, "", sandbox.run(code).stdout, 0, sandbox)
    assert len(found) >= LEAST
    for version in found:
        assert judge(version.code, "", sandbox).truth == version.output
        assert not version.output.startswith("21 {")


@pytest.mark.parametrize("injector", ["safe", pytest.param("affine", marks=pytest.mark.families)])
def test_what_is_shown_is_a_version_of_the_tasks_program(injector: str) -> None:
    """The program's output is an option; the version shown differs from the program in at most one line."""
    asked, chosen = (
        gym.make(name, level=2, family="bits", injector=injector).unwrapped
        for name in ("CodeTrace-v0", "CodeTraceChoice-v0")
    )
    kinds = set()
    for place in range(16):
        options = {"task_id": 25 + 160 * place}
        _, bare = asked.reset(seed=0, options=options)
        _, info = chosen.reset(seed=0, options=options)
        own, shown = asked.trace, chosen.trace  # type: ignore[attr-defined]
        *_, ending = chosen.step(info["admissible_commands"].index(shown.truth))
        assert (ending["score"], ending["mutation"]) == (1.0, shown.mutation)
        kinds.add(shown.mutation)
        if info["replaced"] == bare["replaced"]:
            assert own.truth in info["admissible_commands"]
            lines = zip(own.code.split("\n"), shown.code.split("\n"), strict=True)
            assert sum(one != other for one, other in lines) == (shown.mutation != "")
            assert (shown.truth == own.truth) == (shown.mutation == "")
    assert kinds >= {"", "off_by_one", "operator"}
    chosen.close()


def test_what_does_not_parse_has_no_versions(sandbox: Sandbox) -> None:
    with pytest.raises(ProgramError):
        versions("print(1", "", "1\n", 0, sandbox)
