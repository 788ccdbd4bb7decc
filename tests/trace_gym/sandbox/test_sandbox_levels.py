"""The level in force, levels that this machine lacks, and control groups, which hold and are not left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from task_gym.errors import ArgumentError, SandboxError
from tests.trace_gym.boxes import LIMITS, need
from tests.trace_gym.play import Make
from tests.trace_gym.rows import write_rows
from trace_gym.sandbox import LEVELS, Result, Sandbox, cgroups, probe, run, trouble, worker
from trace_gym.sandbox import __main__ as sandbox_command


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Makes the levels of the returned set unavailable on this machine."""
    names: set[str] = set()
    monkeypatch.setattr(probe, "trouble", lambda level: "taken away" if level in names else trouble(level))
    monkeypatch.setattr(probe, "advise", lambda: ["allow it"])
    yield names


@pytest.fixture
def forget_trials() -> Iterator[None]:
    """Makes the next question about a level a new trial."""
    probe._try.cache_clear()
    yield
    probe._try.cache_clear()


def test_the_level_that_protects_is_taken_whatever_is_required() -> None:
    need("namespaces")
    assert run("").level == Sandbox().level == run("", require="limits").level == "namespaces"


def test_nothing_is_downgraded_unless_the_risk_is_accepted(missing: set[str]) -> None:
    need("limits")
    missing.add("namespaces")
    with pytest.raises(SandboxError, match=r"'namespaces': taken away.; allow it; or .*: require='limits'"):
        run("print(1)")
    assert run("print(1)", require="limits").level == "limits"
    missing.add("limits")
    with pytest.raises(SandboxError, match="'namespaces': taken away; 'limits': taken away"):
        run("print(1)", require="limits")


def test_wrong_levels_are_named() -> None:
    with pytest.raises(SandboxError, match="level='limits' was given, which protects from nothing"):
        Sandbox(level="limits")
    with pytest.raises(ArgumentError, match=r"require: 'namespace' was given.*mean 'namespaces'"):
        run("", require="namespace")
    with pytest.raises(ArgumentError, match=r"level: 'rlimits' was given.*mean 'limits'"):
        Sandbox(level="rlimits")
    with pytest.raises(ArgumentError, match="level: 'none' was given"):
        trouble("none")


@pytest.mark.usefixtures("forget_trials")
def test_a_promise_that_does_not_hold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the trial of the level that protects, run at the other, names what is missing."""
    need("limits")
    real = probe.Worker
    monkeypatch.setattr(probe, "Worker", lambda level, hash_seed: real("limits", hash_seed))
    reason = probe._try("namespaces")
    assert reason is not None and reason.startswith("not kept in a trial: ")
    for promise in ("no processes", "no sockets", "no files but its own", "a process namespace"):
        assert promise in reason


@pytest.mark.usefixtures("forget_trials")
def test_a_trial_that_did_not_end_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that a busy moment is an error of its own, and neither a downgrade nor remembered."""
    need("namespaces")
    ended = Result("timeout", "", "", 60.0, "namespaces")

    def time_out(self: object) -> None:
        raise TimeoutError("timed out")

    for place, name, value in (
        (worker.Worker, "reply", lambda self: ("short", "unshare: Cannot allocate memory")),
        (probe, "_run_trial", lambda level, canary: ended),
        (worker.Worker, "reply", time_out),
    ):
        with monkeypatch.context() as busy:
            probe._try.cache_clear()
            busy.setattr(place, name, value)
            for require in LEVELS:
                with pytest.raises(SandboxError, match=r"could not be found out: .*; try again"):
                    run("print(1)", require=require)
    assert run("print(1)").level == "namespaces"


@pytest.mark.usefixtures("forget_trials")
def test_other_systems_and_a_missing_interpreter_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(SandboxError, match="'/nowhere/python' was found"):
        patch.setattr(worker.sys, "_base_executable", "/nowhere/python", raising=False)
        worker.executable()
    monkeypatch.setattr(probe.sys, "platform", "darwin")
    with pytest.raises(SandboxError, match=r"this system is 'darwin', allowed: 'linux'"):
        run("print(1)")


@pytest.mark.launch
@pytest.mark.sample
def test_rows_of_a_file_need_protection_and_builtin_programs_none(
    missing: set[str], tmp_path: Path, make_env: Make
) -> None:
    need("limits")
    missing.add("namespaces")
    rows = write_rows(tmp_path / "rows.jsonl", "print(1)\nprint(2)\n")
    with pytest.raises(SandboxError, match=r"does not have the level .*; allow it; or .*require='limits'"):
        make_env(source=rows).reset(seed=1)
    assert make_env(source=rows, require="limits").reset(seed=1)[1]["sandbox"] == "limits"
    assert make_env("CodeTraceChoice-v0", task_id=0).reset(seed=1)[1]["sandbox"] in LEVELS


