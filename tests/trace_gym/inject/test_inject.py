"""Injection: inserted text, unchanged text, the programs' outputs; upstream's injection against records."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import sysconfig
from pathlib import Path

import pytest

from task_gym.errors import AdmissionError
from tests.trace_gym.debug_prints import check_injections, same_tree, without_prints
from tests.trace_gym.rows import write_rows
from trace_gym.admission.admit import MOST_OUTPUT
from trace_gym.admission.measure import execute
from trace_gym.backends.local import LocalBackend
from trace_gym.inject import MOST, inject, strip_debug
from trace_gym.inject.safe import place
from trace_gym.programs.builtin import generate, ids_of
from trace_gym.programs.sources import open_source
from trace_gym.sandbox import Sandbox
from trace_gym.syntax import ParsedProgram, compiles

TEXTS = {
    "comments": "# one\nx = 1  # two\n# three\n\ny = x\n  # four\nprint(x + y)\n# five",
    "no final newline": "x = 1",
    "crlf": "x = 1\r\nif x:\r\n    y = 2\r\nprint(x)\r\n",
    "cr": "x = 1\rif x:\r    y = 2\rprint(x)\r",
    "mixed line ends": "x = 1\r\nif x:\n    y = 2\r    z = 3\nprint(x)",
    "tabs": "def f(a):\n\tb = a\n\tif b:\n\t\tc = b\n\t\treturn c\nprint(f(1))\n",
    "form feeds": "x = 1\n\x0c\nif x:\n\x0c    y = 2\n    z = 3\n\x0cprint(x, y, z)\n",
    "form feed before else": "\x0cif 0:\n    x = 1\nelse:\n    x = 2\nprint(x)\n",
    "unicode line ends": "x = 'a\x0b\x0c\x1c\x85\u2028b' # \u2029\ny = 1\nprint(len(x))\n",
    "wide characters": "é = 'ü' ; x = '日本'\nprint(é + x)\n",
    "normalised names": "\ufb01 = 3\nprint(fi)\n",
    "multi-line string": "x = '''a\n    b = 1\nc'''\nprint(x)\n",
    "multi-line string, then another": "x = '''a\nb'''; y = 2\nprint(x, y)\n",
    "multi-line call": "x = max(\n    1,\n  2 # c\n)\nprint(x)\n",
    "semicolons": "x = 1; y = 2; z = 3;\nprint(x); w = 4 ; # c\n",
    "semicolon in a suite": "def f():\n    x = 1; return x\nprint(f()); y = 2\n",
    "one-line suites": "if 1: x = 1\nelse: x = 2\nfor i in 1, 2: x = i; y = i\nwhile 0: z = 1\nprint(x)\n",
    "one-line suite at the end": "for i in range(2):\n    if i: x = i",
    "continued suite": "if 1: \\\n    x = 1\ny = 2\nprint(x)\n",
    "continuations": "x = 1 + \\\n    2\ny = \\\n  x\nprint(y)\n",
    "continuation into nothing": "x = 1 \\\n\ny = 2\nprint(y)\n",
    "continuation first": "if 1:\n  \\\n  x = 1\n  print(x)\ny = 3\n",
    "docstring and future": '"""Doc.\n\ny = 1\n"""\nfrom __future__ import division\nx: int = 1\nprint(x)\n',
    "encoding line": "#!/usr/bin/python\n# -*- coding: utf-8 -*-\nx = 'é'\nprint(x)\n",
    "else and elif": (
        "x = 3\nif x == 1:\n    y = 1\nelif x == 2:\n    y = 2\nelse:\n    if x:\n        y = 3\nprint(y)\n"
    ),
    "match": (
        "def f(p):\n    match p:\n        case [a, *b] if a:\n            c = a\n"
        "        case {'k': d, **e}:\n"
        "            c = d\n        case 1 | 2 as g: c = g\n        case _:\n            c = 0\n"
        "    return c\n"
        "print(f([1]), f({'k': 3}), f(2), f(None))\n"
    ),
    "try": (
        "for i in range(3):\n    try:\n        x = 1 // i\n        if i == 2:\n            break\n"
        "    except ZeroDivisionError as e:\n        x = str(e)\n    else:\n        y = i\n"
        "    finally:\n        z = i\n"
        "else:\n    w = 1\nprint(x, z)\n"
    ),
    "except star": (
        "try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept* ValueError as g:\n    x = 1\n"
        "print(x)\n"
    ),
    "global and nonlocal": (
        "x = 1\ndef f():\n    global x\n    x = 2\n    y = 3\n    def g(z):\n        nonlocal y\n"
        "        y += z\n"
        "        return y\n    return g(4)\nprint(f(), x)\n"
    ),
    "global del": "x = 1\ndef f():\n    global x\n    del x\nf()\ny = 2\nprint(y)\n",
    "del": "x = y = z = 1\ndel x, (y,)\nz = 2\nprint(z)\n",
    "except unbinds": "e = 1\ntry:\n    1 / 0\nexcept ZeroDivisionError as e:\n    x = 2\ny = 3\nprint(x)\n",
    "walrus": "if (n := 3) > 2:\n    x = [m := i for i in range(n)]\ny = n\nprint(m, x, y)\n",
    "class body": (
        "class A:\n    x = 1\n    if x:\n        y = 2\n"
        "    def print(self, type, /, *args, str=3, **kw):\n        z = 4\n"
        "        return z\n    def get(self):\n        v = self.x\n        return v\n    __w = 5\n"
        "    def private(self, __p):\n        __q = __p\n        return __q\n"
        "print(A().get(), A.y, A().private(1))\n"
    ),
    "async": (
        "import asyncio\nasync def f(n):\n    x = n\n    async def g():\n"
        "        for i in range(x):\n            y = i\n"
        "            yield y\n    async for z in g():\n        x = z\n    return x\n"
        "print(asyncio.run(f(3)))\n"
    ),
    "while true": (
        "def f():\n    i = 0\n    while True:\n        i += 1\n        if i > 3:\n            r = i\n"
        "            break\n    s = r\n    return s\nprint(f())\n"
    ),
    "finally returns": (
        "def f():\n    x = 0\n    for i in range(3):\n        try:\n            return 1\n"
        "        finally:\n            y = i\n            continue\n    return x\nprint(f())\n"
    ),
    "own types": (
        "class S(str):\n    def __repr__(self):\n        print('side effect')\n        return 'S'\n"
        "class N(int):\n    pass\n"
        "class P:\n    @property\n    def __class__(self):\n        print('looked')\n        return int\n"
        "x = S('a')\ny = N(3)\nz = P()\nprint(y + 1)\n"
    ),
    "exception": "x = 1\ny = x / 0\nz = 2\n",
    "input": "n = int(input())\nt = 0\nfor line in iter(input, 'end'):\n    t += int(line)\nprint(n, t)\n",
}
"""Programs with difficult text. Each has a point for a print."""

STDIN = "2\n3\n4\nend\n"


@pytest.mark.families
@pytest.mark.sample
@pytest.mark.parametrize("name", TEXTS)
def test_a_program_is_left_as_it_is(name: str, sandbox: Sandbox) -> None:
    assert check_injections([(TEXTS[name], STDIN)], sandbox, seeds=range(3), most=50) > 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_type_parameters_are_no_variables(sandbox: Sandbox) -> None:
    code = "type L[T] = list[T]\ndef f[T](a: T) -> T:\n    b = a\n    return b\nclass C[U]: pass\nz = f(1)\n"
    assert check_injections([(code, "")], sandbox) > 0
    shadowed = "class C[print]:\n    def f(self, a):\n        b = a\n        return b\nx = C().f(1)\n"
    assert inject(shadowed, 0) == shadowed


def test_a_worked_example() -> None:
    # random.Random(2).random() begins 0.956, 0.948, 0.057, 0.085, 0.835, 0.736, 0.670. After x: 0.956, so
    # no print. After y: 0.948, none. After z: 0.057 < 0.6; of 3 names 1 + int(0.085 * 3) = 1 is shown, namely
    # number int(0.835 * 3) = 2 of x, y, z. After w: 0.736, none; after v: 0.670, none.
    code = "x = 1\ny = 2\nz = 3\nw = 4\nv = 5\n"
    shown = "repr(z) if type(z) in (int, float, str, bool, type(None)) else type(z).__name__"
    assert inject(code, 2) == code.replace("z = 3\n", f"z = 3\nprint('__DBG_0__', {shown})\n")


def test_the_text_is_the_same_on_every_python() -> None:
    # Read off Python 3.11, 3.12 and 3.13, which agree; it changes with the programs above.
    texts = [inject(code, seed, most=9) for code in TEXTS.values() for seed in range(9)]
    assert hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16] == "e93aa8651d28fa39"


def test_prints_are_at_most_as_many_as_asked_for_and_numbered_from_0() -> None:
    code = "x = 1\n" * 50
    for most in (0, 1, 6, 20):
        injected = inject(code, 3, most=most)
        assert re.findall(r"__DBG_\d+__", injected) == [f"__DBG_{index}__" for index in range(most)]


def test_what_is_shown_is_the_repr_or_the_name_of_the_type(sandbox: Sandbox) -> None:
    code = "def f(a, b, c, d, e, g, h):\n    a = a\nf(1, 0.5, 'q\\n', True, None, [1], range)\n"
    wanted = {"a": "1", "b": "0.5", "c": "'q\\n'", "d": "True", "e": "None", "g": "list", "h": "type"}
    seen = set()
    for seed in range(12):
        injected = inject(code, seed)
        for shown in (line for line in injected.splitlines() if "__DBG_" in line):
            names = re.findall(r"type\((\w+)\)\.__name__", shown)
            line = "__DBG_0__ " + " ".join(wanted[name] for name in names)
            assert sandbox.run(injected).stdout.splitlines() == [line]
            seen.update(names)
    assert seen == set(wanted)


def test_prints_are_taken_out_of_an_output() -> None:
    assert strip_debug("a\n__DBG_0__ 1 'x'\nb\n__DBG_12__ list\n") == "a\nb\n"
    # A print in the middle of a line, as style "affine" may put one.
    assert strip_debug("n? __DBG_0__ 3\n4\n") == "n? 4\n"
    assert strip_debug("__DBG_x__ 1\n") == "__DBG_x__ 1\n"


@pytest.mark.families
def test_prints_alone_are_inserted_into_the_standard_library() -> None:
    """Checks programs by many authors. Most would be refused, so prints are also put at every point."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    modules = [path for path in sorted(folder.glob("*.py"))[::2] if path.stat().st_size < 40_000]
    prints = 0
    for module in modules:
        text = module.read_bytes().decode()
        for injected in (place(ParsedProgram(text), seed=len(text), most=10**6), inject(text, 0)):
            assert without_prints(injected) == text
            assert same_tree(injected, text)
            assert compiles(injected)
            prints += injected.count("__DBG_")
    assert len(modules) >= 50
    assert prints > 2000


