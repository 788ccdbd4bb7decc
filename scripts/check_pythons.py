"""The test of the environments on other Pythons: ``make pythons``.

For each version that ``setup.cfg`` names, other than the one that runs this: the wheel is tried without the
trainer (``scripts.check_package``), and the tests of the environments run where PyTorch is not installed. An
interpreter is looked for on the path and among pyenv's; a version without one is named and left out.

With ``--uv FOLDER``, a part of ``make release-check``, uv installs both distributions of that folder on every
version, and an episode of each environment is played. uv fetches an interpreter that is not there; a version
that cannot be had is an error, after the others have been tried.
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
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="such as 3.13")
    parser.add_argument("--uv", type=Path, metavar="FOLDER", help="install the distributions there with uv")
    arguments = parser.parse_args(argv)
    if arguments.uv is not None:
        return install_by_uv(arguments.uv, arguments.versions or versions())
    for version in arguments.versions or others():
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: left out, no interpreter was found")
            continue
        print(f"Python {version}: {python}", flush=True)
        began = time.monotonic()
        check_package.main(["--no-train", "--python", python])
        print(f"Python {version}: {tested(python)}, {time.monotonic() - began:.0f} s", flush=True)


def install_by_uv(dist: Path, wanted: Sequence[str]) -> None:
    """Installs each distribution of a folder in an empty environment of each version, and plays.

    Raises:
        SystemExit: there are not two distributions, one does not work, or a version cannot be had.
    """
    files, missing = sorted(dist.resolve().glob("gamespiel-*")), []
    if [file.suffix for file in files] != [".whl", ".gz"]:
        sys.exit(f"{dist}: {[file.name for file in files]} were found, allowed: one .whl and one .tar.gz")
    with tempfile.TemporaryDirectory(prefix="gamespiel-uv-") as folder:
        tools = Environment(Path(folder, "tools"), sys.executable)
        tools.install("uv")
        for version in wanted:
            python = interpreter(version) or version
            for file in files:
                place = Path(folder, version, file.suffix)
                command = [str(tools.bin / "uv"), "venv", "--quiet", "--python", python, str(place)]
                if subprocess.run(command, cwd=tools.work, check=False).returncode:
                    missing.append(version)
                    break
                pins = [f"--constraint={ROOT / name}" for name in check_package.PINS]
                tools.run("uv", "pip", "install", "--quiet", "--python", place, *pins, file)
                played = Environment(place).run("python", "-c", check_package.PLAY)
                print(f"Python {version}: {file.name} by uv, {len(played.splitlines())} environments")
    if missing:
        sys.exit(f"not tried, because they cannot be had here: Python {', '.join(missing)}")


def versions() -> list[str]:
    """Returns the versions of Python that the package is for."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])


def others() -> list[str]:
    """Returns the versions of Python that the package is for, without the running one."""
    return [version for version in versions() if version != f"3.{sys.version_info.minor}"]


def interpreter(version: str) -> str | None:
    """Returns the interpreter of a version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")))]
    # A pyenv shim is on the path for every version, and ends with an error for those that are not chosen.
    asked = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    for python in filter(None, candidates):
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
