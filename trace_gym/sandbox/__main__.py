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


def _level(name: str) -> tuple[bool, str]:
    """Returns whether there is a level, and a line about it."""
    try:
        reason = trouble(name)
    except SandboxError as error:
        reason = str(error)
    return reason is None, f"{name:<15}{'yes' if reason is None else f'no: {reason}'}"


def describe() -> tuple[bool, list[str]]:
    """Returns whether untrusted programs are safe here, and the lines of the report."""
    levels = {name: _level(name) for name in LEVELS}
    lines = [line for _, line in levels.values()]
    protects = levels["namespaces"][0]
    if protects:
        missing = cgroups.trouble()
        lines.append(f"control group  {'yes' if missing is None else f'no: {missing}'}")
        lines.append(
            f"Landlock       {'yes' if locks.has_landlock() else 'no: the kernel has none, or it is off'}"
        )
        without = "no: the kernel has no time namespaces, or allows none"
        lines += [
            f"hidden uptime  {'yes' if clocks.is_there() else without}",
            "",
            "Programs of data sets and files run at level 'namespaces', with or without the last three,",
            "which are second walls.",
        ]
    else:
        lines += ["", "Programs of data sets and files are refused here. How to get level 'namespaces':"]
        lines += [f"- {advice}" for advice in advise()]
        if levels["limits"][0]:
            lines.append("- or accept the risk of running them without protection: require='limits'")
    return protects, lines


def main() -> None:
    """Prints the report; the exit code is 0 if untrusted programs are safe here, else 1."""
    print(f"interpreter    {executable()}, Python {sys.version.partition(' ')[0]}")
    protects, lines = describe()
    print("\n".join(lines))
    sys.exit(0 if protects else 1)


if __name__ == "__main__":
    main()
