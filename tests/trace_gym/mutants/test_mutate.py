"""Mutants of small programs by hand, properties of all mutants; a program's versions are fit to be shown."""

from __future__ import annotations

import difflib
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from textwrap import dedent
from typing import Any, cast

import gymnasium as gym
import pytest

from task_gym.errors import ProgramError
from trace_gym.admission.admit import OWN_HASH_SEEDS
from trace_gym.mutants.mutate import KINDS, mutants
from trace_gym.mutants.versions import LEAST, OPTIONS, Version, versions
from trace_gym.sandbox import Job, Result, Sandbox
from trace_gym.score import squeeze
from trace_gym.syntax import compiles


def _all(code: str) -> dict[str, set[str]]:
    """Returns every mutant, by kind."""
    codes: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for mutant in mutants(code, 0):
        codes[mutant.kind].add(mutant.code)
    return codes


@pytest.mark.parametrize(
    ("code", "off_by_one", "operator", "skip"),
    [
        ("x = 5", ["x = 4", "x = 6"], [], []),
        ("x = 0", ["x = 1"], [], []),
        ("x = 0x10", ["x = 15", "x = 17"], [], []),
        ("x = True, 1.5, '7', b'7', None, 10_000_000_000_000_000_000", [], [], []),
        ("range(n)", ["range(n - 1)", "range(n + 1)"], [], []),
        ("range(*a)", [], [], []),
        ("range((a if b else c), len(d), e)",
         ["range(((a if b else c) - 1), len(d), e)", "range(((a if b else c) + 1), len(d), e)",
          "range((a if b else c), len(d) - 1, e)", "range((a if b else c), len(d) + 1, e)"], [],
         ["range((a if not b else c), len(d), e)"]),
        ("a < b", ["a <= b"], ["a > b"], []),
        ("a<=b", ["a<b"], ["a>=b"], []),
        ("(a) > (# >\n b) >= c", ["(a) >= (# >\n b) >= c", "(a) > (# >\n b) > c"],
         ["(a) < (# >\n b) >= c", "(a) > (# >\n b) <= c"], []),
        ("a == b != c", [], ["a != b != c", "a == b == c"], []),
        ("a in b", [], ["a not in b"], []),
        ("a not \\\n in b", [], ["a in b"], []),
        ("(a)in b", [], ["(a) not in b"], []),
        ("a is b", [], ["a is not b"], []),
        ("a is not b", [], ["a is b"], []),
        ("a + b - c", [], ["a - b - c", "a + b + c"], []),
        ("(a * b) // c", [], ["(a + b) // c", "(a // b) // c", "(a * b) * c"], []),
        ("a % b", [], ["a // b"], []),
        ("a ** b / c", [], ["a * b / c", "a ** b * c"], []),
        ("a << b >> c", [], ["a >> b >> c", "a << b << c"], []),
        ("a & b | c ^ d", [], ["a | b | c ^ d", "a & b & c ^ d", "a & b | c | d"], []),
        ("a @ b", [], [], []),
        ("'a' + b + [c] * d", [], [], []),
        ("x += a", [], ["x -= a"], []),
        ("x[y] //= a", [], ["x[y] *= a"], []),
        ("x += 'a'", [], [], []),
        ("a and b and c or d", [], ["a or b and c or d", "a and b or c or d", "a and b and c and d"], []),
        ("min(all(a))", [], ["max(all(a))", "min(any(a))"], []),
        ("a.min(b)", [], [], []),
        ("if a:\n  b\nelif(c):\n  d", [], [],
         ["if not a:\n  b\nelif(c):\n  d", "if a and False:\n  b\nelif(c):\n  d",
          "if a or True:\n  b\nelif(c):\n  d", "if a:\n  b\nelif(not c):\n  d",
          "if a:\n  b\nelif(c and False):\n  d", "if a:\n  b\nelif(c or True):\n  d"]),
        # Operands that need parentheses.
        ("if a(b) or c[d]:\n  e", [], ["if a(b) and c[d]:\n  e"],
         ["if not (a(b) or c[d]):\n  e", "if (a(b) or c[d]) and False:\n  e",
          "if (a(b) or c[d]) or True:\n  e"]),
        ("if(a := b):\n  c", [], [],
         ["if(not (a := b)):\n  c", "if((a := b) and False):\n  c", "if((a := b) or True):\n  c"]),
        ("for a in 'bc': d", [], [], ["for a in [*'bc'][1:]: d", "for a in [*'bc'][:-1]: d"]),
        ("for a in {b: c}: d", [], [], ["for a in [*{b: c}][1:]: d", "for a in [*{b: c}][:-1]: d"]),
        ("if\\\na:\n  b", [], [],
         ["if\\\n(not a):\n  b", "if\\\n(a and False):\n  b", "if\\\n(a or True):\n  b"]),
        ("if __name__ == '__main__':\n  f()", [], [], []),
        ("while a: b", [], [], ["while a and False: b"]),
        ("a if-b else c", [], [], ["a if(not (-b)) else c"]),
        ("for a in b, c: d", [], [], ["for a in [*(b, c)][1:]: d", "for a in [*(b, c)][:-1]: d"]),
        ("[a for a in b if c]", [], [],
         ["[a for a in [*b][1:] if c]", "[a for a in [*b][:-1] if c]", "[a for a in b if not c]"]),
        ("for a in b:\n  break", [], [],
         ["for a in [*b][1:]:\n  break", "for a in [*b][:-1]:\n  break", "for a in b:\n  continue",
          "for a in b:\n  pass"]),
        ("while a: continue", [], [],
         ["while a and False: continue", "while a: break", "while a: pass"]),
        # Parts that are left alone.
        ("f'{a + 1:{b}}'", [], [], []),
        ("def f(a: 1 | b, c: 3) -> 2: pass\nx: 4 = y", [], [], []),
        ("@f(1)\nclass A: pass", [], [], []),
        ("match a:\n  case 1 | 2: pass", [], [], []),
        ("print('__DBG_0__', 1 + x)", [], [], []),
        ("print('__DBG', 5)", ["print('__DBG', 4)", "print('__DBG', 6)"], [], []),
        ("é = 'ü'; x = 5", ["é = 'ü'; x = 4", "é = 'ü'; x = 6"], [], []),
    ],
)  # fmt: skip
def test_every_mutant_of_a_small_program(
    code: str, off_by_one: list[str], operator: list[str], skip: list[str]
) -> None:
    assert _all(code) == {"off_by_one": set(off_by_one), "operator": set(operator), "skip": set(skip)}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement came with Python 3.12")
