"""Removing what a program left on disk, however deep."""

from __future__ import annotations

import os

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _directories(file: int) -> list[str]:
    """The directories in an open one; everything else in it is removed. Links are not followed."""
    found = []
    with os.scandir(file) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found.append(entry.name)
            else:
                os.unlink(entry.name, dir_fd=file)
    return found


def empty(directory: str) -> None:
    """Remove everything below a directory, which nothing else may be changing.

    One directory is open at a time, and none is named by more than its own name: a program can make a path
    longer than the kernel takes, and deeper than Python recurses.
    """
    here = os.open(directory, _OPEN)
    left, names = [_directories(here)], list[str]()
    while left[-1] or names:
        if left[-1]:
            names.append(left[-1].pop())
            os.chmod(names[-1], 0o700, dir_fd=here)
            there = os.open(names[-1], _OPEN, dir_fd=here)
            left.append(_directories(there))
        else:
            left.pop()
            there = os.open("..", _OPEN, dir_fd=here)
            os.rmdir(names.pop(), dir_fd=there)
        os.close(here)
        here = there
    os.close(here)
