"""Checks a GPU in one command: `python -m benchmarks.gpu.check --out PATH`.

Stages run in the order of their worth, each within the seconds that are left. A stage that fails does not
cost the others. After each, the file has all results so far. Without a GPU, `--small` runs the same code on
small models: it finds what would fail for a trivial reason, and its times mean nothing. The stages are
described in `benchmarks/README.md`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.ending import RUNS, Row, end, machine, make_parser, parse, path_of
from benchmarks.gpu.timing import CUDA, attempt, release

STAGES: Mapping[str, tuple[str, int]] = {
    "facts": ("hardware", 5),
    "sdpa": ("hardware", 25),
    "numerics": ("numerics", 30),
    "bf16": ("training", 60),
    "nf4": ("training", 50),
    "oom": ("training", 15),
    "tiny": ("numerics", 40),
    "five": ("training", 40),
    "smollm2": ("numerics", 90),
}
"""Per stage, the module of this package with a function of its name, and about the seconds that it takes.

It may take twice as long, and begins if half of them are left.
"""


def run_stage(name: str, options: argparse.Namespace, end_by: float) -> Row:
    """Returns a stage's results; a module that cannot be imported fails alone."""
    module, seconds = STAGES[name]
    begun = time.perf_counter()
    if end_by - begun < seconds / 2:
        return {"left_out": f"{end_by - begun:.0f} s were left"}
    print(f"== {name}, {end_by - begun:.0f} s left", flush=True)
    until = min(end_by, begun + 2 * seconds)
    row = attempt(lambda: getattr(import_module(f"benchmarks.gpu.{module}"), name)(options, until))
    row["stage_seconds"] = round(time.perf_counter() - begun, 1)
    text = json.dumps(row, default=str)
    print(f"   {text}", flush=True)
    return dict(json.loads(text, parse_constant=str))  # JSON has no NaN


def main(argv: Sequence[str] | None = None) -> Row:
    """Runs the stages and returns their results."""
    begun = time.perf_counter()
    parser = make_parser("gpu.check", __doc__)
    add = parser.add_argument
    add("--stages", nargs="+", default=list(STAGES)[:-1], choices=STAGES, help="[all but smollm2]")
    add("--seconds", type=float, default=350.0, metavar="N", help="after which no stage begins [350]")
    add("--small", action="store_true", help="small models: for a machine without a GPU")
    add("--architecture", default="Qwen/Qwen3-4B", metavar="NAME", help="[Qwen/Qwen3-4B]")
    add("--tokenizer", metavar="DIR", help="a folder of its tokenizer [the embedded model's]")
    add("--smollm2", metavar="FILE", help="weights for the stage of that name [the model hub's]")
    options = parse(parser, argv)
    if not CUDA and not options.small:
        parser.error("PyTorch finds no GPU; add --small to try the stages on small models")
    path = path_of(options.out or RUNS / time.strftime("gpu.check-%Y%m%d-%H%M%S.json"), "gpu.check")
    options.learner = None  # the learner of the stage bf16, which other stages share
    results: Row = {"benchmark": "gpu.check", "machine": machine(), "small": options.small, "stages": {}}
    for name in options.stages:
        results["stages"][name] = run_stage(name, options, begun + options.seconds)
        results["seconds"] = round(time.perf_counter() - begun, 1)
        save(results, path)
        release()
    return end(results, path)


def save(results: Row, path: Path) -> None:
    """Replaces the file at once, so that a run that is killed leaves whole results."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    main()
