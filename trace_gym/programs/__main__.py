"""A description of the builtin programs: `python -m trace_gym.programs --level 3`.

Takes the first programs of a level, of a family, or of both, and shows the spread of their cost, output and
length, one row per family and level. `--show ID` prints one program, its input and its output.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from task_gym.errors import TaskGymError
from trace_gym.admission.measure import Measured
from trace_gym.programs.builtin import LEVELS, NAMES, ids_of, make, split
from trace_gym.programs.builtin.levels import level_of, points
from trace_gym.programs.builtin.tasks import cells

_SPREADS: dict[str, Callable[[Measured], int]] = {
    "cost": points,
    "lines": lambda measured: measured.lines,
    "output": lambda measured: measured.output_lines,
    "live": lambda measured: measured.live,
    "depth": lambda measured: measured.depth,
}
"""Each column's heading and its value for one program."""

_WIDTH = 120
"""The least width of the table, in characters."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trace_gym.programs", description=__doc__)
    parser.add_argument("--level", type=int, help=f"{LEVELS[0]} … {LEVELS[-1]}; without it, all of them")
    parser.add_argument("--family", help=f"{', '.join(NAMES)}; without it, all of them")
    parser.add_argument("--samples", type=int, default=50, help="programs a row [50]")
    parser.add_argument("--show", type=int, metavar="ID", help="print the program of this task id instead")
    arguments = parser.parse_args(argv)
    if arguments.samples < 1:
        parser.error(f"--samples: {arguments.samples} was given, allowed: 1 and more")
    try:
        if arguments.show is not None:
            print(describe(arguments.show), end="")
        else:
            console = Console(width=max(Console().width, _WIDTH))
            console.print(table(arguments.level, arguments.family, arguments.samples))
    except TaskGymError as error:
        parser.error(str(error))
    return 0


def describe(task_id: int) -> str:
    """Returns a program, its input and its output as text."""
    made = make(task_id)
    program, measured = made.program, made.measured
    parts = [
        f"task {task_id}: {program.family}, level {program.level}, {points(measured)} points; "
        f"lines {measured.lines}, live {measured.live}, depth {measured.depth}",
        program.code,
    ]
    parts += [f"input:\n{program.stdin}"] if program.stdin else []
    return "\n".join([*parts, f"output:\n{measured.stdout}"])


def table(level: int | None, family: str | None, samples: int) -> Table:
    """Returns a summary of the first programs of each family and level.

    Raises:
        ArgumentError: there is no such level or family.
    """
    kinds = map(split, cells(level, family))
    result = Table(
        title=f"builtin programs, {samples} a row; 10%/median/90%",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in ("family", "level", "band", *_SPREADS, "text", "distinct", "in band"):
        result.add_column(name, justify="left" if name == "family" else "right")
    for name, number in sorted(kinds, key=lambda kind: NAMES.index(kind[0])):
        ids = ids_of(number, name)
        made = [make(ids[position]) for position in range(samples)]
        band = level_of(number)
        result.add_row(
            name,
            str(number),
            f"{band.low}–{band.high}",
            *(_spread([value(one.measured) for one in made]) for value in _SPREADS.values()),
            _spread([len(one.program.code) for one in made]),
            f"{len({(one.program.code, one.program.stdin) for one in made}) / samples:.0%}",
            f"{sum(not one.misses for one in made) / samples:.0%}",
        )
    return result


def _spread(values: list[int]) -> str:
    ordered = sorted(values)
    return "/".join(str(ordered[len(ordered) * tenths // 10]) for tenths in (1, 5, 9))


if __name__ == "__main__":
    raise SystemExit(main())
