"""A worker: a warm interpreter with one hash seed that takes programs one after the other.

It never runs a program itself. For each program it makes a keeper, which makes the program's own process.
This process returns from all functions here and becomes the program.
"""

from __future__ import annotations

import errno
import gc
import os
import posix
import select
import site
import struct
import sys
from _socket import AF_UNIX, CMSG_LEN, SCM_RIGHTS, SOCK_SEQPACKET, socket

from . import clocks, keeper, kernel, mounts, program, sweep
from .locks import DEVICES, Locks
from .wire import CLEAN, FAILED, LARGEST, MAPPED, READY, SHORT, STOP, UNSHARED, Caps, Setting

_NAMESPACES = (
    kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
)  # fmt: skip

_SHORTAGES = (errno.EAGAIN, errno.EINTR, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _clean_environment() -> None:
    """Removes everything but the hash seed from the environment: the interpreter itself adds a locale."""
    for name in list(os.environ):
        if name != "PYTHONHASHSEED":
            del os.environ[name]
    for key in list(posix.environ):
        if key != b"PYTHONHASHSEED":
            del posix.environ[key]


def _shut_in(setting: Setting, control: socket) -> Locks:
    """Puts on the worker the protection that all programs share, and returns the programs' locks."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # a machine without memory ends programs first, and not their caller
    if setting.level == "namespaces":
        kernel.unshare(_NAMESPACES)
        control.send(UNSHARED.encode())
        if control.recv(LARGEST) != MAPPED:
            raise OSError("the host went away")
        clocks.hide_uptime()  # before /proc is gone
        mounts.enter(setting.roots, setting.files, DEVICES)
        kernel.set_host_name("sandbox")
    locks = Locks(setting)
    kernel.no_new_privileges()
    kernel.not_dumpable()
    return locks


def _warm_up() -> None:
    """Does once what every program would otherwise repeat or lack."""
    clocks.replace_times()
    site.setquit()  # exit() and quit(), which -S leaves out with the packages
    site.setcopyright()
    site.sethelper()
    for name in [name for name in sys.modules if name.partition(".")[0] == "jail"]:
        del sys.modules[name]  # so that no program imports it
    compile("", "", "exec")  # the first call makes a hundred types
    gc.collect()
    gc.freeze()  # the collector would touch, and so copy, every page in every child


def _receive(control: socket) -> tuple[bytes, list[int]]:
    """Returns a message and the files that came with it; b"" if the host is gone."""
    message, ancillary, *_ = control.recvmsg(LARGEST, CMSG_LEN(4 * 4))
    files = [data for _, kind, data in ancillary if kind == SCM_RIGHTS]
    return message, list(struct.unpack("=4i", files[0])) if files else []


def _wait(pid: int, life: int, control: socket) -> bool:
    """Waits until a keeper is gone, and ends it at any message. Returns False if the host is gone."""
    there = True
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(control, select.POLLIN)
    stopped = False
    while ended not in (ready := [file for file, _ in poll.poll()]):
        if ready and not control.recv(LARGEST):
            there = False
            poll.unregister(control)
        if not stopped:
            os.close(life)  # any message from the host now means: stop
            stopped = True
    if not stopped:
        os.close(life)
    os.close(ended)
    os.waitpid(pid, 0)
    return there


def _serve(control: socket, begun: int) -> bytes | None:
    """Takes programs until the host is gone. Returns a program's text in that program's own process."""
    setting = Setting.unpack(control.recv(LARGEST))
    try:
        locks = _shut_in(setting, control)
    except OSError as error:
        word = SHORT if error.errno in _SHORTAGES else FAILED
        control.send(f"{word} {error}".encode())
        return None
    _warm_up()
    control.send(READY.encode())
    there = True
    while there:
        message, files = _receive(control)
        if not message:
            break
        if message == STOP:
            continue
        os.eventfd_write(begun, 1)
        life, life_here = os.pipe()
        report_here, report = os.pipe()
        if setting.level == "namespaces":
            pid = kernel.clone_process(keeper.NAMESPACES)
        else:
            work = os.path.join(setting.base, keeper.WORK)
            os.mkdir(work, 0o700)
            if setting.user is not None:
                os.chown(work, setting.user, setting.user)
            pid = os.fork()
        if pid == 0:
            control.detach()
            return keeper.keep(setting, locks, Caps.unpack(message), files, life, report)
        for file in (life, report, *files):
            os.close(file)
        there = _wait(pid, life_here, control)
        line = os.read(report_here, 4096).partition(b"\n")[0]
        os.close(report_here)
        if there:
            control.send(line or f"{FAILED} the keeper was killed".encode())
        if setting.base:  # after that reply and before the next: no program's clock runs
            sweep.empty(setting.base)
        if there:
            control.send(CLEAN.encode())
    if setting.base:  # the host may be gone
        os.rmdir(setting.base)
    return None


def main() -> None:
    """Runs the worker. Its two arguments are file descriptors: the socket, and the eventfd."""
    descriptors = [int(argument) for argument in sys.argv[1:]]
    control, begun = [os.dup(file) for file in descriptors]  # low numbers: see keeper
    for file in descriptors:
        os.close(file)
    _clean_environment()
    code = _serve(socket(AF_UNIX, SOCK_SEQPACKET, 0, fileno=control), begun)
    if code is not None:
        program.execute(code)
