"""Refusals with a line: of a name that follows from a machine, and of a look outside the program's folder."""

from __future__ import annotations

import pytest

from trace_gym.admission.admit import judge
from trace_gym.admission.reading import refuse
from trace_gym.sandbox import Sandbox
from trace_gym.syntax import parse

RELEASE = "follows from the release of Python or of a library"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        # A module under another name, and the same name for something else.
        ("import zlib as z\nprint(z.ZLIB_VERSION)", f"line 2: zlib.ZLIB_VERSION {RELEASE}"),
        ("from os import getuid as u", "line 1: os.getuid is the machine's own"),
        ("from os import *\nprint(getuid())", "line 2: os.getuid is the machine's own"),
        (
            "def f():\n    import os.path as p\n    p.getmtime('x')",
            "line 3: os.path.getmtime is the machine's",
        ),
        ("class os:\n    getuid = 3\nprint(os.getuid)", ""),
        ("import os\nprint(os.getcwd(), os.getpid())", ""),  # the worlds change these
        # The first line of several, and a module below another.
        ("import os\nimport resource\nimport ctypes", "line 2: resource is the process's own"),
        ("import urllib.parse", ""),
        ("import urllib.request", "line 1: urllib.request needs a network"),
        ("from concurrent.futures import ProcessPoolExecutor", "line 1: concurrent.futures.ProcessPoolExec"),
        ("import numpy.linalg", "line 1: the module numpy is not in the standard library"),
        # Members of any object, and builtins.
        ("print(x.st_size, y.st_ino)", "line 1: the member st_ino is the machine's own"),
        ("print(f.__code__.co_argcount, f.__code__.co_code)", f"line 1: the member co_code {RELEASE}"),
        ("try:\n    x\nexcept MemoryError: pass", "line 3: MemoryError follows from the machine's memory"),
        ("import pyexpat\nprint(pyexpat.EXPAT_VERSION)", f"line 1: pyexpat {RELEASE}"),
        # A release may be compared, and a part of it shown.
        ("import sys\nprint(sys.version_info >= (3, 8), sys.version_info[0], sys.version_info.major)", ""),
        ("from sys import version_info\nprint(version_info[:2])", ""),
        ("import sys\nprint(sys.version_info)", f"line 2: sys.version_info {RELEASE}"),
        ("import sys\nprint(sys.version)", f"line 2: sys.version {RELEASE}"),
    ],
)
def test_names_that_follow_from_a_machine_are_refused(program: str, reason: str) -> None:
    refusal = refuse(parse(program))
    assert refusal.startswith(reason) and bool(refusal) == bool(reason)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("print(open('/etc/hostname').read())", "line 1: it opens '/etc/hostname'"),
        ("def f():\n    open(p, 'w')\np = '../x'\nf()", "line 2: it opens '../x'"),
        ("import os\nprint(sorted(os.listdir('/')))", "line 2: it opens '/'"),
        ("import os\nprint(os.path.exists('/etc/passwd'))", "line 2: it opens '/etc/passwd'"),
        ("from pathlib import Path\nPath('/usr/x').is_dir()", "line 2: it opens PosixPath('/usr/x')"),
    ],
)
def test_a_look_outside_the_folder_is_refused(program: str, reason: str, sandbox: Sandbox) -> None:
    assert judge(program, "", sandbox).reason == f"{reason}, which is outside its folder"