def test_types_are_left_alone() -> None:
    assert _all("type A = 1 | 2\ntype B[C] = 3") == {kind: set() for kind in KINDS}


_PROGRAM = '''
def score(words, limit=3):
    """Sum of lengths up to a limit: 12 is not a number here."""
    total = 0
    for i, word in enumerate(words):
        if len(word) > limit and word != "stop":
            total += len(word) * (i + 1)
        elif word == "end":
            break
    return total

n = int(input())
words = [input() for _ in range(n)]
for limit in range(1, n):
    print(limit, score(words, limit), max(0, n - limit))
'''


def test_no_two_are_alike_and_each_differs_in_one_place() -> None:
    all_mutants = list(mutants(_PROGRAM, 3))
    assert len({mutant.code for mutant in all_mutants} | {_PROGRAM}) == len(all_mutants) + 1
    for mutant in all_mutants:
        assert compiles(mutant.code)
        matcher = difflib.SequenceMatcher(
            None, _PROGRAM.splitlines(), mutant.code.splitlines(), autojunk=False
        )
        changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
        assert [change[0] for change in changes] == ["replace"] and changes[0][2] - changes[0][1] == 1


def test_mutants_are_the_same_everywhere() -> None:
    # random.Random(0).random() begins 0.844, 0.758: of "<=" (sorted: at 2), "4" and "6" (at 6), number
    # int(0.844 * 3) = 2 comes first, then of the other two number int(0.758 * 2) = 1.
    assert [mutant.code for mutant in mutants("x < 5\n", 0) if mutant.kind == "off_by_one"] == [
        "x < 6\n",
        "x < 4\n",
        "x <= 5\n",
    ]

    # Read off Python 3.11, 3.12 and 3.13, which agree; it changes with the program above.
    texts = [mutant.code for seed in range(9) for mutant in islice(mutants(_PROGRAM, seed), 9)]
    assert hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16] == "096642fd297802ee"


def test_what_cannot_be_mutated_is_a_named_error() -> None:
    # The error is raised at once, not with the first mutant.
    with pytest.raises(ProgramError, match="not Python"):
        mutants("x = (", 0)
    with pytest.raises(ProgramError, match="too deeply"):
        mutants("x = " + "(" * 100 + "1" + ")" * 100 + " + 1" * 2000, 0)
    assert list(mutants("", 0)) == list(mutants("x", 0)) == []


# -- a program's versions: each is fit to be shown, and each is equally likely -----------------------------

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
        patch.setattr("trace_gym.mutants.versions.limit_lines", lambda code, _: code)
        return versions(LOOP, "", "true\n", seed, cast(Sandbox, Scripted(script)), trusted=True)


def outputs(options: Iterable[Version]) -> set[str]:
    return {version.output for version in options}


def numbered(number: int, hash_seed: int | None) -> tuple[str, str, str]:
    return "ok", f"{number:04}\n", ""


FIRST_SEVEN = {"true\n", *(f"{number:04}\n" for number in range(7))}


def test_the_first_seven_that_differ_are_taken() -> None:
    options = scripted(numbered)
    assert outputs(options) == FIRST_SEVEN
    assert Counter(version.mutation == "" for version in options) == {True: 1, False: 7}
    assert next(version.code for version in options if not version.mutation) == LOOP


