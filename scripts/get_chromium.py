"""Installs Debian's Chromium if the machine has none: the first step of ``make browser``. It needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser")


def main() -> None:
    """Installs it, or ends with a message that says why it cannot."""
    if any(shutil.which(name) for name in NAMES):
        return
    if shutil.which("apt-get") is None or os.geteuid():
        sys.exit(
            "make browser needs Chromium: none of " + ", ".join(NAMES) + " is on the PATH, and only root "
            "can install Debian's: apt-get install chromium"
        )
    print("installing Debian's chromium")
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        done = subprocess.run(
            ["apt-get", *command],
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            sys.exit(f"make browser needs Chromium, and apt-get {' '.join(command)} failed")


if __name__ == "__main__":
    main()
