"""Prints this machine's protection from untrusted programs, and the reasons for what is missing.

``python -m trace_gym.sandbox``
"""

from __future__ import annotations

import sys

from task_gym.errors import SandboxError

from . import cgroups
from .jail import clocks, locks
from .probe import advise, trouble
from .shapes import LEVELS
from .worker import executable


def _trouble(level: str) -> str | None:
    try:
        return trouble(level)
    except SandboxError as error:
        return str(error)


def main() -> None:
    """Prints the report; the exit code is 0 if untrusted programs are safe here, else 1."""
    print(f"interpreter    {executable()}, Python {sys.version.partition(' ')[0]}")
    missing = {level: _trouble(level) for level in LEVELS}
    protects = missing["namespaces"] is None
    if protects:
        missing |= {
            "control group": cgroups.trouble(),
            "Landlock": None if locks.landlock_version() else "the kernel has none, or it is off",
            "hidden uptime": (
                None if clocks.is_there() else "the kernel has no time namespaces, or allows none"
            ),
        }
    for name, reason in missing.items():
        print(f"{name:<15}{'yes' if reason is None else f'no: {reason}'}")
    print()
    if protects:
        print("Programs of data sets and files run at level 'namespaces', with or without the last three,")
        print("which are second walls.")
    else:
        print("Programs of data sets and files are refused here. How to get level 'namespaces':")
        for advice in advise():
            print(f"- {advice}")
        if missing["limits"] is None:
            print("- or accept the risk of running them without protection: require='limits'")
    sys.exit(0 if protects else 1)


if __name__ == "__main__":
    main()
