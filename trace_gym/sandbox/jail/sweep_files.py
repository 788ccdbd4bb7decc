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


def _identity(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def empty(directory: str) -> None:
    """Remove everything below a directory, which nothing else should be changing.

    One directory is open at a time, and none is named by more than its own name: a program can make a path
    longer than the kernel takes, and deeper than Python recurses. Raises OSError if one was moved meanwhile.
    """
    here = os.open(directory, _OPEN)
    try:
        above: list[tuple[int, int]] = []  # the way down: what each directory is,
        left = [_directories(here)]  # what is still to be done in it,
        names: list[str] = []  # and what it is called in the one above
        while left[-1] or names:
            if left[-1]:
                names.append(left[-1].pop())
                above.append(_identity(here))
                os.chmod(names[-1], 0o700, dir_fd=here)
                there = os.open(names[-1], _OPEN, dir_fd=here)
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
