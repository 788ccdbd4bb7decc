"""Tests of programs that try what is forbidden, at both levels, on both paths.

Each test checks that the attempt fails inside, and that the machine outside is unchanged. Level "limits"
promises nothing but limits, so the other attempts are not made there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trace_gym.boxes import AS_ROOT, LIMITS, PROTECTS, SHORT, Box, descendants, need
from trace_gym.sandbox import LEVELS, Limits
from trace_gym.sandbox.jail import clocks

pytestmark = pytest.mark.attack

SECRET = "swordfish"


@pytest.fixture(scope="module", params=[f"{level}-{path}" for level in LEVELS for path in ("once", "warm")])
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    level, path = request.param.split("-")
    need(level)
    runner = Box(level, path == "warm")
    runner("")  # the worker is there before any test looks around
    yield runner
    runner.close()


@pytest.fixture
def protected(box: Box) -> Box:
    if box.level != PROTECTS:
        pytest.skip("not promised at this level")
    return box


@pytest.fixture
def separated(box: Box) -> Box:
    """Returns a sandbox whose programs have another user id than the caller."""
    if box.level != PROTECTS and not AS_ROOT:
        pytest.skip("not promised at this level")
    return box


@pytest.fixture(autouse=True)
def nothing_stays(box: Box) -> Iterator[None]:
    """Checks that after every attempt only the warm workers are left, the same as before."""
    before, others = box.workers(), descendants(os.getpid()) - box.workers()
    yield
    assert before <= box.workers()
    assert descendants(os.getpid()) - others == box.workers()


@pytest.fixture
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Makes a directory that is open to every user, so that only the sandbox keeps a program out."""
    with tempfile.TemporaryDirectory(prefix="public-", dir="/tmp") as name:
        os.chmod(name, 0o777)
        (Path(name) / "victim").write_text(SECRET)
        os.chmod(Path(name) / "victim", 0o666)
        yield Path(name)


def attempts(body: str) -> str:
    """Returns a program with ``tried(function, *arguments)``, which prints the error or the result."""
    return f"""\
import ctypes, os, signal, socket, sys, time
def tried(function, *arguments):
    try:
        print("DONE", function(*arguments))
    except Exception as error:
        print(type(error).__name__)
{body}
"""


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.sample
def test_reads_outside(protected: Box, public: Path) -> None:
    home = os.path.expanduser("~")
    paths = [public / "victim", "/etc/passwd", "/etc/hostname", Path(home) / ".bashrc", __file__]
    body = "\n".join(f"tried(lambda: open({str(path)!r}).read())" for path in paths)
    body += "".join(
        f"\ntried(os.listdir, {path!r})" for path in (home, str(public), "/etc", "/home", "/proc")
    )
    result = protected(attempts(body))
    assert result.status == "ok"
    lines = result.stdout.split()
    # At level "namespaces" the path of the standard library and /etc with the index of libraries exist.
    if lines.count("DONE") <= 2:
        inside = protected("import os; print(sorted(os.listdir('/etc')))").stdout
        assert inside in ("['ld.so.cache']\n", "")
        lines = [line for line in lines if line.endswith("Error")]
    assert SECRET not in result.stdout and "DONE" not in lines
    assert set(lines) <= {"PermissionError", "FileNotFoundError"}


@pytest.mark.sample
def test_packages_and_the_project_cannot_be_imported(box: Box) -> None:
    result = box(
        attempts("for name in ('pytest', 'numpy', 'trace_gym', 'task_gym', 'jail'): tried(__import__, name)")
    )
    assert result.stdout.split() == ["ModuleNotFoundError"] * 5


def test_files_of_installed_packages_cannot_be_read(protected: Box) -> None:
    result = protected(
        "import os\n"
        "root, looked = os.path.dirname(os.__file__), 0\n"
        "for name in ('site-packages', 'dist-packages'):\n"
        "    for folder, _, files in os.walk(f'{root}/{name}'):\n"
        "        for path in [os.path.join(folder, file) for file in files if file.endswith('.py')]:\n"
        "            looked += 1\n"
        "            try:\n"
        "                open(path)\n"
        "                print(path)\n"
        "            except OSError:\n"
        "                pass\n"
        "        if looked > 50: break\n"  # there may be tens of thousands
    )
    assert (result.status, result.stdout) == ("ok", "")