# -- machines that lack it ---------------------------------------------------------------------------------

ASK = """
import sys
from trace_gym.sandbox import run
from task_gym.errors import SandboxError
for require in ("namespaces", "limits"):
    try: print(run("print(1)", require=require).level)
    except SandboxError as error: print(error)
"""


def ask(before: str, *command: str) -> list[str]:
    """Returns what a new process says of both levels, after ``before``."""
    done = subprocess.run(
        [*command, sys.executable, "-c", before + ASK], cwd=Path(__file__).parents[3], capture_output=True,
        encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.launch
def test_a_machine_without_user_namespaces_says_how_to_get_them() -> None:
    """Checks a process whose own user namespace allows no further ones, as an administrator can forbid."""
    need("namespaces")
    forbid = """
import ctypes, os
user, group = os.geteuid(), os.getegid()
assert ctypes.CDLL(None).unshare(0x10000000) == 0
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {user} 1")
open("/proc/self/gid_map", "w").write(f"0 {group} 1")
open("/proc/sys/user/max_user_namespaces", "w").write("0")
"""
    refused, accepted = ask(forbid)
    assert "a worker at level 'namespaces' did not start: [Errno 28] unshare: No space" in refused
    assert "sysctl -w user.max_user_namespaces=10000; or accept the risk" in refused
    # This process is root without a second user id, so that level "limits" cannot have one for programs.
    assert accepted == "limits" or "no user id is to be had for programs" in accepted


@pytest.mark.launch
def test_a_normal_user_has_the_same_level() -> None:
    """Checks a user without any right, who cannot read this checkout if it is in root's home."""
    if os.geteuid() != 0:
        pytest.skip("root alone can become somebody else")
    need("namespaces")
    ids = "65534, 65534, 65534"
    become = f"import os\nos.setgroups([])\nos.setresgid({ids})\nos.setresuid({ids})\n"
    if not all(os.stat(path).st_mode & 1 for path in Path(worker.executable()).parents):
        pytest.skip("the interpreter is where only root can read")
    assert ask(become)[0] == "namespaces"


@pytest.mark.parametrize(
    ("files", "advised"),
    [
        ({"/proc/sys/user/max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces=10000"),
        ({"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1"),
        ({"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "unprivileged_userns=0"),
        ({"/proc/self/status": "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1"}, "seccomp=unconfined"),
        ({"/proc/self/status": "Seccomp:\t0"}, "the kernel must allow user namespaces"),
    ],
)
def test_advice(monkeypatch: pytest.MonkeyPatch, files: dict[str, str], advised: str) -> None:
    monkeypatch.setattr(probe, "read_kernel_file", lambda path: files.get(path, ""))
    assert [advised in one for one in probe.advise()] == [True]


def test_a_machine_says_what_it_offers_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox_command, "advise", lambda: ["allow it"])
    for lacks, code, shown in (
        ({"namespaces": "forbidden here"}, 1, ["namespaces     no: forbidden here", "limits         yes"]),
        ({}, 0, ["namespaces     yes", "limits         yes"]),
    ):
        monkeypatch.setattr(sandbox_command, "trouble", lacks.get)
        with pytest.raises(SystemExit) as exit:
            sandbox_command.main()
        lines = capsys.readouterr().out.splitlines()
        assert exit.value.code == code and lines[1:3] == shown and ("- allow it" in lines) == bool(lacks)


# -- control groups ----------------------------------------------------------------------------------------


@pytest.fixture
def groups() -> None:
    reason = cgroups.trouble()
    if reason is not None:
        pytest.skip(f"no control groups here: {reason}")


def groups_of_this_process() -> set[str]:
    """Returns the groups of this process's workers; sandboxes of other tests may have some."""
    return {
        path.name
        for place in cgroups.find_places()
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
    left = [place.parent / f"{cgroups.PREFIX}{gone.pid}-1" for place in cgroups.find_places()]
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
    monkeypatch.setattr(cgroups, "find_places", nowhere)
    with Sandbox(limits=LIMITS) as sandbox:
        assert sandbox.run(program).stdout == before
    assert cgroups.trouble() == "none here"


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
    group = make_tree(tmp_path, passed)
    place = cgroups.find_unified(group, tmp_path)
    assert place == cgroups.Place(tmp_path / "user.slice", "memory.max", "pids.max")
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    group = make_tree(lacking, {"": "pids", "session": ""})
    with pytest.raises(OSError, match="passes on the controllers memory and pids"):
        cgroups.find_unified(group, lacking)


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
