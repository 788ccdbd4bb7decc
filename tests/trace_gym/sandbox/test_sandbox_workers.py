"""Tests of warm workers: programs share nothing, and ended workers leave nothing."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from task_gym.errors import SandboxError
from tests.trace_gym.boxes import LIMITS, descendants, need, running
from trace_gym.sandbox import Job, Limits, Result, Sandbox, execution, worker
from trace_gym.sandbox.jail.wire import Caps
from trace_gym.sandbox.worker import Worker


@pytest.fixture(scope="module", params=["namespaces", pytest.param("limits", marks=pytest.mark.families)])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    need(request.param)
    with Sandbox((0, 1), limits=LIMITS, level=request.param, require=request.param) as runner:
        yield runner


def pid_of(sandbox: Sandbox, seed: int = 0) -> int:
    return sandbox._workers[seed]._process.pid


def wait_for_the_end(pids: set[int]) -> None:
    until = time.monotonic() + 60
    while any(map(running, pids)):
        assert time.monotonic() < until
        time.sleep(0.01)


def state() -> tuple[set[str], set[int], set[str]]:
    """Returns what a leak would change: open files, processes and temporary directories."""
    gc.collect()
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    files = {os.readlink(link) for link in links if os.path.lexists(link)}
    return files, descendants(os.getpid()), set(os.listdir(tempfile.gettempdir()))


@pytest.fixture
def own_directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes a directory for temporary files that no other process uses."""
    with tempfile.TemporaryDirectory(prefix="own-") as name:
        os.chmod(name, 0o711)  # programs may run as another user
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield


# -- nothing is shared -------------------------------------------------------------------------------------

LOOK = """
import builtins, gc, io, json, locale, math, os, random, signal, string, sys, threading
print(len.__name__, builtins.print is print, hasattr(builtins, "planted"), hasattr(os, "planted"))
print(json.dumps([1]), math.pi, string.digits, "planted" in sys.modules, sorted(globals()))
print(os.getcwd(), os.listdir(), os.listdir("..") if CAN_LIST else "")
print(os.umask(0o22), sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold(), sys.getswitchinterval())
print([signal.getsignal(n) for n in (15, 17)], signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(dict(os.environ), sys.argv, threading.active_count())
print(len(sys.path), sys.flags.hash_randomization, hash("a"), sys.stdin.read())
"""

SPOIL = """
import builtins, gc, json, math, os, random, resource, signal, string, sys
builtins.len = builtins.print = lambda *a: 0
builtins.planted = os.planted = True
sys.modules["planted"] = sys
json.dumps = lambda value: "spoilt"
math.pi, string.digits = 3, "none"
os.environ["PLANTED"] = "1"
os.umask(0o777)
sys.setrecursionlimit(50)
gc.disable(); gc.set_threshold(1)
sys.setswitchinterval(1)
for number in (signal.SIGTERM, signal.SIGCHLD): signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
open("planted.py", "w").close(); open("sitecustomize.py", "w").close()
os.mkdir("d"); os.chdir("d")
try: open("/tmp/trace-planted", "w").close(); os.unlink("/tmp/trace-planted")
except OSError: pass
for _ in range(1000): random.random()
sys.stdin.read(1)
sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()
sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)
class Forever:
    def __del__(self): builtins.kept = self
forever = Forever()
os.closerange(0, 3)
"""


def test_what_a_program_does_the_next_does_not_see(sandbox: Sandbox) -> None:
    look = f"CAN_LIST = {sandbox.level == 'namespaces'}\n{LOOK}"
    before = sandbox.run(look, "input")
    assert before.status == "ok", before.stderr
    first, *_, last = before.stdout.splitlines()
    assert first == "len True False False" and last.endswith("input")
    for _ in range(2):
        assert sandbox.run(SPOIL, "input").status in ("ok", "error")
        assert sandbox.run(look, "input").stdout == before.stdout