@pytest.mark.sample
def test_writes_outside(protected: Box, public: Path) -> None:
    before = (public / "victim").stat()
    body = f"""
victim, new, away = {str(public / "victim")!r}, {str(public / "new")!r}, {str(public / "away")!r}
tried(open, victim, "w")
tried(open, victim, "r+")
tried(open, new, "w")
tried(os.open, victim, os.O_RDONLY | os.O_TRUNC)
tried(os.truncate, victim, 0)
tried(os.unlink, victim)
tried(os.rename, victim, away)
tried(os.link, victim, "linked")
tried(os.mkdir, new)
tried(os.symlink, victim, new)
tried(os.chmod, victim, 0)
tried(os.utime, victim, (0, 0))
tried(os.rmdir, {str(public)!r})
tried(open, os.path.join(os.path.dirname(os.__file__), "planted.py"), "w")
tried(os.utime, os.__file__, (0, 0))
for directory in ("/", "/dev", "/dev/shm", "/etc", "/lib", "/var/tmp"):
    tried(open, os.path.join(directory, "planted"), "w")
"""
    result = protected(attempts(body))
    assert result.status == "ok" and len(result.stdout.split()) == 21
    assert set(result.stdout.split()) <= {"PermissionError", "FileNotFoundError", "OSError"}
    assert os.listdir(public) == ["victim"] and (public / "victim").read_text() == SECRET
    after = (public / "victim").stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)
    for planted in (os.path.join(os.path.dirname(os.__file__), "planted.py"), "/planted", "/dev/shm/planted"):
        assert not os.path.exists(planted)


def test_changes_files_that_belong_to_the_caller(separated: Box, tmp_path: Path) -> None:
    """Checks that the caller's files are safe. Weaker levels promise it only if root is the caller."""
    victim = tmp_path / "victim"
    victim.write_text(SECRET)
    result = separated(
        attempts(f"tried(open, {str(victim)!r}, 'a')\ntried(os.chmod, {str(victim)!r}, 0o777)")
    )
    assert set(result.stdout.split()) <= {"PermissionError", "FileNotFoundError"}
    assert victim.read_text() == SECRET and victim.stat().st_mode & 0o777 != 0o777


def test_links_lead_nowhere(box: Box, public: Path) -> None:
    """Checks that neither the program nor the clean-up after it follows a link to the outside."""
    result = box(
        attempts(
            f"os.symlink({str(public)!r}, 'out')\n"
            "os.mkdir('d')\n"
            f"os.symlink({str(public / 'victim')!r}, 'd/out')\n"
            + ("tried(lambda: open('out/victim', 'w').write('x'))\n" if box.level == PROTECTS else "")
        )
    )
    assert result.status == "ok" and "DONE" not in result.stdout
    assert (public / "victim").read_text() == SECRET
    assert box("import os; print(os.listdir())").stdout == "[]\n"


def test_the_working_directory_is_empty_and_goes_away(box: Box) -> None:
    """Checks that directories are removed that nobody may read, or that are too deep for one path."""
    program = (
        "import os\n"
        "print(os.listdir(), os.path.exists('left'))\n"
        "open('left', 'w').write('x')\n"
        "os.mkdir('shut', 0)\n"
        "for _ in range(50):\n"
        "    os.mkdir('deep' * 50)\n"
        "    os.chdir('deep' * 50)\n"
        "open('bottom', 'w').close()\n"
    )
    for _ in range(2):
        result = box(program)
        assert (result.status, result.stdout, result.stderr) == ("ok", "[] False\n", "")


def test_has_two_devices_and_leaves_no_directory_on_the_machine(box: Box) -> None:
    """Checks /dev/null and /dev/urandom, which programs need."""
    result = box(
        "print(open('/dev/null', 'w').write('x'), open('/dev/null').read() == '')\n"
        "print(len(open('/dev/urandom', 'rb').read(8)))"
    )
    assert result.stdout == "1 True\n8\n"
    result = box("import os; print(os.getcwd()); os.makedirs('a/b')")
    cwd = Path(result.stdout.strip())
    if box.level == PROTECTS:
        assert cwd == Path("/program")
    elif box.warm:
        assert os.listdir(cwd.parent) == []
    else:
        assert not cwd.parent.exists()


