"""Measures which system calls programs make: `python -m scripts.measure_system_calls` (root, with strace).

The programs are one per family and level of the builtin generator, the standard test rows, the shipped rows
of `tests/data/programs.jsonl` and the honest programs of the sandbox's tests, plus one that imports every
module of the standard library. They run at level "limits", which filters nothing. strace follows the worker.
Calls count from the moment at which a program's process has locked itself in.

Prints each call with its number, and whether the filter of `trace_gym/sandbox/jail/filter.py` allows it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from trace_gym.admission.counting import limit_lines
from trace_gym.programs.builtin import CELLS, generate
from trace_gym.sandbox import Limits, Sandbox
from trace_gym.sandbox.jail import filter

ROOT = Path(__file__).parents[1]
ARGUMENTS = {"clone", "fcntl", "ioctl", "futex", "madvise", "prctl", "socketpair", "prlimit64"}
"""Calls whose arguments the filter reads, so that they are counted with their constants."""

THREADS = ("clone", "clone3", "fork", "vfork")

_CALL = re.compile(r"^(\d+) +(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)")
_LOCKED = "prlimit64(0, RLIMIT_NOFILE"
"""The beginning of the last call before a program's own at level "limits"."""

IMPORTS = """\
import sys, warnings
warnings.simplefilter("ignore")
for name in sorted(sys.stdlib_module_names - {"antigravity", "this", "idlelib", "turtledemo", "__phello__"}):
    try: __import__(name)
    except Exception: pass
"""


def programs() -> Iterator[tuple[str, str]]:
    """Yields each program with its standard input."""
    from tests.trace_gym.rows import rows
    from tests.trace_gym.sandbox.honest import HONEST, INPUT

    for task_id in range(CELLS):
        program = generate(task_id)
        yield program.code, program.stdin
    for line in (ROOT / "tests/data/programs.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["program"], row["inputs"]
    for row in rows():
        yield row.program, row.inputs
        try:
            yield limit_lines(row.program, 100_000), row.inputs
        except Exception:  # it is no program
            continue
    for text in HONEST.values():
        yield text, INPUT
    yield IMPORTS, ""


def constants(text: str) -> str:
    """Returns the words in capitals among a call's arguments, as strace writes them."""
    return "|".join(re.findall(r"\b(?:[A-Z][A-Z0-9_]{2,}|0x[0-9a-f]{4} )\b", text.partition(" = ")[0]))


def count(lines: Iterator[str]) -> Counter[str]:
    """Counts the calls of programs in strace's output."""
    calls: Counter[str] = Counter()
    locked: set[str] = set()
    for line in lines:
        match = _CALL.match(line)
        if match is None:
            continue
        pid, name, resumed, rest = match.groups()
        if pid in locked:
            if name:
                calls[f"{name} {constants(rest)}" if name in ARGUMENTS else name] += 1
            if (name or resumed) in THREADS and (thread := re.search(r"= (\d+)$", line)):
                locked.add(thread[1])
        elif line[len(pid) :].strip().startswith(_LOCKED):
            locked.add(pid)
    return calls


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.measure_system_calls", description=__doc__)
    parser.add_argument("--most", type=int, default=None, help="programs to run, at most [all]")
    arguments = parser.parse_args(argv)
    limits = Limits(cpu_seconds=10, wall_seconds=4.0, memory=2 << 30, output=1 << 20, open_files=64)
    with (
        tempfile.TemporaryDirectory() as directory,
        Sandbox(level="limits", require="limits", limits=limits) as sandbox,
    ):
        sandbox.run("")
        trace = Path(directory) / "trace"
        worker = next(iter(sandbox._workers.values()))._process.pid
        command = ["strace", "-f", "-qq", "-p", str(worker), "-o", str(trace)]
        with subprocess.Popen(command) as tracer:
            number = 0
            for number, (text, stdin) in enumerate(programs(), 1):
                sandbox.run(text, stdin)
                if number == arguments.most:
                    break
            tracer.terminate()
        with trace.open(errors="replace") as lines:
            calls = count(iter(lines))
    print(f"{number} programs, Python {sys.version.partition(' ')[0]}")
    allowed = set(filter.ALLOWED) | set(filter.JUDGED)
    for name, times in sorted(calls.items()):
        word = name.partition(" ")[0]
        print(f"{times:9} {'' if word in allowed else 'REFUSED '}{name}")


if __name__ == "__main__":
    main()
