"""Tests of single parts of the jail."""

from __future__ import annotations

import errno
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from task_gym.errors import SandboxError
from trace_gym.sandbox import interpreter, users
from trace_gym.sandbox.jail import filter, kernel
from trace_gym.sandbox.jail.sweep_files import empty
from trace_gym.sandbox.jail.wire import Caps, Setting

# -- the filter --------------------------------------------------------------------------------------------

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, ENOTTY = (0x50000 | code for code in (errno.EPERM, errno.ENOSYS, errno.ENOTTY))
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}
PID = 1234


def verdict(instructions: bytes, arch: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Returns the kernel's decision: runs the instructions of packet filters that these filters use."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, arch, 0, *[value & (2**64 - 1) for value in padded])
    code = [struct.unpack_from("=HBBI", instructions, at) for at in range(0, len(instructions), 8)]
    at, accumulator = 0, 0
    while True:
        operation, true, false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += true if accumulator == value else false
            case 0x25:
                at += true if accumulator > value else false
            case 0x45:
                at += true if accumulator & value else false
            case 0x06:
                return value
            case _:
                raise AssertionError(operation)


@pytest.fixture(params=ARCHITECTURES)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(kernel, "machine", lambda: request.param)
    return request.param


def judge(machine: str, name: tuple[int | None, int | None], *arguments: int) -> int | None:
    number = name[machine != "x86_64"]
    if number is None:
        return None
    return verdict(filter.Filter().instructions(PID), ARCHITECTURES[machine], number, arguments)


def test_what_is_refused_is_refused_on_every_machine(machine: str) -> None:
    for name, numbers in filter._REFUSED.items():
        assert judge(machine, numbers) in (EPERM, None), name
    for name, numbers in filter._UNKNOWN.items():
        assert judge(machine, numbers) == ENOSYS, name


def test_what_programs_need_is_allowed(machine: str) -> None:
    """Checks reading, writing, memory, locks, the clock, random bytes, directories and the exit."""
    read, write, close, mmap, futex, getcwd = (0, 63), (1, 64), (3, 57), (9, 222), (202, 98), (79, 17)
    clock, random, mkdirat, unlinkat, exit_group = (228, 113), (318, 278), (258, 34), (263, 35), (231, 94)
    for numbers in (read, write, close, mmap, futex, getcwd, clock, random, mkdirat, unlinkat, exit_group):
        assert judge(machine, numbers) == ALLOW


CLONE, KILL_CALL, TGKILL, PRLIMIT, SENDTO = (56, 220), (62, 129), (234, 131), (302, 261), (44, 206)
SOCKETPAIR, IOCTL, FCNTL, OPENAT, OPEN = (53, 199), (16, 29), (72, 25), (257, 56), (2, None)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (CLONE, (0x11,), EPERM),  # a fork: SIGCHLD and nothing else
        (CLONE, (0x3D0F00,), ALLOW),  # as the C library starts a thread
        (CLONE, (0x10000011,), EPERM),  # in a new user namespace
        (CLONE, (0x4111,), EPERM),  # as posix_spawn does
        (KILL_CALL, (PID, 9), ALLOW),
        (KILL_CALL, (0, 9), ALLOW),  # its own process group, which has no other process
        (KILL_CALL, (-1, 9), EPERM),
        (KILL_CALL, (-PID, 9), EPERM),
        (KILL_CALL, (PID + 1, 0), EPERM),
        (KILL_CALL, (1, 0), EPERM),
        (TGKILL, (PID, 77, 6), ALLOW),
        (TGKILL, (1, 1, 9), EPERM),
        (PRLIMIT, (0, 7), ALLOW),
        (PRLIMIT, (PID, 7), ALLOW),
        (PRLIMIT, (1, 7), EPERM),
        (SENDTO, (3, 0x7FFF0000, 5, 0, 0, 0), ALLOW),
        (SENDTO, (3, 0x7FFF0000, 5, 0, 0x7FFF00000000, 16), EPERM),  # an address, its lower half zero
        (SENDTO, (3, 0x7FFF0000, 5, 0, 0x10, 16), EPERM),
        (SOCKETPAIR, (1, 1, 0), ALLOW),
        (SOCKETPAIR, (30, 1, 0), EPERM),  # TIPC
        (IOCTL, (0, 0x5401), ALLOW),  # is it a terminal
        (IOCTL, (0, 0x5412), ENOTTY),  # type into one
        (IOCTL, (0, 0x40086602), ENOTTY),  # a file's flags
        (FCNTL, (0, 3), ALLOW),
        (FCNTL, (0, 8, 1), EPERM),  # F_SETOWN
        (FCNTL, (0, 10, 9), EPERM),  # F_SETSIG
        (OPENAT, (-100, 0x1000, 0o0), ALLOW),
        (OPENAT, (-100, 0x1000, 0o1101, 0o644), ALLOW),  # as open(name, "w") does
        (OPENAT, (-100, 0x1000, 0o1000), EPERM),
        (OPEN, (0x1000, 0o1002), ALLOW),
        (OPEN, (0x1000, 0o1000), EPERM),
    ],
)
def test_what_depends_on_the_arguments(
    machine: str, name: tuple[int, int | None], arguments: tuple[int, ...], expected: int
) -> None:
    assert judge(machine, name, *arguments) in (expected, None if name[1] is None else expected)


