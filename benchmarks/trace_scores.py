"""Measures what simple answers score in each family of programs: `python -m benchmarks.trace_scores`.

The tasks are the first of each family, with all levels alike often. None of the answers traces a program:

- of `CodeTraceChoice-v0`: `random` picks any output; `words` picks the output with the largest share of words
  that are in the program shown. Both are computed over all choices that may be made, and not drawn.
- of `CodeTrace-v0`: `empty` replies nothing, and `echo` with the program's text literals, one per line, as
  `eval.py --agent` does. They are scored in every way.

`--families` measures a part; with `--keep` or `--out` the part takes the place of the same rows in the
results that are there. Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from benchmarks.ending import Row, end, join_rows, machine, make_parser, parse, rows_there
from gamespiel.kinds.traces.kind import REPLIES
from task_gym.stats import wilson
from trace_gym.backends import LocalBackend, Trace
from trace_gym.programs.builtin import NAMES, ids_of
from trace_gym.programs.sources import open_source
from trace_gym.score import SCORINGS, scores

#: Tasks of each family: 20 per level.
TASKS = 200

#: The answers that are measured, by environment.
CHOICES, WRITTEN = ("random", "words"), ("empty", "echo")

_WORD = re.compile(r"\w+")


def best_by_words(code: str, outputs: Sequence[str]) -> list[int]:
    """Returns the indices of the outputs with the largest share of words that the program has."""
    known = set(_WORD.findall(code))
    shares = []
    for output in outputs:
        words = _WORD.findall(output)
        shares.append(sum(word in known for word in words) / max(1, len(words)))
    return [index for index, share in enumerate(shares) if share == max(shares)]


def chosen(trace: Trace) -> dict[str, float]:
    """Returns the probability of the true output, by kind of choice."""
    outputs = [trace.truth, *trace.false]
    best = best_by_words(trace.code, outputs)
    return {"random": 1 / len(outputs), "words": (0 in best) / len(best)}


def measured(family: str, tasks: int) -> Row:
    """Returns the row of a family: shares of right choices, with 95% intervals, and mean scores."""
    source, started = open_source("builtin"), time.perf_counter()
    choosing, bare = (LocalBackend(source, "safe", options) for options in (True, False))
    right = dict.fromkeys(CHOICES, 0.0)
    paid = {name: dict.fromkeys(SCORINGS, 0.0) for name in WRITTEN}
    for task_id in islice(ids_of(family=family), tasks):
        for name, share in chosen(choosing.load(task_id)).items():
            right[name] += share
        trace = bare.load(task_id)
        for name, sums in paid.items():
            for scoring, score in scores(trace.truth, REPLIES[name](trace)).items():
                sums[scoring] += score
    choosing.close()
    bare.close()
    return {
        "family": family,
        "tasks": tasks,
        "choices": {name: [round(bound, 4) for bound in wilson(sum_, tasks)] for name, sum_ in right.items()},
        "replies": {
            name: {scoring: round(total / tasks, 4) for scoring, total in sums.items()}
            for name, sums in paid.items()
        },
        "seconds": round(time.perf_counter() - started, 1),
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = make_parser("trace_scores", __doc__)
    parser.add_argument("--families", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help="[all]")
    parser.add_argument("--tasks", type=int, default=TASKS, help=f"tasks of each family [{TASKS}]")
    arguments = parse(parser, argv)
    before = [row for row in rows_there(arguments.out, "trace_scores") if row["family"] in NAMES]
    rows = []
    for family in arguments.families:
        rows.append(measured(family, arguments.tasks) | {"machine": machine()})
        print(rows[-1], flush=True)
    joined = join_rows(before, rows, lambda row: NAMES.index(row["family"]))
    return end({"benchmark": "trace_scores", "rows": joined}, arguments.out)


if __name__ == "__main__":
    main()
