"""Removal of what a program left: its files, at any depth, and the processes that still run."""

from __future__ import annotations

import os

SIGKILL = 9

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _directories(file: int) -> list[str]:
    """Removes everything but directories from an open directory, and returns the names of these.

    Links are not followed.
    """
    names = []
    with os.scandir(file) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=file)
    return names


def _open_below(here: int, name: str) -> int:
    """Opens a directory, although its owner may have shut it.

    The mode is changed through the open directory. By name, another process could put a link in its place.
    """
    try:
        return os.open(name, _OPEN, dir_fd=here)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    try:
        os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return os.open(".", _OPEN, dir_fd=handle)
    finally:
        os.close(handle)


def _identity(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def empty(directory: str) -> None:
    """Removes everything below a directory. If another process changes it meanwhile, nothing outside changes.

    One directory is open at a time, and each is opened by its own name. A program can make a path longer than
    the kernel allows, and deeper than Python recurses.

    Raises:
        OSError: a directory was moved meanwhile.
    """
    here = os.open(directory, _OPEN)
    try:
        above: list[tuple[int, int]] = []  # the path down: the identity of each directory above,
        left = [_directories(here)]  # the directories left to remove in each,
        names: list[str] = []  # and the names on the path
        while left[-1] or names:
            if left[-1]:
                names.append(left[-1].pop())
                above.append(_identity(here))
                there = _open_below(here, names[-1])
                left.append(_directories(there))
            else:
                left.pop()
                there = os.open("..", _OPEN, dir_fd=here)
                if _identity(there) != above.pop():
                    os.close(there)
                    raise OSError(f"{names[-1]!r} below {directory!r} was moved away while it was emptied")
                os.rmdir(names.pop(), dir_fd=there)
            os.close(here)
            here = there
    finally:
        os.close(here)


def _children() -> list[int]:
    """Returns the ids of this process's children."""
    children = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name, in parentheses, may contain anything.
                    parent = file.read().rpartition(b")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == os.getpid():
                children.append(int(name))
    return children


def end_children(user: int | None) -> None:
    """Kills and reaps all children, and their children as they become this process's own.

    Args:
        user: The children's user id, if no other process has it. Then one signal reaches all of them at once,
            even if they fork meanwhile. If None, each child is first forbidden to fork.
    """
    import resource  # here, because the host imports this file on systems without it, too

    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            continue
        if user is not None:
            helper = os.fork()
            if helper == 0:
                try:
                    os.setresuid(user, user, user)
                    os.kill(-1, SIGKILL)
                finally:
                    os._exit(0)
            os.waitpid(helper, 0)
        else:
            for child in _children():
                try:
                    resource.prlimit(child, resource.RLIMIT_NPROC, (0, 0))
                    os.kill(child, SIGKILL)
                except ProcessLookupError:
                    continue
        os.waitpid(-1, 0)
