"""Tests of control groups: the limits hold for all processes and all memory in a group, and none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.trace_gym.boxes import LIMITS, need
from trace_gym.sandbox import Sandbox, cgroups


@pytest.fixture
def groups() -> None:
    reason = cgroups.trouble()
    if reason is not None:
        pytest.skip(f"no control groups here: {reason}")


def groups_of_this_process() -> set[str]:
    """Returns the groups of this process's workers; sandboxes of other tests may have some."""
    return {
        path.name
        for place in cgroups._places()
        for path in place.parent.glob(f"{cgroups.PREFIX}{os.getpid()}-*")
    }


@contextmanager
def member(program: str) -> Iterator[tuple[subprocess.Popen[bytes], cgroups.Group]]:
    """Starts a process that enters a group of its own and then waits for its input."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", f"input()\n{program}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    before = groups_of_this_process()
    group = cgroups.Group(process.pid)
    try:
        yield process, group
    finally:
        process.kill()
        process.communicate()
        group.close()
        assert groups_of_this_process() == before


@pytest.mark.usefixtures("groups")
def test_memory_that_no_limit_of_a_process_counts_is_limited() -> None:
    """Checks 256 MiB of a file in memory, against a limit of 16 MiB and the room of 64 MiB above it."""
    hoard = "import os\nfile = os.memfd_create('x')\nfor _ in range(256): os.write(file, bytes(1 << 20))"
    with member(hoard) as (process, group):
        group.limit(16 << 20, 8)
        process.communicate(b"\n")
        assert process.returncode == -signal.SIGKILL


@pytest.mark.usefixtures("groups")
def test_processes_are_limited() -> None:
    """Checks 3 processes above the room of 4 for helpers: with itself, a process can start 6 that stay."""
    program = """
import os, time
started = 0
try:
    while started < 50:
        if os.fork() == 0: time.sleep(60)
        started += 1
except BlockingIOError: pass
print(started, flush=True)
os.kill(0, 9)
"""
    with member("import os\nos.setsid()\n" + program) as (process, group):
        group.limit(512 << 20, 3)
        assert process.communicate(b"\n")[0] == b"6\n"


@pytest.mark.usefixtures("groups")
def test_a_worker_has_one_and_leaves_none() -> None:
    need("namespaces")
    before = groups_of_this_process()
    with Sandbox((0, 1), limits=LIMITS) as sandbox:
        sandbox.run("print(1)")
        assert groups_of_this_process() - before == {
            f"{cgroups.PREFIX}{os.getpid()}-{sandbox._workers[0]._process.pid}"
        }
    assert groups_of_this_process() == before


@pytest.mark.usefixtures("groups")
def test_groups_of_callers_that_were_killed_are_removed() -> None:
    need("namespaces")
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    left = [place.parent / f"{cgroups.PREFIX}{gone.pid}-1" for place in cgroups._places()]
    for path in left:
        path.mkdir()
    with Sandbox(limits=LIMITS) as sandbox:
        sandbox.run("")
    assert not any(path.exists() for path in left)


def test_without_groups_a_program_runs_as_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    need("namespaces")

    def nowhere() -> list[cgroups.Place]:
        raise OSError("none here")

    program = "import os\nprint(os.getpid(), os.listdir('/proc') if os.path.exists('/proc') else 'no')"
    with Sandbox(limits=LIMITS) as sandbox:
        before = sandbox.run(program).stdout
    monkeypatch.setattr(cgroups, "_places", nowhere)
    with Sandbox(limits=LIMITS) as sandbox:
        assert sandbox.run(program).stdout == before
        assert sandbox._workers[0]._groups == []
    cgroups.trouble.cache_clear()
    assert cgroups.trouble() == "none here"
    cgroups.trouble.cache_clear()


def make_tree(top: Path, passed: dict[str, str]) -> Path:
    """Makes folders as of version 2, from the top down, with what each passes on. Returns the lowest."""
    path = top
    for name, controllers in passed.items():
        path = path / name if name else path
        path.mkdir(exist_ok=True)
        (path / "cgroup.subtree_control").write_text(controllers + "\n")
    return path


def test_the_nearest_group_that_passes_both_controllers_on_is_taken(tmp_path: Path) -> None:
    """Checks a session of systemd, whose own group has processes, so that it passes nothing on."""
    passed = {"": "cpu memory pids", "user.slice": "memory pids", "user-0.slice": "pids", "session": ""}
    own = make_tree(tmp_path, passed)
    place = cgroups._unified(own, tmp_path)
    assert place == cgroups.Place(tmp_path / "user.slice", "memory.max", "pids.max")
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    own = make_tree(lacking, {"": "pids", "session": ""})
    with pytest.raises(OSError, match="passes on the controllers memory and pids"):
        cgroups._unified(own, lacking)


def test_groups_are_found_through_mounts_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks a container that sees its own part of version 1, and one that sees another's of version 2."""
    files = {
        "/proc/self/mountinfo": "31 1 0:28 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 1 0:29 / /sys/fs/cgroup/pids rw shared:2 - cgroup cgroup rw,pids\n"
        "33 1 0:30 /other /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "34 1 0:31 / /proc rw - proc proc rw\n",
        "/proc/self/cgroup": "4:memory:/docker/x/in\n8:pids:/\n9:name=systemd:/\n0::/docker/x\n",
    }
    monkeypatch.setattr(cgroups.Path, "read_text", lambda self: files[str(self)])
    root = Path("/sys/fs/cgroup")
    assert cgroups._hierarchies() == {
        "memory": (root / "memory/in", root / "memory"),
        "pids": (root / "pids", root / "pids"),
    }