def test_programs_start_alike_but_for_their_random_numbers(sandbox: Sandbox) -> None:
    """Checks that each program gets its own random seed from the machine, and imports modules anew."""
    program = "import sys; print(sorted(sys.modules), len(dir()), [hash(c) for c in 'abc']); import colorsys"
    assert len({sandbox.run(program).stdout for _ in range(3)}) == 1
    program = "import os, random; print(random.random(), os.urandom(4))"
    assert len({sandbox.run(program).stdout for _ in range(4)}) == 4


@pytest.mark.launch
@pytest.mark.sample
def test_limits_hold_for_each_program_anew() -> None:
    """Checks that processor time, files and memory of one program do not count against the next."""
    with Sandbox(limits=Limits(cpu_seconds=1, wall_seconds=60.0)) as tight:
        busy = "import time\nwhile time.process_time() < 0.6: pass\nopen('x', 'w')\nx = bytearray(10**7)"
        results = [tight.run(busy) for _ in range(2)]
    assert [(result.status, result.stderr) for result in results] == [("ok", "")] * 2


# -- workers that die --------------------------------------------------------------------------------------


def test_a_killed_worker_is_replaced(sandbox: Sandbox) -> None:
    sandbox.run("")
    pid = pid_of(sandbox)
    os.kill(pid, signal.SIGKILL)
    assert sandbox.run("print(1)").stdout == "1\n"
    assert pid_of(sandbox) != pid
    assert not os.path.exists(f"/proc/{pid}")  # its parent waited for it