def test_fills_the_disk(box: Box) -> None:
    """Checks also that a program has at most 1,024 files and folders, so that their removal takes no time."""
    one = box("file = open('big', 'wb')\nwhile True: file.write(bytes(65536))")
    assert one.status == "error" and "OSError" in one.stderr
    many = "n = 0\nwhile True:\n    open(str(n), 'wb').write(bytes(65536))\n    n += 1\n"
    nested = "import os\nfor _ in range(2500):\n    os.mkdir('d')\n    os.chdir('d')\n"
    flood = "for number in range(2500): open(str(number), 'w').close()"
    for program in (many, nested, flood) if box.level == PROTECTS else ():
        result = box(program)
        assert result.status == "error" and "No space left on device" in result.stderr


# -- the environment, and open files -----------------------------------------------------------------------


@pytest.mark.sample
def test_reads_the_environment(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    result = box(
        "import ctypes, os, posix\n"
        "print(dict(os.environ), posix.environ)\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.getenv.restype = ctypes.c_char_p\n"
        "print(libc.getenv(b'API_TOKEN'), libc.getenv(b'HOME'), libc.getenv(b'PATH'))\n"
        "try: print(SECRET in open('/proc/self/environ').read())\n"
        "except (OSError, NameError): print('no')\n"
    )
    assert result.status == "ok" and SECRET not in result.stdout
    assert result.stdout.splitlines()[0] == "{'PYTHONHASHSEED': '0'} {b'PYTHONHASHSEED': b'0'}"
    assert result.stdout.splitlines()[1] == "None None None"


def test_uses_inherited_file_descriptors(box: Box, tmp_path: Path) -> None:
    """Checks that a program has only its three streams, although its caller has an inheritable open file."""
    (tmp_path / "secret").write_text(SECRET)
    file = os.open(tmp_path / "secret", os.O_RDWR)
    os.set_inheritable(file, True)
    try:
        result = box(
            "import os\n"
            "found = []\n"
            "for file in range(3, 4096):\n"
            "    try: found.append((file, os.fstat(file), os.pread(file, 100, 0)))\n"
            "    except OSError: pass\n"
            "print(found)\n"
        )
        assert (result.status, result.stdout) == ("ok", "[]\n")
        assert (tmp_path / "secret").read_text() == SECRET
    finally:
        os.close(file)


def test_writes_into_its_own_standard_input(box: Box) -> None:
    """Checks that a program cannot change its input, for itself or for the next program."""
    program = attempts("tried(os.write, 0, b'xxxx')\ntried(os.ftruncate, 0, 1)\nprint(input())")
    for _ in range(2):
        result = box(program, "given\n")
        assert result.stdout.split() == ["PermissionError", "PermissionError", "given"]


# -- other processes ---------------------------------------------------------------------------------------


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Starts a process of the caller, with a secret in its environment."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, env={"TOKEN": SECRET}
    )
    yield process
    assert process.poll() is None  # nobody ended it
    process.kill()
    process.communicate()


def test_looks_into_traces_or_slows_other_processes(
    separated: Box, bystander: subprocess.Popen[bytes]
) -> None:
    before = os.getpriority(os.PRIO_PROCESS, bystander.pid)
    body = f"""
import resource
libc = ctypes.CDLL(None, use_errno=True)
for pid in {[bystander.pid, os.getpid(), *separated.workers()]} + [os.getppid(), 1]:
    for name in ("environ", "mem", "maps"):
        tried(lambda: open(f"/proc/{{pid}}/{{name}}", "rb").read(10))
    for name in ("cwd", "fd/0"):
        tried(os.readlink, f"/proc/{{pid}}/{{name}}")
    for request in (16, 0x4206):  # PTRACE_ATTACH and PTRACE_SEIZE
        print(libc.ptrace(request, ctypes.c_int(pid), ctypes.c_void_p(0), ctypes.c_void_p(0)))
tried(os.setpriority, os.PRIO_PROCESS, {bystander.pid}, 19)
tried(os.sched_setaffinity, {bystander.pid}, {{0}})
tried(resource.prlimit, {bystander.pid}, resource.RLIMIT_NOFILE, (1, 1))
"""
    result = separated(attempts(body))
    assert result.status == "ok" and SECRET not in result.stdout
    printed = result.stdout.split()
    assert printed.count("-1") >= 8
    assert set(printed) - {"-1"} <= {"PermissionError", "FileNotFoundError", "ProcessLookupError"}
    assert "TracerPid:\t0" in Path(f"/proc/{bystander.pid}/status").read_text()
    assert os.getpriority(os.PRIO_PROCESS, bystander.pid) == before
    assert os.sched_getaffinity(bystander.pid) == os.sched_getaffinity(0)


