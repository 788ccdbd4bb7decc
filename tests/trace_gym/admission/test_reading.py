"""Tests of the static reading: what a text may name, whatever it calls it."""

from __future__ import annotations

import pytest

from task_gym.errors import ProgramError
from trace_gym.admission import allowlist
from trace_gym.admission.reading import refuse, shows_order
from trace_gym.syntax import parse

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