def test_a_worker_that_dies_before_it_begins(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the program runs on another worker. If that worker dies too, an error is raised."""
    real, deaths = Worker.submit, 0

    def submit(worker: Worker, caps: Caps, files: list[int]) -> None:
        nonlocal deaths
        if deaths:
            os.kill(worker._process.pid, signal.SIGSTOP)
        real(worker, caps, files)
        if deaths:
            deaths -= 1
            os.kill(worker._process.pid, signal.SIGKILL)

    monkeypatch.setattr(Worker, "submit", submit)
    sandbox.run("")
    deaths = 1
    assert sandbox.run("print(1)").stdout == "1\n" and deaths == 0
    deaths = 2
    with pytest.raises(SandboxError, match="died before it could run a program"):
        sandbox.run("print(1)")
    assert sandbox.run("print(1)").stdout == "1\n"


def test_a_worker_killed_under_a_program(sandbox: Sandbox) -> None:
    sandbox.run("")
    pid = pid_of(sandbox)

    def strike() -> None:
        while not (below := descendants(pid)) or len(below) < 2:
            time.sleep(0.01)
        struck.update(below)
        os.kill(pid, signal.SIGKILL)

    struck: set[int] = set()
    thread = threading.Thread(target=strike)
    thread.start()
    result = sandbox.run("print('here', flush=True)\nwhile True: pass")
    thread.join()
    assert result.status == "killed" and result.stdout in ("", "here\n")
    assert len(struck) == 2 and sandbox.run("print(2)").stdout == "2\n"
    wait_for_the_end(struck)


def test_a_stopped_worker_is_given_up(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that a worker that no longer answers is killed soon after the program's time is over."""
    monkeypatch.setattr(execution, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(worker, "END_SECONDS", 0.2)
    with Sandbox(limits=Limits(wall_seconds=0.3), level=sandbox.level, require=sandbox.level) as one:
        one.run("")
        os.kill(pid_of(one), signal.SIGSTOP)
        assert one.run("print(1)").status == "timeout"
        assert one.run("print(2)").stdout == "2\n"


def test_an_interrupt_ends_the_programs(sandbox: Sandbox) -> None:
    """Checks that Ctrl-C leaves no process, even of a program that cleared its parent's signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = (
        "import ctypes, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); print(1, flush=True); time.sleep(60)"
    )
    sandbox.run_many([Job("", hash_seed=seed) for seed in (0, 1)])
    struck: set[int] = set()

    def strike() -> None:
        while len(below := descendants(pid_of(sandbox)) | descendants(pid_of(sandbox, 1))) < 4:
            time.sleep(0.01)
        time.sleep(0.3)  # the program's first call, whose success does not matter
        struck.update(below, {pid_of(sandbox), pid_of(sandbox, 1)})
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=strike)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run_many([Job(program, hash_seed=seed) for seed in (0, 1)])
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    wait_for_the_end(struck)
    assert sandbox.run("print(3)").stdout == "3\n"


def test_an_interrupt_right_after_a_program_s_begin_leaves_no_program(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks that the next program runs: its text would be the word that ends the one before."""
    sandbox.run("")
    submit = Worker.submit

    def submit_and_interrupt(worker: Worker, caps: Caps, files: list[int]) -> None:
        submit(worker, caps, files)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Worker, "submit", submit_and_interrupt)
        sandbox.run("import time; time.sleep(60)")
    result = sandbox.run("print(1)")
    assert (result.status, result.stdout) == ("ok", "1\n")


class ScriptedWorker:
    """A worker that answers with given words, each at its time in seconds."""

    level = "limits"
    is_free = True

    def __init__(self, script: list[tuple[float, str]]) -> None:
        self.script = script
        self.ended: list[str] = []
        self._here, self._there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def submit(self, caps: Caps, files: list[int]) -> None:
        for delay, word in self.script:
            if delay:
                threading.Timer(delay, self._there.send, [word.encode()]).start()
            else:  # at once, however busy the machine is
                self._there.send(word.encode())

    def fileno(self) -> int:
        return self._here.fileno()

    def reply(self) -> tuple[str, str]:
        word, _, detail = self._here.recv(100).decode().partition(" ")
        return word, detail

    def begun(self) -> bool:
        return True

    def stop(self) -> None:
        self.ended.append("stop")

    def kill(self) -> None:
        self.ended.append("kill")


@pytest.mark.launch
@pytest.mark.sample
def test_removal_of_files_is_on_no_program_s_clock_and_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks 0.5 s of removal after a program with 0.2 s: it is neither a timeout nor the program's time."""

    def run(script: list[tuple[float, str]]) -> tuple[Result, list[str]]:
        scripted = ScriptedWorker(script)
        one = execution.Execution(cast(Worker, scripted), "", "", Limits(wall_seconds=0.2))
        execution.wait([one])
        return one.result(), scripted.ended

    result, ended = run([(0.0, "ended 0 0.01"), (0.5, "clean")])
    assert (result.status, ended) == ("ok", []) and result.seconds < 0.5
    monkeypatch.setattr(execution, "SWEEP_SECONDS", 0.1)
    result, ended = run([(0.0, "ended 0 0.01")])
    assert (result.status, ended) == ("ok", ["kill"])


def test_nested_folders_and_a_flood_of_files_go_away() -> None:
    """Checks at the level without a limit of files that the next program finds none."""
    need("limits")
    nested = "import os\nfor _ in range(300):\n    os.mkdir('d')\n    os.chdir('d')\n"
    flood = "for number in range(300): open(str(number), 'w').close()"
    patient = Limits(cpu_seconds=60, wall_seconds=60.0)
    with Sandbox(limits=patient, level="limits", require="limits") as one:
        for program in (nested, flood):
            assert one.run(program).status == "ok"
            assert one.run("import os; print(os.listdir())").stdout == "[]\n"


@pytest.mark.usefixtures("own_directory")
def test_nothing_is_left_open(sandbox: Sandbox) -> None:
    """Checks that nothing is left by a closed sandbox, by an unreferenced one, or by any kind of program."""
    level, before = sandbox.level, state()
    with Sandbox((0, 1), limits=LIMITS, level=level, require=level) as closed:
        closed.run_many([Job("print(1)", "", 0), Job("1 / 0", "x" * 10**6, 1), Job("import os; os.abort()")])
        during = state()
        assert len(during[1] - before[1]) == 2
        for _ in range(20):
            closed.run("print('x' * 10**6)")
        assert state() == during
    assert state() == before
    forgotten = Sandbox(limits=LIMITS, level=level, require=level)
    forgotten.run("")
    del forgotten
    assert state() == before
    closed.close()
    assert closed.run("print('again')").stdout == "again\n"
    closed.close()
    assert state() == before


def test_side_by_side_under_two_seeds(sandbox: Sandbox) -> None:
    sandbox.run_many([Job("", hash_seed=seed) for seed in (0, 1)])
    begun = time.perf_counter()
    results = sandbox.run_many(
        [Job("import time; time.sleep(0.3); print(1)", hash_seed=seed) for seed in (0, 1)]
    )
    assert time.perf_counter() - begun < sum(result.seconds for result in results)
    assert [result.stdout for result in results] == ["1\n", "1\n"]


def test_closing_waits_for_the_run_of_another_thread(sandbox: Sandbox) -> None:
    """Environments share a sandbox, and one may be closed while another one makes its program."""
    sandbox.close()
    outputs: list[str] = []
    program = "import time; time.sleep(0.3); print(1)"
    thread = threading.Thread(target=lambda: outputs.append(sandbox.run(program).stdout))
    thread.start()
    while not sandbox._workers:
        time.sleep(0.01)
    sandbox.close()
    thread.join()
    assert outputs == ["1\n"] and not sandbox._workers


def test_a_forked_process_starts_its_own(sandbox: Sandbox) -> None:
    """Checks that a forked process has its own worker, and that the parent's worker outlives the fork."""
    sandbox.run("")
    pid = pid_of(sandbox)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            stdout = sandbox.run("print('in the child')").stdout
            os.write(write, f"{pid_of(sandbox)} {stdout}".encode())
            sandbox.close()
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read) as file:
        theirs, _, stdout = file.read().partition(" ")
    assert stdout == "in the child\n" and int(theirs) != pid and not os.path.exists(f"/proc/{theirs}")
    assert pid_of(sandbox) == pid and sandbox.run("print('still')").stdout == "still\n"