def test_signals_other_processes(separated: Box, bystander: subprocess.Popen[bytes]) -> None:
    got: list[int] = []
    signals = (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, frame: got.append(number)) for number in signals}
    try:
        pids = [bystander.pid, os.getpid(), *separated.workers()]
        body = f"""
for pid in {pids} + [-{os.getpgrp()}, 1, os.getppid()]:
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, 0):
        tried(os.kill, pid, number)
tried(os.killpg, os.getpgid(os.getppid()) if os.getppid() > 1 else 1, signal.SIGKILL)
"""
        result = separated(attempts(body))
        assert result.status == "ok" and "DONE" not in result.stdout
        assert set(result.stdout.split()) <= {"PermissionError", "ProcessLookupError"}
        everybody = separated("import os\ntry: os.kill(-1, 9)\nexcept OSError: print('no')")
        # Under its own user id and without a filter, a program can end only itself.
        assert everybody.status in ("ok", "killed") and (
            everybody.stdout == "no\n" or separated.level != PROTECTS
        )
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert got == []


def test_gains_no_rights(box: Box) -> None:
    body = """
tried(os.setuid, 0)
tried(os.setgid, 0)
tried(os.setgroups, [0])
tried(os.chroot, ".")
tried(os.mknod, "device", 0o60666, os.makedev(8, 0))
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mount(b"none", b".", b"tmpfs", 0, None), libc.unshare(0x10000000 | 0x20000))
import resource
tried(resource.setrlimit, resource.RLIMIT_AS, (1 << 40, 1 << 40))
tried(resource.setrlimit, resource.RLIMIT_NOFILE, (100, 100))
"""
    result = box(attempts(body))
    lines = result.stdout.splitlines()
    refused = {"PermissionError", "ValueError", "OSError"}  # OSError: the id does not exist inside
    if box.level != PROTECTS:
        # A user namespace is allowed there: it gives no rights outside. The other calls are refused.
        lines = [line.replace("-1 0", "-1 -1") for line in lines]
    assert set(lines) <= {*refused, "-1 -1"}, result.stdout


# -- the network -------------------------------------------------------------------------------------------


