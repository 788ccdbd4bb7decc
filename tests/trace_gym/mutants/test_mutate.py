"""Tests of mutants: all mutants of small programs by hand, and properties of all mutants."""

from __future__ import annotations

import difflib
import hashlib
import sys
from itertools import islice

import pytest

from task_gym.errors import ProgramError
from tests.trace_gym.debug_prints import same_tree, without_prints
from trace_gym.inject import inject
from trace_gym.mutants.mutate import KINDS, mutants
from trace_gym.syntax import compiles


def _all(code: str) -> dict[str, set[str]]:
    """Returns every mutant, by kind."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for mutant in mutants(code, 0):
        found[mutant.kind].add(mutant.code)
    return found


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
    found = list(mutants(_PROGRAM, 3))
    assert len({mutant.code for mutant in found} | {_PROGRAM}) == len(found) + 1
    for mutant in found:
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


def test_debug_prints_are_left_alone() -> None:
    injected = inject(_PROGRAM, 1)
    assert "__DBG_" in injected
    prints = [line for line in injected.splitlines() if "__DBG_" in line]
    for mutant in mutants(injected, 0):
        assert [line for line in mutant.code.splitlines() if "__DBG_" in line] == prints
        assert not same_tree(mutant.code, without_prints(injected))


def test_what_cannot_be_mutated_is_a_named_error() -> None:
    # The error is raised at once, not with the first mutant.
    with pytest.raises(ProgramError, match="not Python"):
        mutants("x = (", 0)
    with pytest.raises(ProgramError, match="too deeply"):
        mutants("x = " + "(" * 100 + "1" + ")" * 100 + " + 1" * 2000, 0)
    assert list(mutants("", 0)) == list(mutants("x", 0)) == []