HOST = """
import os, sys, time
from trace_gym.sandbox import Sandbox
sandbox = Sandbox(level={level!r}, require={level!r})
sandbox.run("")
if {fork}:
    if os.fork() == 0:
        time.sleep(60)  # a process that inherited everything lives on
base = sandbox.run("import os; print(os.path.dirname(os.getcwd()))").stdout.strip()
print(sandbox._workers[0]._process.pid, base, flush=True)
{then}
"""


RUNS = "sandbox.run('while True: pass')"


@pytest.mark.launch
@pytest.mark.parametrize(
    ("then", "fork"),
    [(RUNS, False), (RUNS, True), ("sys.exit()", False)],
    ids=["killed", "killed, a fork lives on", "exit"],
)
def test_workers_end_with_their_host(sandbox: Sandbox, then: str, fork: bool) -> None:
    program = HOST.format(level=sandbox.level, then=then, fork=fork)
    host = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
        cwd=Path(__file__).parents[3], start_new_session=True,
    )  # fmt: skip
    try:
        assert host.stdout is not None
        pid, base = host.stdout.readline().split()
        worker = int(pid)
        ours = {worker}
        if "while" in then:
            until = time.monotonic() + 60
            while len(ours) < 3 and time.monotonic() < until:
                ours |= descendants(worker)
                time.sleep(0.01)
            assert len(ours) == 3  # worker, keeper, program
            host.kill()
        host.wait(60)
        wait_for_the_end(ours)
        assert base == "/" or not os.path.exists(base)
    finally:
        os.killpg(host.pid, signal.SIGKILL) if fork else host.kill()
        host.communicate()
