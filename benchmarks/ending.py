"""The results of a benchmark: one line of JSON, in a file and on the terminal.

By default the file is a new one in `runs/benchmarks/` of the current directory, which git ignores. `--keep`
overwrites the tracked file in `benchmarks/results/` instead, and `--out` names another place. Beside
"machine", in the results or in each row, is "command": what was typed, without folders of the machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

#: The tracked results.
RESULTS = Path(__file__).parent / "results"

#: The folder of new files.
RUNS = Path("runs", "benchmarks")

#: The folders of a path from the root, in an argument; addresses of the web have none.
_FOLDERS = re.compile(r"""(?<![\w.~:/-])/(?:[^/"',]+/)*""")

Row = dict[str, Any]

Draw = Callable[[dict[str, Any], Path], object]
"""(results, path of the picture) -> ignored."""


def machine() -> dict[str, str | int | None]:
    """Returns processor, cores that this process may use, Python version and date, for a result."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    return {
        "cpu": names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser for ``python -m benchmarks.NAME``; the description is the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses a benchmark's options and the common ones, `--keep` and `--out`.

    Returns:
        The options. ``out`` is a folder, a file that ends in `.json`, or None for a new file. The folder is
        made at once, so that a wrong place is an error before the benchmark runs and not after.
    """
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--keep",
        dest="out",
        action="store_const",
        const=RESULTS,
        help="overwrite the tracked results in benchmarks/results",
    )
    place.add_argument(
        "--out",
        "--output",
        type=Path,
        metavar="PATH",
        help=f"a folder, or a file that ends in .json, to overwrite [a new file in {RUNS.as_posix()}]",
    )
    arguments = parser.parse_args(argv)
    folder = (
        RUNS if arguments.out is None else arguments.out.parent if _is_file(arguments.out) else arguments.out
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(
            f"cannot make the folder {str(folder)!r} for the results: {error.strerror}; "
            "--out takes a folder, or a file that ends in .json"
        )
    return arguments


def end(results: dict[str, Any], out: Path | None, draw: Draw | None = None) -> dict[str, Any]:
    """Writes the results, and their picture beside them, and prints where. The last line is the results.

    Args:
        results: plain data; "benchmark" names the file.
        out: as ``parse`` returns it.
        draw: draws the picture, if the benchmark has one.

    Returns:
        The results as they are read back: lists for tuples, texts for keys. They have "command", or where
        each row has a machine of its own, those rows that are not in the file already.

    Raises:
        ValueError: the results have a number that JSON lacks, as NaN. Nothing is written.
    """
    copy = dict(json.loads(json.dumps(results, allow_nan=False)))
    if (line := command(results["benchmark"])) is not None:
        copy = _note(copy, line, out)
    text = json.dumps(copy)
    try:
        path = _write(text + "\n", results["benchmark"], out)
        print(f"written to {path}")
        if draw is not None:
            picture = path.with_suffix(".png")
            draw(copy, picture)
            print(f"written to {picture}")
    finally:
        # A full disk must not cost a result that took an hour.
        print(text)
    return copy


def command(name: str) -> str | None:
    """Returns the command that runs a benchmark in this process; None if it was called from Python.

    Of a path from the root only the last name is left.
    """
    file = Path("benchmarks", *name.split(".")).with_suffix(".py")
    if Path(sys.argv[0]).parts[-len(file.parts) :] != file.parts:
        return None
    arguments = [_FOLDERS.sub("", argument) for argument in sys.argv[1:]]
    return shlex.join(["python", "-m", f"benchmarks.{name}", *arguments])


def rows_there(out: Path | None, name: str) -> list[Row]:
    """Returns the rows of a benchmark's results that are there already; a file of something else has none.

    Args:
        out: as ``parse`` returns it.
        name: the benchmark's.
    """
    if out is None:
        return []
    try:
        rows: list[Row] = json.loads(path_of(out, name).read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return rows


def join_rows(before: Iterable[Row], new: Iterable[Row], key: Callable[[Row], Any]) -> list[Row]:
    """Returns all rows in the order of their keys; a new row takes the place of an earlier one of its key."""
    rows = {key(row): row for row in (*before, *new)}
    return [rows[one] for one in sorted(rows)]


def path_of(out: Path, name: str) -> Path:
    """Returns the file of a benchmark's results in a place that was named."""
    return out if _is_file(out) else out / f"{name}.json"


def _note(results: dict[str, Any], line: str, out: Path | None) -> dict[str, Any]:
    if "machine" in results or "rows" not in results:
        return {"benchmark": results["benchmark"], "command": line, **results}
    before = rows_there(out, results["benchmark"])
    rows = [row if row in before else {**row, "command": line} for row in results["rows"]]
    return {**results, "rows": rows}


def _write(text: str, name: str, out: Path | None) -> Path:
    if out is not None:
        path = path_of(out, name)
        path.write_text(text, encoding="utf-8")
        return path
    first = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    stems = chain([first], (f"{first}-{number}" for number in count(2)))
    while True:
        path = RUNS / f"{next(stems)}.json"
        # A picture may outlive its results, and is not overwritten either.
        if not path.with_suffix(".png").exists():
            with suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
                file.write(text)
                return path


def _is_file(out: Path) -> bool:
    """Returns whether a given place is a file. Every other place is a folder."""
    return out.suffix == ".json" and not out.is_dir()
