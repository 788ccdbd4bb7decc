"""Measures how fast untrusted programs run: `python -m benchmarks.trace_speed`.

The same small programs run in three ways, in turns in one process: `subprocess.run([sys.executable, FILE])`,
which protects from nothing; `trace_gym.sandbox.run`, a sandbox for each program; and a warm `Sandbox`. The
sandboxes run at each level that the machine has; level "limits" protects from nothing either.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.ending import end, parse
from benchmarks.machine import machine
from trace_gym.sandbox import LEVELS, Sandbox, interpreter, run, trouble

PLAIN = "subprocess"
"""The baseline of the comparison."""

PROGRAMS: Mapping[str, tuple[str, str]] = {
    "print": ('print("x")\n', "x\n"),
    "words": (
        """\
counts = {}
for line in ["the quick brown fox", "the lazy dog", "the end"]:
    for word in line.split():
        counts[word] = counts.get(word, 0) + 1
for word in sorted(counts, key=lambda word: (-counts[word], word)):
    print(word, counts[word])
""",
        "the 3\nbrown 1\ndog 1\nend 1\nfox 1\nlazy 1\nquick 1\n",
    ),
    "primes": (
        """\
limit = 2000
sieve = [True] * limit
for n in range(2, limit):
    if sieve[n]:
        for multiple in range(n * n, limit, n):
            sieve[multiple] = False
print(sum(sieve[2:]))
""",
        "303\n",
    ),
}
"""name: (program, its output). Some ten thousand executed lines at most, because traces are not long."""

Execute = Callable[[str], str]
"""A program's text -> its output."""


@dataclass
class Contestant:
    """One way to run programs, with the seconds for all of them in each round."""

    name: str
    level: str | None
    execute: Execute
    seconds: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Executions per second in the median round, which a busy moment of the machine does not change."""
        return len(PROGRAMS) / statistics.median(self.seconds)


def by_subprocess(directory: Path) -> Execute:
    """Returns a plain subprocess run. Writing the file is not part of the time."""
    files: dict[str, str] = {}

    def execute(program: str) -> str:
        if program not in files:
            files[program] = str(directory / f"{len(files)}.py")
            Path(files[program]).write_text(program, encoding="utf-8")
        return subprocess.run(
            [sys.executable, files[program]], capture_output=True, encoding="utf-8", check=True
        ).stdout

    return execute


def by_bubblewrap(directory: Path) -> Execute:
    """Returns a run in bubblewrap, with files, flags and environment of the sandbox's programs."""
    python, found = interpreter.executable(), interpreter.survey()
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--clearenv", "--setenv", "PYTHONHASHSEED", "0", "--dev-bind", "/dev/null", "/dev/null"]
    command += ["--dev-bind", "/dev/urandom", "/dev/urandom", "--size", str(4 << 20), "--tmpfs", "/program"]
    for path, real in {**found["roots"], **found["files"], python: python}.items():
        command += ["--ro-bind", real, path]
    files: dict[str, str] = {}

    def execute(program: str) -> str:
        if program not in files:
            files[program] = str(directory / f"wrapped{len(files)}.py")
            Path(files[program]).write_text(program, encoding="utf-8")
        inside = [
            "--ro-bind",
            files[program],
            "/program.py",
            "--chdir",
            "/program",
            python,
            *interpreter.FLAGS,
        ]
        return subprocess.run(
            [*command, *inside, "/program.py"], capture_output=True, encoding="utf-8", check=True
        ).stdout

    return execute


@contextlib.contextmanager
def contestants(levels: Sequence[str], bubblewrap: bool = False) -> Iterator[list[Contestant]]:
    """Yields the contestants ready to run: files written and workers warm."""

    def once(level: str) -> Execute:
        return lambda program: run(program, level=level, require="limits").stdout

    def warm(level: str) -> Execute:
        sandbox = stack.enter_context(Sandbox(level=level, require="limits"))
        return lambda program: sandbox.run(program).stdout

    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = [Contestant(PLAIN, None, by_subprocess(directory))]
        if bubblewrap:
            found.append(Contestant("bubblewrap", None, by_bubblewrap(directory)))
        for level in levels:
            found.append(Contestant(f"run, {level}", level, once(level)))
            found.append(Contestant(f"Sandbox, {level}", level, warm(level)))
        for contestant in found:
            check(contestant)
        yield found


def check(contestant: Contestant) -> None:
    """Checks the output of every program, which also does the work that is done only once.

    Raises:
        ValueError: a program printed something else.
    """
    for name, (program, expected) in PROGRAMS.items():
        printed = contestant.execute(program)
        if printed != expected:
            raise ValueError(f"{contestant.name}: {name} printed {printed!r}, not {expected!r}")


def race(found: Sequence[Contestant], rounds: int) -> None:
    """Times all contestants in turns, so that other load on the machine affects all of them alike."""
    for _ in range(rounds):
        for contestant in found:
            begun = time.perf_counter()
            for program, _ in PROGRAMS.values():
                contestant.execute(program)
            contestant.seconds.append(time.perf_counter() - begun)


def summary(found: Sequence[Contestant]) -> dict[str, Any]:
    """Returns the rates, also as multiples of the plain subprocess's rate."""
    plain = next(contestant for contestant in found if contestant.name == PLAIN)
    return {
        contestant.name: {
            "level": contestant.level,
            "executions_per_second": round(contestant.rate, 1),
            "times_subprocess": round(contestant.rate / plain.rate, 2),
        }
        for contestant in found
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trace_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=100, help=f"of {len(PROGRAMS)} programs each way [100]")
    parser.add_argument(
        "--bubblewrap", action="store_true", help="race against bwrap, which must be installed"
    )
    given = parse(parser, argv)

    missing = {level: reason for level in LEVELS if (reason := trouble(level)) is not None}
    for level, reason in missing.items():
        print(f"no level {level!r} here: {reason}")
    with contestants([level for level in LEVELS if level not in missing], given.bubblewrap) as found:
        race(found, given.rounds)
        results = {
            "benchmark": "trace_speed",
            "machine": machine()
            | {
                "kernel": platform.release().partition("-")[0],
                "load": [round(load, 2) for load in os.getloadavg()],
            },
            "rounds": given.rounds,
            "programs": list(PROGRAMS),
            "missing": missing,
            "ways": summary(found),
        }
    for name, way in results["ways"].items():
        rate, ratio = way["executions_per_second"], way["times_subprocess"]
        print(f"{name:<20} {rate:8.1f} executions/s  {ratio:6.2f} times {PLAIN}")
    return end(results, given.out)


if __name__ == "__main__":
    main()