def test_other_numberings_and_newer_calls(machine: str) -> None:
    instructions = filter.Filter().instructions(PID)
    arch = ARCHITECTURES[machine]
    for number in (449, 452, 467, 10_000, 0x40000000 | 39, 2**31 - 1):  # x32 has bit 30
        assert verdict(instructions, arch, number) == ENOSYS
    i386, arm = 0x40000003, 0x40000028
    for other in {i386, arm, *ARCHITECTURES.values()} - {arch}:
        assert verdict(instructions, other, 39) == KILL


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 1000), st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_every_call_gets_a_verdict(number: int, arguments: list[int]) -> None:
    """Checks that every call has a verdict, and that calls on the refused list fail with any arguments."""
    if kernel.table() is None:
        pytest.skip("no filter on this machine")
    instructions = filter.Filter().instructions(PID)
    given_verdict = verdict(instructions, ARCHITECTURES[kernel.machine()], number, tuple(arguments))
    assert given_verdict in (ALLOW, EPERM, ENOSYS, ENOTTY)
    if number in {numbers[kernel.table() or 0] for numbers in filter._REFUSED.values()}:
        assert given_verdict == EPERM


@pytest.mark.parametrize("name", ["i686", "ppc64le", "s390x"])
def test_a_machine_without_a_table_is_told_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(kernel, "machine", lambda: name)
    with pytest.raises(OSError, match=f"no table of system calls for the machine '{name}'"):
        filter.Filter()


HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("column", HEADERS)
def test_numbers_are_those_of_the_kernel_s_headers(column: int) -> None:
    if not HEADERS[column].exists():
        pytest.skip(f"there is no {HEADERS[column]}")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[column].read_text())
    theirs = {name: int(number) for name, number in found}
    ours = {
        **filter._REFUSED, **filter._UNKNOWN, **kernel._NUMBERS, "clone": CLONE, "kill": KILL_CALL,
        "tgkill": TGKILL, "prlimit64": PRLIMIT, "sendto": SENDTO, "socketpair": SOCKETPAIR, "ioctl": IOCTL,
        "fcntl": FCNTL, "openat": OPENAT, "open": OPEN,
    }  # fmt: skip
    for name, numbers in ours.items():
        assert theirs.get(name) == numbers[column], name


# -- files -------------------------------------------------------------------------------------------------


