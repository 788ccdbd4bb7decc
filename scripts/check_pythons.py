"""The test of the environments on other Pythons: ``make pythons``.

For each version that ``setup.cfg`` names, other than the one that runs this: the wheel is tried without the
trainer (``scripts.check_package``), and the tests of the environments run where PyTorch is not installed. An
interpreter is looked for on the path and among pyenv's; a version without one is named and left out.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts import check_package
from scripts.check_package import ROOT, Environment

TESTS = ("tests/task_gym", "tests/game_gym", "tests/trace_gym")


def main(argv: Sequence[str] | None = None) -> None:
    """Checks the given versions, or all others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=others(), metavar="VERSION", help="such as 3.13")
    for version in parser.parse_args(argv).versions:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: left out, no interpreter was found")
            continue
        print(f"Python {version}: {python}", flush=True)
        began = time.monotonic()
        check_package.main(["--no-train", "--python", python])
        print(f"Python {version}: {tested(python)}, {time.monotonic() - began:.0f} s", flush=True)


def others() -> list[str]:
    """Returns the versions of Python that the package is for, without the running one."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    named = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    return [version for version in named if version != f"3.{sys.version_info.minor}"]


def interpreter(version: str) -> str | None:
    """Returns the interpreter of a version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    # A pyenv shim is on the path for every version, and ends with an error for those that are not chosen.
    asked = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    for python in filter(None, found):
        done = subprocess.run([python, *asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return python
    return None


def tested(python: str) -> str:
    """Runs the environments' tests; returns pytest's last line.

    Raises:
        SystemExit: a test failed.
    """
    with tempfile.TemporaryDirectory(prefix="gamespiel-python-") as folder:
        small = Environment(Path(folder, "small"), python)
        small.install("--editable", f"{ROOT}[test]")
        small.work = ROOT
        workers = ("--numprocesses", "auto", "--maxprocesses", "8")
        said = small.run("python", "-m", "pytest", "--quiet", *workers, *TESTS)
    return said.splitlines()[-1].strip("= ")


if __name__ == "__main__":
    main()