# -- fewer prints where the output would be too long, before a program is replaced -------------------------


def prints(code: str) -> int:
    return code.count("print('__DBG_")


def fits(code: str, stdin: str) -> bool:
    return execute(code, stdin, output_limit=MOST_OUTPUT).error is None


def test_as_many_prints_as_there_is_room_for() -> None:
    backend = LocalBackend(open_source("builtin"), "safe", options=False)
    shortened = 0
    for task_id in (ids_of(level=10)[position] for position in range(0, 16, 2)):  # one of every other family
        program, trace = generate(task_id), backend.load(task_id)
        if trace.replaced:  # no room for even one print
            assert not fits(inject(program.code, task_id, most=1), program.stdin)
            continue
        assert trace.code == inject(program.code, task_id, most=prints(trace.code))
        assert trace.truth == execute(trace.code, trace.stdin).stdout
        more = inject(program.code, task_id, most=prints(trace.code) + 1)
        if prints(trace.code) < MOST and more != trace.code:
            assert not fits(more, program.stdin)
            shortened += 1
    assert shortened > 0


# A line "__DBG_0__ i" takes 11 bytes and i's digits, in 200 passes 10 * 12 + 90 * 13 + 100 * 14 = 2690; with
# three numbers in it, 10 * 16 + 90 * 19 + 100 * 22 = 4070. So there is room for one print, and not for two.
FOR_LOOP = "for i in range(200):\n    a = i\n    b = a\n    c = b\nprint(c)\n"
LONG = "print('x' * 4096)\n"


