"""How to get the level "namespaces" on a machine that does not have it."""

from __future__ import annotations

import sys
from pathlib import Path

SWITCHES = {
    "user/max_user_namespaces": ("0", "user.max_user_namespaces=10000"),
    "kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "kernel.apparmor_restrict_unprivileged_userns=0"),
}
"""Settings below /proc/sys: the value that forbids user namespaces, and one that allows them."""


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _has_filter() -> bool:
    """Returns whether this process is under a filter of system calls, as containers' processes are."""
    return any(line.split() == ["Seccomp:", "2"] for line in _read("/proc/self/status").splitlines())


def advise() -> list[str]:
    """Returns what would allow user namespaces here, as clauses for a message; none if nothing is known."""
    if sys.platform != "linux":
        return ["run it on Linux 5.3 or newer, or in a virtual machine with it"]
    found = [
        f"the machine's administrator can allow user namespaces: sysctl -w {allowing}"
        for name, (forbidding, allowing) in SWITCHES.items()
        if _read(f"/proc/sys/{name}") == forbidding
    ]
    if _has_filter():
        found.append(
            "this process is under a system call filter, as in a container: give the container "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined, or run outside of it"
        )
    return found or ["the kernel must allow user namespaces, and a container's own rules mounts in them"]
