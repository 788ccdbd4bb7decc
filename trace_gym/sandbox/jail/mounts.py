"""A program's own file system: the interpreter's files, read-only, and two devices.

This runs in a fresh user and mount namespace. Files that are not mounted here do not exist inside.
"""

from __future__ import annotations

import os

from . import kernel

WORK = "/program"
"""A program's own working directory, empty at first. It is not /tmp: an interpreter may be below that."""

HIDDEN = ("site-packages", "dist-packages")
"""Directories below the standard library that are empty inside."""

_OLD = "/.old"
# A bind mount in a user namespace must keep these flags of its source.
_KEPT = {
    os.ST_NOSUID: kernel.MS_NOSUID,
    os.ST_NODEV: kernel.MS_NODEV,
    os.ST_NOEXEC: kernel.MS_NOEXEC,
    os.ST_NOATIME: kernel.MS_NOATIME,
    os.ST_NODIRATIME: kernel.MS_NODIRATIME,
    os.ST_RELATIME: kernel.MS_RELATIME,
}


def _show(source: str, target: str, flags: int) -> None:
    """Mounts a file or directory of the old root at ``target``, read-only."""
    old = _OLD + source
    if os.path.isdir(old):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o644))
    kernel.mount(old, target, flags=kernel.MS_BIND | kernel.MS_REC)
    st_flags = os.statvfs(target).f_flag
    ms_flags = sum(ours for theirs, ours in _KEPT.items() if st_flags & theirs)
    kernel.mount(
        "none", target, flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | flags | ms_flags
    )


def enter(roots: dict[str, str], files: dict[str, str], devices: tuple[str, ...]) -> None:
    """Changes to a root with only ``roots``, ``files`` and ``devices``.

    ``roots`` and ``files`` map each path inside to the directory or file outside. Directories of installed
    packages below the roots are empty.
    """
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    strict = kernel.MS_NOSUID | kernel.MS_NODEV
    # Any directory works: after the pivot the old root is complete again, under another name.
    kernel.mount("tmpfs", "/tmp", "tmpfs", strict, "size=1m,mode=0755")
    os.mkdir("/tmp" + _OLD)
    kernel.pivot_root("/tmp", "/tmp" + _OLD)
    os.chdir("/")
    for root, source in roots.items():
        _show(source, root, strict)
        for name in HIDDEN:
            if os.path.isdir(os.path.join(root, name)):
                cover = strict | kernel.MS_RDONLY
                kernel.mount("tmpfs", os.path.join(root, name), "tmpfs", cover, "size=4k,mode=0755")
    for target, source in files.items():
        _show(source, target, strict)
    for device in devices:
        _show(device, device, kernel.MS_NOSUID | kernel.MS_NOEXEC)
    os.mkdir(WORK)
    kernel.unmount(_OLD)
    os.rmdir(_OLD)
    kernel.mount("none", "/", flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | strict)


def fresh_work(size: int, owner: int) -> None:
    """Mounts an empty directory of ``size`` bytes at ``WORK``, only in this mount namespace."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount(
        "tmpfs", WORK, "tmpfs", flags, f"size={size},nr_inodes=1024,mode=0700,uid={owner},gid={owner}"
    )