@pytest.mark.launch
@pytest.mark.sample
def test_rows_have_fewer_prints_too_and_affinetes_own_stay(tmp_path: Path, warm: None) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", FOR_LOOP, LONG, inputs=None)
    safe, affine = (LocalBackend(open_source(rows), style, options=False) for style in ("safe", "affine"))
    trace = safe.load(next(i for i in range(0, 100, 2) if prints(inject(FOR_LOOP, i)) > 1))
    assert (trace.row, trace.replaced, prints(trace.code)) == (0, 0, 1)
    # A program that is too long by itself is replaced by the next row, which is the first one again.
    assert (safe.load(1).row, safe.load(1).replaced) == (0, 1)
    task_id = next(i for i in range(0, 100, 2) if not fits(inject(FOR_LOOP, i, "affine"), ""))
    with pytest.raises(AdmissionError, match="it writes more than 4096 bytes; allowed"):
        affine.load(task_id)
    safe.close()
    affine.close()


# -- upstream's injection, by records from a Python that writes programs as 3.11 does ----------------------


def test_injection_is_upstreams() -> None:
    data = Path(__file__).parents[2] / "data" / "affinetes_injections.jsonl"
    records = [record for record in map(json.loads, data.read_text().splitlines()) if "injected" in record]
    assert len(records) == 75
    for record in records:
        assert inject(record["source"], record["seed"], style="affine") == record["injected"]
