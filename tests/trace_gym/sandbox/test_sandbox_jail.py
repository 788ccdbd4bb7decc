"""Tests of single parts of the jail."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from task_gym.errors import SandboxError
from trace_gym.sandbox import worker
from trace_gym.sandbox.jail import clocks, filter, kernel
from trace_gym.sandbox.jail.sweep import empty

# -- the filter --------------------------------------------------------------------------------------------

ALLOW, KILL = 0x7FFF0000, 0x80000000
DONE = 0x50000  # an error of number 0: success, and nothing is done
EPERM, EINVAL, ENOMEM, ENOSYS, ENOTTY = (
    0x50000 | code for code in (errno.EPERM, errno.EINVAL, errno.ENOMEM, errno.ENOSYS, errno.ENOTTY)
)
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "riscv64": 0xC00000F3}


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
            case 0x05:
                at += value
            case 0x15:
                at += true if accumulator == value else false
            case 0x35:
                at += true if accumulator >= value else false
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


def judge(machine: str, name: str, *arguments: int) -> int | None:
    """Returns the decision about a call; None if the machine has no such call."""
    numbers = {**filter.ALLOWED, **filter.REFUSED, **filter.JUDGED}[name]
    number = numbers[machine != "x86_64"]
    if number is None:
        return None
    return verdict(filter.make_filter(), ARCHITECTURES[machine], number, arguments)


def test_every_call_has_the_verdict_of_its_table(machine: str) -> None:
    """Checks each number up to 1,000: what is in no table is unknown, as to a kernel without it."""
    instructions, column = filter.make_filter(), int(machine != "x86_64")
    expected = {numbers[column]: ALLOW for numbers in filter.ALLOWED.values()}
    expected |= {numbers[column]: EPERM for numbers in filter.REFUSED.values()}
    judged = {numbers[column] for numbers in filter.JUDGED.values()}
    for number in set(range(1000)) - judged:
        assert verdict(instructions, ARCHITECTURES[machine], number) == expected.get(number, ENOSYS), number
    assert len(instructions) // 8 < 1024  # the kernel takes 4,096


def test_a_call_is_in_one_table_alone() -> None:
    tables = [filter.ALLOWED, filter.REFUSED, filter.JUDGED]
    numbers = [(column, name[column]) for table in tables for name in table.values() for column in (0, 1)]
    known = [pair for pair in numbers if pair[1] is not None]
    assert len(known) == len(set(known))


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x11,), EPERM),  # a fork: SIGCHLD and nothing else
        ("clone", (0x3D0F00,), ALLOW),  # as the GNU C library starts a thread
        ("clone", (0x7D0F00,), ALLOW),  # as musl does
        ("clone", (0x3D0F00 | 0x10000000,), EPERM),  # a thread in a new user namespace
        ("clone", (0x10000011,), EPERM),  # in a new user namespace
        ("clone", (0x4111,), EPERM),  # as posix_spawn does
        ("kill", (2, 9), ALLOW),
        ("kill", (0, 9), ALLOW),  # its own process group, which has no other process
        ("kill", (-1, 9), EPERM),
        ("kill", (-2, 9), EPERM),
        ("kill", (3, 0), EPERM),
        ("kill", (1, 0), EPERM),
        ("tgkill", (2, 77, 6), ALLOW),
        ("tgkill", (1, 1, 9), EPERM),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (2, 7), ALLOW),
        ("prlimit64", (1, 7), EPERM),
        ("prctl", (15,), ALLOW),  # PR_SET_NAME
        ("prctl", (1, 0), EINVAL),  # PR_SET_PDEATHSIG
        ("prctl", (22, 2), EINVAL),  # PR_SET_SECCOMP
        ("sendto", (3, 0x7FFF0000, 5, 0, 0, 0), ALLOW),
        ("sendto", (3, 0x7FFF0000, 5, 0, 0x7FFF00000000, 16), EPERM),  # an address, its lower half zero
        ("sendto", (3, 0x7FFF0000, 5, 0, 0x10, 16), EPERM),
        ("socketpair", (1, 1, 0), ALLOW),
        ("socketpair", (30, 1, 0), EPERM),  # TIPC
        ("ioctl", (0, 0x5401), ALLOW),  # is it a terminal
        ("ioctl", (0, 0x5412), ENOTTY),  # type into one
        ("ioctl", (0, 0x40086602), ENOTTY),  # a file's flags
        ("fcntl", (0, 3), ALLOW),
        ("fcntl", (0, 6), EPERM),  # F_SETLK
        ("fcntl", (0, 7), EPERM),  # F_SETLKW
        ("fcntl", (0, 8, 1), EPERM),  # F_SETOWN
        ("fcntl", (0, 10, 9), EPERM),  # F_SETSIG
        ("fcntl", (0, 37), EPERM),  # F_OFD_SETLK
        ("fcntl", (0, 38), EPERM),  # F_OFD_SETLKW
        ("fcntl", (0, 1024), EPERM),  # F_SETLEASE
        ("fcntl", (0, 1031, 1 << 20), EPERM),  # F_SETPIPE_SZ
        ("fcntl", (0, 1032), ALLOW),  # F_GETPIPE_SZ
        ("futex", (0x1000, 0x189, 0), ALLOW),  # FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME
        ("futex", (0x1000, 0x109, 0), ALLOW),  # the same of a thread's end, which pthread_join waits for
        ("futex", (0x1000, 0x81, 1), ALLOW),  # FUTEX_WAKE_PRIVATE
        ("futex", (0x1000, 1, 1), ENOSYS),  # FUTEX_WAKE, which programs with the same file would hear
        ("futex", (0x1000, 4, 1), ENOSYS),  # FUTEX_CMP_REQUEUE
        ("futex", (0x1000, 0x86, 1), ENOSYS),  # FUTEX_LOCK_PI_PRIVATE
        ("madvise", (0x1000, 4096, 4), ALLOW),  # MADV_DONTNEED
        ("madvise", (0x1000, 4096, 14), EINVAL),  # MADV_HUGEPAGE
        ("madvise", (0x1000, 4096, 21), EINVAL),  # MADV_PAGEOUT
        ("fsync", (3,), DONE),
        ("fdatasync", (3,), DONE),
        ("msync", (0x1000, 4096, 4), DONE),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),  # private and anonymous
        ("mmap", (0, 4096, 1, 1), ALLOW),  # a file, shared
        ("mmap", (0, 4096, 3, 0x21), EPERM),  # shared and anonymous
        ("mmap", (0, 4096, 3, 0x23), EPERM),  # MAP_SHARED_VALIDATE
        ("mmap", (0, 1 << 21, 3, 0x40022), ENOMEM),  # MAP_HUGETLB
    ],
)
def test_what_depends_on_the_arguments(
    machine: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert judge(machine, name, *arguments) == expected


def test_other_numberings_and_newer_calls(machine: str) -> None:
    instructions, arch = filter.make_filter(), ARCHITECTURES[machine]
    for number in (449, 452, 467, 10_000, 0x40000000, 0x40000000 | 39, 2**31 - 1):  # x32 has bit 30
        assert verdict(instructions, arch, number) == ENOSYS
    i386, arm = 0x40000003, 0x40000028
    for other in {i386, arm, *ARCHITECTURES.values()} - {arch}:
        assert verdict(instructions, other, 39) == KILL


@pytest.mark.parametrize("name", ["i686", "ppc64le", "s390x"])
def test_a_machine_without_a_table_is_told_so(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(kernel, "machine", lambda: name)
    with pytest.raises(OSError, match=f"no table of system calls for the machine '{name}'"):
        filter.make_filter()


HEADERS = {
    0: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    1: Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("column", HEADERS)
def test_numbers_are_those_of_the_kernel_s_headers(column: int) -> None:
    if not HEADERS[column].exists():
        pytest.skip(f"there is no {HEADERS[column]}")
    pairs = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", HEADERS[column].read_text())
    theirs = {name: int(number) for name, number in pairs}
    ours = {**filter.ALLOWED, **filter.REFUSED, **filter.JUDGED, **kernel._NUMBERS}
    for name, numbers in ours.items():
        assert theirs.get("fstatat" if column and name == "newfstatat" else name) == numbers[column], name


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


@pytest.mark.parametrize("swap_at", range(1, 7))
def test_a_link_that_is_swapped_in_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap_at: int
) -> None:
    """Checks that an outside folder keeps mode and content, whenever a shut folder is swapped for a link."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir(mode=0o750)
    (outside / "kept").touch()
    (inside / "victim").mkdir(parents=True)
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1
        if calls == swap_at and (inside / "victim").exists():
            (inside / "victim").rmdir()
            (inside / "victim").symlink_to(outside)

    def open_(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        count()
        if path == "victim" and not flags & os.O_PATH:  # as if this user could not open it
            raise PermissionError(errno.EACCES, "shut")
        return real_open(path, flags, *rest, dir_fd=dir_fd)

    def chmod(path: str, mode: int, *, dir_fd: int | None = None) -> None:
        count()
        real_chmod(path, mode, dir_fd=dir_fd)

    real_open, real_chmod = os.open, os.chmod
    with monkeypatch.context() as patched, contextlib.suppress(OSError):  # it may give up
        patched.setattr(os, "open", open_)
        patched.setattr(os, "chmod", chmod)
        empty(str(inside))
    assert outside.stat().st_mode & 0o777 == 0o750
    assert os.listdir(outside) == ["kept"]


def test_the_worker_imports_the_standard_library_alone() -> None:
    """Checks that the jail imports neither the project nor slow modules, which would slow every program."""
    path = str(worker.JAIL.parent)
    code = f"import sys; sys.path.insert(0, {path!r}); import jail.worker; print(*sys.modules)"
    command = [worker.executable(), *worker.FLAGS, "-c", code]
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
        monkeypatch.setattr(worker, "read_id_ranges", lambda ids=ids: ids)
        user_ids = [worker.stranger(pid) for pid in (1, 2, 4711, 4_194_303)]
        assert min(user_ids) > lowest and taken.isdisjoint(user_ids) and len(set(user_ids)) == 4
    monkeypatch.setattr(worker, "read_id_ranges", lambda: "0 1000 1")
    with pytest.raises(SandboxError, match="no user id is to be had for programs"):
        worker.stranger(1)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSPC, errno.EPERM])
def test_a_machine_that_allows_no_time_namespaces_has_the_level_without(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(flags: int) -> None:
        assert flags == 0x80  # CLONE_NEWTIME
        raise OSError(number, "unshare")

    monkeypatch.setattr(kernel, "unshare", refuse)
    clocks.hide_uptime()
    number = errno.ENOMEM
    with pytest.raises(OSError, match="unshare"):
        clocks.hide_uptime()
