"""Refusals: what is no program, what a text may name, and what a text does not show, a run does."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.errors import ProgramError
from trace_gym.admission import allowlist
from trace_gym.admission.admit import VARIES, judge
from trace_gym.admission.reading import refuse, shows_order
from trace_gym.admission.worlds import WORLDS, WORLDS_FOR_SETS, jobs
from trace_gym.sandbox import Sandbox
from trace_gym.syntax import ParsedProgram, compiles, parse

CLOCK = "time.time is a clock"
ON = "is handed on as a value"
UNKNOWN = "is not on the list of names whose values follow from program and input"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        # A module under another name, and the same name for something else.
        ("import time as t\nprint(t.time())", f"line 2: {CLOCK}"),
        ("from time import time as t", f"line 1: {CLOCK}"),
        ("from time import *\nprint(time())", f"line 2: {CLOCK}"),
        ("def f():\n    import time\n    return time.time()", f"line 3: {CLOCK}"),
        ("def f():\n    global time\n    import time\nf()\nprint(time.time())", f"line 5: {CLOCK}"),
        ("import time\ndef f(time):\n    return time.time()", ""),
        ("import time\nprint([time.time for time in 'ab'])", ""),
        (
            "import time\nclass A:\n    time = 3\n    def f(self):\n        return time.time()",
            f"line 5: {CLOCK}",
        ),
        ("import time\ntime = 3\nprint(time.time)", f"line 3: {CLOCK}"),
        # A module as a value.
        ("import time\nprint(vars(time))", f"line 2: the module time {ON}"),
        ("import time as t\nclass A:\n    t = t", f"line 3: the module time {ON}"),
        ("import math\nprint(getattr(math, input())(2))", ""),
        # What is behind a module.
        ("import dataclasses\nprint(dataclasses.sys.version)", f"line 2: dataclasses.sys {UNKNOWN}"),
        ("from json.decoder import re", f"line 1: the module json.decoder {UNKNOWN}"),
        (
            "import os\nprint(os.path.join('a', 'b'), os.path.abspath('a'))",
            "line 2: os.path.abspath is the machine's own",
        ),
        ("from . import x", "line 1: a package around the program does not exist"),
        ("import numpy", "line 1: the module numpy is not in the standard library"),
        # Members of any object.
        ("print((lambda: 0).__globals__)", f"line 1: the member __globals__ {UNKNOWN}"),
        ("print(print.__self__)", f"line 1: the member __self__ {UNKNOWN}"),
        (
            "def g():\n    yield\ng().gi_frame",
            "line 3: the member gi_frame leads to the interpreter's own state",
        ),
        ("match 1:\n    case int(__self__=x):\n        pass", f"line 2: the member __self__ {UNKNOWN}"),
        ("print('{0.__class__.__hash__}'.format(1))", f"line 1: the member __hash__ {UNKNOWN}"),
        ("print(vars(object)['__hash__'])", f"line 1: the member __hash__ {UNKNOWN}"),
        ("class A:\n    '''Has a __hash__ of its own.'''\n    def __hash__(self):\n        return 1", ""),
        (
            "import operator\nprint(operator.attrgetter('a.__self__'))",
            f"line 2: the member __self__ {UNKNOWN}",
        ),
        ("__import__ = 3\nprint(__import__)", f"line 2: __import__ {UNKNOWN}"),
        # Ids may only be compared.
        ("print(id(a) == id(b) != id(c))", ""),
        ("print(id(a) < id(b))", f"line 1: id {allowlist.ADDRESS}"),
        ("print(id(a) == 5)", f"line 1: id {allowlist.ADDRESS}"),
        ("print(map(id, x))", f"line 1: id {allowlist.ADDRESS}"),
        ("id = int(input())\nprint(id)", ""),
        # Times that are given, and the present.
        ("import time\nprint(time.gmtime(0), time.strftime('%Y', time.gmtime(0)))", ""),
        ("import time\nprint(time.gmtime())", "line 2: time.gmtime is a clock"),
        ("import time\nprint(time.strftime('%Y'))", "line 2: time.strftime is a clock"),
        (
            "from datetime import datetime as d\nprint(d.now())",
            "line 2: the member now (of datetime) is a clock",
        ),
        ("import datetime\nclass A:\n    def now(self):\n        return 5\nprint(A().now())", ""),
        ("class A:\n    now = 3\nprint(A.now)", ""),
        # What has no order, and what has no more than a size.
        ("import os\nprint(sorted(os.listdir()))", ""),
        ("import os\nprint(os.listdir())", f"line 2: os.listdir {allowlist.ORDER}"),
        ("import os\nprint(os.fstat(0).st_size)", ""),
        ("import os\nprint(os.fstat(0).st_ino)", "line 2: os.fstat is the machine's own"),
        ("import sys\nprint(sys.version_info >= (3, 8), sys.version_info[0], sys.version_info.major)", ""),
        ("import sys\nprint(sys.version_info)", "line 2: sys.version_info is the machine's own"),
        ("import gc\ngc.collect()", ""),
        ("import gc\nprint(gc.collect())", "line 2: gc.collect is the process's own"),
        # Examples that a program runs.
        ("import doctest\n'''\n>>> 1 + 1\n2\n'''", ""),
        ("import doctest\n'''\n>>> id(1)\n2\n'''", f"line 3: id {allowlist.ADDRESS}"),
        ("import doctest\n'''\n>>> import time\n'''", "line 3: an example imports a module"),
        ("'''\n>>> id(1)\n2\n'''", ""),
    ],
)
def test_what_a_text_may_name(program: str, reason: str) -> None:
    assert refuse(parse(program)) == reason


def test_a_text_that_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises(ProgramError):
        refuse(parse("x = " + "-" * 2_000 + "1"))


@pytest.mark.parametrize(
    ("program", "shows"),
    [
        ("print({1, 2})", True),
        ("x = {i for i in y}", True),
        ("f = frozenset", True),
        ("print(a.keys() & b)", True),
        ("print(eval(input()))", True),
        ("print({1: 2}, a - b, [3])", False),
    ],
)
def test_which_programs_may_show_the_order_of_a_set(program: str, shows: bool) -> None:
    assert shows_order(parse(program)) == shows


def test_every_module_on_the_list_is_there_and_leads_to_no_other() -> None:
    for path in allowlist.MODULES:
        names = allowlist.names_of(path)
        assert names or path in ("concurrent", "urllib", "xml", "xml.etree"), path
        assert not names & allowlist.REASONS.keys()
        assert not any(f"{path}.{name}" in allowlist.REASONS for name in names), path


# -- the guards and the worlds -----------------------------------------------------------------------------

PICKLED = "import pickle\n{}\nprint(pickle.loads({}))\n"


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


# Line 1 has é, of two bytes, before the second statement; line 2 ends in CR LF, line 3 in CR, line 5 not.
_TEXT = "s = 'é'; t = 2\nu = '''a\r\n b''' # c\rif t: \\\n  v = 3"


def test_positions_count_characters() -> None:
    program = ParsedProgram(_TEXT)
    s, t, u, branch = program.tree.body
    assert isinstance(branch, ast.If)
    assert [program.of(node) for node in (s, t, u)] == ["s = 'é'", "t = 2", "u = '''a\r\n b'''"]
    assert program.before(t) == "s = 'é'; "
    assert (program.after(s), program.after(u)) == ("; t = 2", " # c")
    assert [program.newline(node) for node in (s, u, branch)] == ["\n", "\r", "\n"]
    assert program.is_continued(branch.body[0]) and not program.is_continued(branch)
    assert program.line_end(branch) == len(_TEXT)


@given(
    st.lists(st.sampled_from(["x = 1", "é = '\x0c\x85'", "# \u2028", "", '"""\n"""']), max_size=8), st.data()
)
def test_every_statement_is_found_whatever_ends_the_lines(lines: list[str], data: st.DataObject) -> None:
    ends = st.sampled_from(["\n", "\r\n", "\r"])
    text = "".join(line + data.draw(ends) for line in lines)
    program = ParsedProgram(text)
    assert [program.of(node) for node in program.tree.body] == [
        line for line in lines if line and line[0] != "#"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = (1", "line 1"),
        ("x\n y", "line 2"),
        ("'\ud800'", "text"),
        ("x\0", "null|NUL"),
        ("-" * 20_000 + "1", "deeply"),
    ],
)
def test_what_is_no_program_is_a_named_error(text: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        ParsedProgram(text)
    assert not compiles(text)


def test_a_program_that_only_parses_does_not_compile() -> None:
    assert compiles("x = 1") and not compiles("break")
    assert ParsedProgram("break").tree.body