def test_everything_below_is_removed_and_nothing_else(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    inside.mkdir()
    (inside / "file").touch()
    (inside / "link").symlink_to(outside)
    (inside / "dangling").symlink_to("nowhere")
    os.mkfifo(inside / "pipe")
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "link").symlink_to(outside / "kept")
    (inside / "a" / "hard").hardlink_to(outside / "kept")
    (inside / "shut").mkdir()
    (inside / "shut" / "within").mkdir(mode=0)
    (inside / "shut").chmod(0)
    here = os.getcwd()
    os.chdir(inside)
    for _ in range(60):  # 6,000 letters
        os.mkdir("deep" * 25)
        os.chdir("deep" * 25)
    Path("bottom").touch()
    os.chdir(here)
    empty(str(inside))
    assert os.listdir(inside) == [] and os.listdir(outside) == ["kept"]
    empty(str(inside))
    with pytest.raises(OSError):
        (tmp_path / "link").symlink_to(outside)
        empty(str(tmp_path / "link"))
    assert os.listdir(outside) == ["kept"]


tree = st.recursive(
    st.none(), lambda below: st.dictionaries(st.text("ab ./-ü", min_size=1, max_size=3), below, max_size=4)
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(tree)
def test_any_tree_is_removed(content: object) -> None:
    def make(path: str, content: object) -> None:
        if not isinstance(content, dict):
            Path(path).touch()
            return
        os.mkdir(path)
        for name, below in content.items():
            if "/" not in name and name not in (".", ".."):
                make(os.path.join(path, name), below)

    with tempfile.TemporaryDirectory() as directory:
        make(os.path.join(directory, "tree"), content)
        empty(directory)
        assert os.listdir(directory) == []


# -- the interpreter, users and messages -------------------------------------------------------------------


def test_the_survey_finds_what_the_interpreter_needs() -> None:
    found = interpreter.survey()
    assert os.path.dirname(os.__file__) in found["roots"]
    assert not any("site-packages" in path for path in [*found["roots"], *found["files"]])
    for path, real in [*found["roots"].items(), *found["files"].items()]:
        assert os.path.isabs(path) and os.path.exists(real) and os.path.realpath(real) == real
    assert any(Path(path).name.startswith("libc.") for path in found["files"])


def test_the_worker_imports_the_standard_library_alone() -> None:
    """Checks that the jail imports neither the project nor slow modules, which would slow every program."""
    path = str(interpreter.JAIL.parent)
    code = f"import sys; sys.path.insert(0, {path!r}); import jail.worker; print(*sys.modules)"
    command = [interpreter.executable(), *interpreter.FLAGS, "-c", code]
    loaded = subprocess.run(command, env={}, capture_output=True, encoding="utf-8", check=True).stdout.split()
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "__main__", "jail"}
    assert not {"typing", "collections", "re", "enum", "socket", "signal"} & set(loaded)


def test_user_ids_are_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {int(line.split(":")[2]) for line in Path("/etc/passwd").read_text().splitlines()}
    for ids, lowest in (
        ("0 0 4294967295", 0x70000000),
        ("0 100000 65536", 50_000),
        ("0 1 1\n1 9 99999", 50_000),
    ):
        monkeypatch.setattr(users, "_own_ids", lambda ids=ids: ids)
        found = [users.stranger(pid) for pid in (1, 2, 4711, 4_194_303)]
        assert min(found) > lowest and taken.isdisjoint(found) and len(set(found)) == 4
    monkeypatch.setattr(users, "_own_ids", lambda: "0 1000 1")
    with pytest.raises(SandboxError, match="no user id is to be had for programs"):
        users.stranger(1)


def test_messages_arrive_as_they_left() -> None:
    setting = Setting("landlock", {"/a": "/b"}, {"/c ü": "/d"}, "/tmp/x", None)
    assert vars(Setting.unpack(setting.pack())) == vars(setting)
    caps = Caps(1, 2**40, 3, None, 5)
    assert vars(Caps.unpack(caps.pack())) == vars(caps)