def test_each_is_shown_as_often_wherever_its_output_came_from() -> None:
    """Each of eight versions is first equally often: 50 of 400 seeds, deviation 6.6. Seeds are fixed."""
    firsts = Counter(scripted(numbered, seed)[0].output for seed in range(400))
    assert set(firsts) == FIRST_SEVEN and all(30 <= count <= 70 for count in firsts.values())


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (("ok", "TRUE ", ""), "as the program, but for white space and case"),
        (("ok", "0001 \n", ""), "as another, but for white space"),
        (("ok", "0002\n", "warning\n"), "something on its standard error"),
        (("error", "0002\n", ""), "an error"),
        (("timeout", "0002\n", ""), "no end"),
        (("ok", " \n\n \n", ""), "nothing but white space"),
        (("ok", "a\ufffdb\n", ""), "no text"),
        (("ok", "```\na\n```", ""), "what cleaning takes out of a reply"),
    ],
)
def test_what_is_no_version(refused: tuple[str, str, str], why: str) -> None:
    """The third mutant prints something else, and the eighth replaces it."""
    options = scripted(lambda number, hash_seed: refused if number == 2 else numbered(number, hash_seed))
    assert outputs(options) == FIRST_SEVEN - {"0002\n"} | {"0007\n"}, why


@pytest.mark.parametrize("refused", [("ok", "0009\n", ""), ("ok", "0002\n", "x"), ("error", "0002\n", "")])
@pytest.mark.parametrize("hash_seed", OWN_HASH_SEEDS)
def test_one_that_could_not_be_shown_is_left_out(hash_seed: int, refused: tuple[str, str, str]) -> None:
    """It is left out even if another version is shown. Otherwise, being impossible to show would tell."""
    for seed in range(4):
        options = scripted(
            lambda number, under: refused if (number, under) == (2, hash_seed) else numbered(number, under),
            seed,
        )
        assert outputs(options) == FIRST_SEVEN - {"0002\n"}


def test_none_is_more_than_twice_as_long_as_another() -> None:
    """The truth has 5; then 10 is taken, 4 is not (less than half of 10), 8 is."""
    lengths = {0: 10, 1: 4, 2: 11, 3: 8}
    options = scripted(lambda number, _: ("ok", f"{number:0{lengths.get(number, 5) - 1}}\n", ""))
    assert sorted(len(version.output) for version in options) == [5, 5, 5, 5, 5, 5, 8, 10]


def test_a_version_prints_what_it_says(sandbox: Sandbox) -> None:
    options = versions(LOOP, "", sandbox.run(LOOP).stdout, 5, sandbox, trusted=True)
    texts = {mutant.code: mutant.kind for mutant in mutants(LOOP, 0)}
    assert len(options) == OPTIONS and {version.mutation for version in options} == {"", *KINDS}
    for version in options:
        assert sandbox.run(version.code).stdout == version.output
        assert {**texts, LOOP: ""}[version.code] == version.mutation
    assert len({squeeze(version.output) for version in options}) == OPTIONS


NAMES = dedent(
    """
    names = {"anna", "bert", "carl", "dora", "emil", "fred", "gina", "hans"}
    for size in range(3, 8):
        print(size * 7, sorted(names) if size < 9 else names)
    """
)
"""Two of its mutants print a set of strings, whose order varies."""


@pytest.mark.launch
@pytest.mark.sample
def test_a_version_prints_the_same_under_every_hash_seed(sandbox: Sandbox) -> None:
    options = versions(NAMES, "", sandbox.run(NAMES).stdout, 0, sandbox)
    assert len(options) >= LEAST
    assert not any(version.output.startswith("21 {") for version in options)


@pytest.mark.parametrize(
    "injector",
    [
        pytest.param("safe", marks=[pytest.mark.trains, pytest.mark.sample]),
        pytest.param("affine", marks=pytest.mark.families),
    ],
)
def test_what_is_shown_is_a_version_of_the_tasks_program(injector: str) -> None:
    """The program's output is an option; the version shown differs from the program in at most one line."""
    asked, chosen = (
        gym.make(name, level=2, family="bits", injector=injector).unwrapped
        for name in ("CodeTrace-v0", "CodeTraceChoice-v0")
    )
    kinds = set()
    for place in range(8, 12):
        options = {"task_id": 25 + 160 * place}
        _, bare = asked.reset(seed=0, options=options)
        _, info = chosen.reset(seed=0, options=options)
        trace, shown = asked.trace, chosen.trace  # type: ignore[attr-defined]
        *_, ending = chosen.step(info["admissible_commands"].index(shown.truth))
        assert (ending["score"], ending["mutation"]) == (1.0, shown.mutation)
        kinds.add(shown.mutation)
        if info["replaced"] == bare["replaced"]:
            assert trace.truth in info["admissible_commands"]
            lines = zip(trace.code.split("\n"), shown.code.split("\n"), strict=True)
            assert sum(one != other for one, other in lines) == (shown.mutation != "")
            assert (shown.truth == trace.truth) == (shown.mutation == "")
    assert kinds >= {"", "off_by_one", "operator"}
    chosen.close()