@pytest.mark.sample
def test_opens_a_socket(protected: Box, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        name = f"\0trace-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(name + "d")
        body = f"""
tried(socket.create_connection, {tcp.getsockname()!r}, 1)
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", {udp.getsockname()!r}))
tried(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))
tried(socket.create_server, ("127.0.0.1", 0))
tried(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)
tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
tried(one.sendto, b"x", {name + "d"!r})
tried(one.connect, {name + "d"!r})
tried(one.sendmsg, [b"x"], [], 0, {name + "d"!r})
one.send(b"to itself it may")
assert two.recv(20) == b"to itself it may"
"""
        result = protected(attempts(body))
        assert result.status == "ok", result.stderr
        assert set(result.stdout.split()) == {"PermissionError"} and len(result.stdout.split()) == 9
        for server in (tcp, udp, abstract, datagrams):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept() if server in (tcp, abstract) else server.recv(10)


# -- processes ---------------------------------------------------------------------------------------------


def test_forks_without_end(box: Box) -> None:
    before = len(os.listdir("/proc"))
    result = box("import os\nwhile True: os.fork()", limits=SHORT)
    if box.level == PROTECTS:
        assert result.status == "error" and "PermissionError" in result.stderr
    else:
        assert result.status in ("error", "timeout")  # the first process ends by itself or is stopped
    # A program that forks on after every failure is stopped, too.
    limits = Limits(cpu_seconds=1, wall_seconds=0.4, processes=6, output=4096)
    result = box("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n", limits=limits)
    assert result.status == "timeout"
    # The caller can start processes again, and the programs' are gone.
    assert subprocess.run([sys.executable, "-S", "-c", ""]).returncode == 0
    assert len(os.listdir("/proc")) < before + 50


def test_starts_threads_without_end(box: Box) -> None:
    program = """
import threading, time
threading.stack_size(32768)
started = 0
try:
    while started < 2000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        started += 1
except RuntimeError:
    pass
print(started)
"""
    result = box(program)
    assert result.status == "ok"
    if AS_ROOT or box.level == PROTECTS:  # else the caller's processes count too
        assert int(result.stdout) == LIMITS.processes - 1  # without the thread that starts them


def test_leaves_children_behind(box: Box, public: Path) -> None:
    """Checks a daemon that forks twice, has its own session and no open files, and ignores signals."""
    program = f"""
import os, signal, sys, time
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            os.closerange(0, 100)
            while True:
                try: open({str(public / "heartbeat")!r}, "a").write("x")
                except OSError: pass
                time.sleep(0.02)
        os._exit(0)
except OSError as error:
    print(type(error).__name__)
    sys.exit()
time.sleep(0.2)
print("forked")
"""
    result = box(program)
    assert result.stdout == ("PermissionError\n" if box.level == PROTECTS else "forked\n")
    heartbeat = public / "heartbeat"
    assert heartbeat.exists() == (box.level != PROTECTS)
    size = heartbeat.stat().st_size if heartbeat.exists() else 0
    time.sleep(0.2)
    assert (heartbeat.stat().st_size if heartbeat.exists() else 0) == size


# -- single calls ------------------------------------------------------------------------------------------

DENIED = "PermissionError"

REFUSED = [
    # Other programs.
    ("subprocess.run(['/bin/sh', '-c', 'echo x'])", DENIED),
    ("os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])", DENIED),
    ("os.posix_spawn('/bin/sh', ['sh'], {})", DENIED),
    ("os.system('echo x') == 0", "False"),
    # Memory that is in no limit of a process: files in memory and shared segments.
    ("os.memfd_create('x')", DENIED),
    ("mmap.mmap(-1, 1 << 20)", DENIED),  # what a shared mapping loses when it shrinks stays, in no limit
    ("libc.shmget(0, 1 << 20, 0o1666)", "-1"),
    ("libc.semget(0, 1, 0o1666)", "-1"),
    ("libc.msgget(0, 0o1666)", "-1"),
    # A pipe has the kernel signal another process.
    *[(f"fcntl.fcntl(read, fcntl.F_SETOWN, {pid})", DENIED) for pid in (os.getpid(), "os.getppid()", 1)],
    ("fcntl.fcntl(read, fcntl.F_SETSIG, signal.SIGKILL)", DENIED),
    *[
        (f"fcntl.ioctl(read, 0x8901, int({pid}).to_bytes(4, 'little'))", "OSError")
        for pid in (os.getpid(), "os.getppid()", 1)
    ],
    # The caller or other programs would wait for a lock on the library. 37 is F_OFD_SETLK, 38 F_OFD_SETLKW.
    *[
        (call.format(file), DENIED)
        for file in ("library", "device", "own")
        for call in (
            "fcntl.flock({}, fcntl.LOCK_SH | fcntl.LOCK_NB)",
            "fcntl.lockf({}, fcntl.LOCK_SH | fcntl.LOCK_NB)",
            "fcntl.fcntl({}, 37, lock)",
            "fcntl.fcntl({}, 38, lock)",
            "fcntl.fcntl({}, fcntl.F_SETLEASE, lock)",
        )
    ],
    # Pages in a pipe outlive their file. Copies of files still work.
    ("os.sendfile(write, library.fileno(), 0, 4096)", DENIED),
    ("os.sendfile(write, own.fileno(), 0, 4096)", DENIED),
    ("os.path.getsize(shutil.copyfile('own', 'copy'))", "65536"),
    # The machine would write its disk. These calls do nothing, even for a file that is not open.
    ("os.fsync(library), os.fdatasync(library), os.fsync(own), os.fsync(1000)", "(None, None, None, None)"),
    ("mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ).flush()", "None"),
    # Facts about the machine.
    ("shutil.disk_usage(os.__file__)", DENIED),
    ("os.statvfs('/')", DENIED),
    ("os.fstatvfs(0)", DENIED),
    ("open('/proc/uptime')", "FileNotFoundError"),
    ("os.getloadavg()", "OSError"),
    # Folders for all.
    *[(f"os.listdir('{path}')", "FileNotFoundError") for path in ("/tmp", "/var/tmp", "/dev/shm", "/run")],
    # A process may change its name (15), and not PDEATHSIG, DUMPABLE, CHILD_SUBREAPER or SECCOMP.
    *[(f"libc.prctl({option}, 0, 0, 0, 0), ctypes.get_errno()", "(-1, 22)") for option in (1, 4, 36, 22)],
    ("libc.prctl(15, b'name', 0, 0, 0)", "0"),
]
"""Expressions, and what a program gets for each: the error's type, or a value."""


@pytest.mark.sample
def test_calls_are_refused(protected: Box) -> None:
    body = f"""
import fcntl, mmap, shutil, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
library, device, own = open(os.__file__, "rb"), open("/dev/null"), open("own", "w+b")
own.write(bytes(65536))
own.flush()
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
read, write = os.pipe()
for code in {[code for code, _ in REFUSED]!r}:
    try:
        print(eval(code))
    except Exception as error:
        print(type(error).__name__)
"""
    printed = protected(attempts(body)).stdout.splitlines()
    assert list(zip([code for code, _ in REFUSED], printed, strict=True)) == REFUSED


# -- endless use -------------------------------------------------------------------------------------------


def test_allocates_without_end(box: Box) -> None:
    held = box(
        "import resource\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(bytearray(b'x') * (1 << 20))\n"
        "finally:\n"
        "    del held\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    assert held.status == "error" and "MemoryError" in held.stderr
    # Less than the limit, because the interpreter's own mappings count as well.
    assert LIMITS.memory / 2 < int(held.stdout) * 1024 < LIMITS.memory
    at_once = box("bytearray(1 << 40)")
    assert at_once.status == "error" and "MemoryError" in at_once.stderr
    private = "mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"
    mapped = box(
        f"import mmap\nheld = []\nwhile True:\n    held.append({private})\n"
        "    held[-1].write(bytes(1 << 20))\n"
    )
    assert mapped.status == "error"


def test_prints_without_end(box: Box) -> None:
    """Checks also a program that goes on writing after its pipe is no longer read."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for stream in ("stdout", "stderr"):
        program = f"import sys\nwhile True: sys.{stream}.write('0123456789' * 1000)"
        result = box(program)
        assert result.status == "output_limit"
        assert getattr(result, stream) == ("0123456789" * 410)[: LIMITS.output]
    result = box("import os\nwhile True:\n    try: os.write(1, b'x' * 65536)\n    except OSError: pass\n")
    assert (result.status, result.stdout) == ("output_limit", "x" * LIMITS.output)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # kilobytes


def test_computes_without_end(box: Box) -> None:
    limits = Limits(cpu_seconds=1, wall_seconds=60.0)
    warned = "" if box.warm else "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)"
    result = box(f"{warned}\nwhile True: pass", limits=limits)
    assert result.status == "timeout" and result.seconds < 30


def test_sleeps_and_ignores_signals(box: Box) -> None:
    program = """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN if number % 2 else lambda *_: None)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
print("deaf", flush=True)
while True: signal.sigwaitinfo(range(1, 65))
"""
    result = box(program, limits=SHORT)
    assert (result.status, result.stdout) == ("timeout", "deaf\n")
    assert SHORT.wall_seconds <= result.seconds < SHORT.wall_seconds + 3


# -- the kernel's memory, timers, locks and facts ----------------------------------------------------------

LIBC = """
libc = ctypes.CDLL(None, use_errno=True)
def called(*arguments):
    ctypes.set_errno(0)
    return libc.syscall(*arguments), ctypes.get_errno()
"""


def test_holds_memory_in_pipes(protected: Box) -> None:
    """Checks that no pipe grows and takes the program's pages, which are then in no limit (64 MiB here)."""
    body = """
import fcntl, mmap
F_SETPIPE_SZ = 1031
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
held, libc = 0, ctypes.CDLL(None)
pages = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
span = Span(ctypes.addressof(ctypes.c_char.from_buffer(pages)), 1 << 20)
for _ in range(8):
    read, write = os.pipe()
    tried(fcntl.fcntl, write, F_SETPIPE_SZ, 1 << 20)
    for _ in range(8):
        os.set_blocking(write, False)
        held += max(0, libc.vmsplice(write, ctypes.byref(span), 1, 2))
read, write = os.pipe()
os.write(write, b"x")
print(held, libc.tee(read, write, 1, 2), fcntl.fcntl(write, 1032))
"""
    result = protected(attempts(body))
    assert result.status == "ok", result.stderr
    # No pipe grew, nothing was pinned, tee failed, and a pipe has its ordinary 16 pages.
    assert result.stdout.splitlines() == ["PermissionError"] * 8 + ["0 -1 65536"]


def test_makes_timers_and_kernel_objects_without_end(protected: Box) -> None:
    """Checks calls that no program needs: they fail as on a kernel without them (38 is ENOSYS)."""
    names = (
        {"timer_create": 222, "io_setup": 206, "modify_ldt": 154, "mq_open": 240, "add_key": 248, "bpf": 321,
         "userfaultfd": 323, "io_uring_setup": 425, "inotify_init1": 294, "sysinfo": 99}
        if os.uname().machine == "x86_64" else
        {"timer_create": 107, "io_setup": 0, "mq_open": 180, "add_key": 217, "bpf": 280, "userfaultfd": 282,
         "io_uring_setup": 425, "inotify_init1": 26, "sysinfo": 179}
    )  # fmt: skip
    body = f"""{LIBC}
space = ctypes.create_string_buffer(4096)
for number in {list(names.values())}:
    print(called(number, 1, space, space, space, 0))
import resource
signals, queues = resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE
print(resource.getrlimit(signals)[1] <= 16, resource.getrlimit(queues)[1])
"""
    result = protected(attempts(body))
    assert result.stdout.splitlines() == ["(-1, 38)"] * len(names) + ["True 0"], result.stderr


def test_reads_for_how_long_the_machine_has_been_up(protected: Box) -> None:
    """Checks that each clock but that of the day began with the program's worker."""
    if not clocks.is_there():
        pytest.skip("a kernel without time namespaces")
    # The clocks, and those whose zero the kernel moves for them: "raw" and "coarse" ones go with the first.
    zeros = {name: time.CLOCK_MONOTONIC for name in (time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, 6)}
    zeros |= {time.CLOCK_BOOTTIME: time.CLOCK_BOOTTIME}
    limits = dataclasses.replace(LIMITS, output=4095)  # so a warm worker begins here, too
    before = {clock: time.clock_gettime(clock) for clock in zeros}
    for _ in range(2):
        program = f"import time\nfor clock in {list(zeros)}: print(time.clock_gettime(clock))"
        values = [float(word) for word in protected(program, limits=limits).stdout.split()]
        after = {clock: time.clock_gettime(clock) for clock in zeros}
        for (clock, zero), value in zip(zeros.items(), values, strict=True):
            # The worker began between "before" and "after", and the program read the clock then, too.
            assert before[clock] - after[zero] - 0.05 <= value <= after[clock] - before[zero] + 0.05


def test_has_its_own_times(protected: Box) -> None:
    """Checks ``os.times``, whose system call tells when the machine started: the C library makes 0 of -1."""
    body = f"""{LIBC}
space = ctypes.create_string_buffer(4096)
print(called({{"x86_64": 100}}.get(os.uname().machine, 153), space))
for _ in range(10**6): pass
import resource
used, times = resource.getrusage(resource.RUSAGE_SELF), os.times()
print(type(times).__name__, len(times), times is not os.times(), times.user >= used.ru_utime > 0)
print(times.children_user, times.children_system, abs(times.elapsed - time.monotonic()) < 5)
"""
    expected = "(-1, 1)\ntimes_result 5 True True\n0.0 0.0 True\n"  # 1 is EPERM
    assert protected(attempts(body)).stdout == expected


def test_calls_by_the_numbers_of_another_table(protected: Box) -> None:
    """Checks x32, whose getpid has bit 30, and i386, whose getpid by ``int 0x80`` is 20."""
    if os.uname().machine != "x86_64":
        pytest.skip("x86-64 alone has them")
    body = f"{LIBC}\nprint(called(0x40000000 | 39), called(0x40000000 | 57))"
    assert protected(attempts(body)).stdout == "(-1, 38) (-1, 38)\n"
    code = "import ctypes, mmap\n"
    code += "page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)\n"
    code += "page.write(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n"
    code += "call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\n"
    result = protected(code + "print('before', flush=True)\nprint(call())")
    assert (result.status, result.stdout) == ("killed", "before\n")
