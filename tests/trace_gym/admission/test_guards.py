"""Tests of the guards and the worlds: what a text does not show, a run does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trace_gym.admission.admit import LIMITS, VARIES, judge
from trace_gym.admission.worlds import HASH_SEEDS, WORLDS, WORLDS_FOR_SETS, jobs
from trace_gym.sandbox import Sandbox

PICKLED = "import pickle\n{}\nprint(pickle.loads({}))\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(HASH_SEEDS, limits=LIMITS) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        # Names that are put together.
        ("print(getattr(print, '__se' + 'lf__'))", "line 1: getattr() looks up '__self__', which is not"),
        (
            "import datetime\nprint(getattr(datetime.date, 'to' + 'day')())",
            "line 2: getattr() looks up 'today'",
        ),
        ("print(eval('i' + 'd')([]))", "line 1: eval() runs code that names 'id'"),
        ("x = 5\nexec('import ' + 'time')", "line 2: exec() imports a module"),
        ("import time\nprint(eval('time.time()'))", "line 2: eval() runs code that names the module 'time'"),
        ("id = id\nprint(id([]))", "line 2: id() is called under another name"),
        (
            "compile = compile\nexec(compile('1', '', 'exec'))",
            "line 2: compile() is called under another name",
        ),
        # Hashes of texts, also inside others.
        ("print(hash(('a', 1)))", "line 1: hash() of a tuple follows from a seed or an address"),
        ("from enum import Enum\nC = Enum('C', 'R')\nprint(hash(C.R))", "line 3: hash() of a C follows"),
        (
            "class A:\n    def __hash__(self):\n        return hash('a')\n\nprint(hash(A()))",
            "line 5: hash() of a A follows",
        ),
        # Random numbers without a seed.
        (
            "import random\nrandom.seed()\nprint(random.randint(0, 1))",
            "line 3: a random number without a seed",
        ),
        ("from random import *\nx = [1, 2]\nshuffle(x)", "line 3: a random number without a seed"),
        ("import random\nprint(random.getstate()[1][0] % 2)", "line 2: a random number without a seed"),
        # Files.
        (
            "print(open('/etc/hostname').read())",
            "line 1: it opens '/etc/hostname', which is outside its folder",
        ),
        ("p = '../x'\nopen(p, 'w')", "line 2: it opens '../x', which is outside its folder"),
        ("import os\nprint(sorted(os.listdir('/')))", "line 2: it opens '/', which is outside its folder"),
        (PICKLED.format("", "b'cos\\ngetpid\\n(tR.'"), "line 3: pickled data names os.getpid"),
        # An example of a docstring.
        (
            "import doctest\n'''\n>>> 1\n1\n'''\n__doc__ = '>>> hash(chr(97)) % 2\\n0'\ndoctest.testmod()",
            "line 1: hash() of a str",
        ),
    ],
)
def test_a_guard_names_the_line(program: str, reason: str, sandbox: Sandbox) -> None:
    assert judge(program, "", sandbox).reason.startswith(reason)


@pytest.mark.parametrize(
    ("program", "truth"),
    [
        (
            "class A:\n    def __init__(self, n):\n        self.n = n\n    def __hash__(self):\n"
            "        return hash(self.n)\nprint(hash(A(3)), len({A('a'), A('b')}))",
            "3 2\n",
        ),
        (
            "import random\nclass R(random.Random):\n    pass\nr = R(3)\ns = r.getstate()\na = r.random()\n"
            "r.setstate(s)\nprint(r.random() == a, isinstance(r, random.Random))",
            "True True\n",
        ),
        (PICKLED.format("class A:\n    x = 1", "pickle.dumps([{1: (2, {3.5})}])"), "[{1: (2, {3.5})}]\n"),
        (
            "import doctest\ndef f(x):\n    '''\n    >>> f(2)\n    4\n    '''\n    return x * x\n"
            "doctest.testmod()\n"
            "print(f(3))",
            "9\n",
        ),
        (
            "f = lambda x: eval('x + 1')\nclass A:\n    exec('y = 5')\nprint(f(2), A.y, eval('z', {'z': 4}))",
            "3 5 4\n",
        ),
        ("x: int = 3\nprint(__annotations__, __name__)", "{'x': <class 'int'>} __main__\n"),
    ],
)
def test_guards_and_worlds_leave_sound_programs_alone(program: str, truth: str, sandbox: Sandbox) -> None:
    verdict = judge(program, "", sandbox)
    assert (verdict.reason, verdict.truth) == ("", truth)


def test_a_seeded_generator_draws_what_it_would_without_a_guard(sandbox: Sandbox) -> None:
    """The numbers are those of this process, which has the same version of Python."""
    import random

    ours = random.Random(42)
    expected = [ours.random(), ours.randint(1, 6), ours.sample(range(100), 3), ours.gauss(0, 1)]
    program = (
        "import random\nrandom.seed(42)\n"
        "print([random.random(), random.randint(1, 6), random.sample(range(100), 3), random.gauss(0, 1)])\n"
    )
    assert judge(program, "", sandbox).truth == f"{expected}\n"


@pytest.mark.parametrize(
    "expression",
    [
        "hash('a')",
        "id([]) % 4096",
        "id(print)",
        "os.getpid()",
        "os.getcwd()",
        "os.uname().nodename",
        "time.tzname",
        "time.localtime(0).tm_hour",
        "time.gmtime().tm_year",
        "int(time.time()) // 3600",
        "time.monotonic_ns() // 10**12",
        "sys.getswitchinterval()",
    ],
)
def test_worlds_differ(expression: str, sandbox: Sandbox) -> None:
    """At least three values: switching, and the first two places of the smallest objects, have few more."""
    results = sandbox.run_many(jobs(f"import os, sys, time\nprint({expression})\n", "", WORLDS))
    assert all((result.status, result.stderr) == ("ok", "") for result in results), results
    assert len({result.stdout for result in results}) >= 3, [result.stdout for result in results]


def test_a_world_is_as_empty_as_the_sandbox(sandbox: Sandbox) -> None:
    program = "import os\nprint(os.listdir(), __name__, sorted(globals()), open(0).read())\n"
    plain, *others = sandbox.run_many(jobs(program, "in", WORLDS))
    assert {result.stdout for result in others} == {plain.stdout}


def test_what_varies_with_a_folder_or_an_address_is_refused(sandbox: Sandbox) -> None:
    for program in (
        "import argparse\nargparse.ArgumentParser('x', description='a ' * 60).print_help()\n",
        "print(object())\n",
        "from datetime import datetime\nprint(datetime(2020, 1, 1).timestamp())\n",
    ):
        assert judge(program, "", sandbox).reason == VARIES


def run_in_worlds(program: str, sandbox: Sandbox) -> list[str]:
    results = sandbox.run_many(jobs(program, "", WORLDS_FOR_SETS))
    assert [(result.status, result.stderr) for result in results] == [("ok", "")] * WORLDS_FOR_SETS
    return [result.stdout.strip() for result in results]


def test_a_class_takes_every_place_of_a_small_set(sandbox: Sandbox) -> None:
    # The hash of an address leaves its lowest four bits out, and a small set has eight places.
    places = run_in_worlds("class A:\n    pass\n\nprint(id(A) // 16 % 8)\n", sandbox)
    assert [int(place) for place in places[1:]] == [number % 8 for number in range(1, WORLDS_FOR_SETS)]


@pytest.mark.parametrize("made", ["def f():\n    pass\n", "f = lambda: 1\n", "f = [1]\n"])
def test_other_objects_have_several_places(made: str, sandbox: Sandbox) -> None:
    assert len(set(run_in_worlds(f"{made}print(id(f) // 16 % 8)\n", sandbox)[1:])) > 1
