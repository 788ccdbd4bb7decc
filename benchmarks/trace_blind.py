"""Measures how much the outputs of a choice tell without its program: `python -m benchmarks.trace_blind`.

A conditional logit model is fitted on tasks of `CodeTraceChoice-v0`, and guesses on others. It is linear in
features of an output: its words, its pairs of words, its length, and its likeness to the other options. It
never sees a program. It is fitted twice, over the same outputs. First, the output of the version shown is the
true one, as in the environment. Second, the output of the task's own program is the true one, as if that
program were always shown. The second result tells what such a model can find.

The measures are the mean probability of the true output, and how often it has the highest one (if several are
equal, its share), with 95% Wilson intervals, beside a uniform guess on the same tasks. Tasks that were
replaced for having too few versions have no output of their own program, and are left out of the second fit.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.ending import end, parse
from benchmarks.machine import machine
from gamespiel.agents.runs.stats import Interval, wilson
from trace_gym.backends import LocalBackend
from trace_gym.mutants.choices import OPTIONS
from trace_gym.programs.builtin import ids_of
from trace_gym.programs.sources import open_source

#: Columns for words and pairs of words, which a hash assigns.
COLUMNS = 4096

_WORD = re.compile(r"[A-Za-z_]+|\d+|[^\sA-Za-z_\d]|\n")


class Question(NamedTuple):
    """Outputs to choose from, and the index of the true one."""

    outputs: list[str]
    truth: int


def questions(
    level: int | None, family: str | None, count: int
) -> tuple[list[Question], list[Question | None]]:
    """Returns the first ``count`` tasks as the environment asks them, and with their own programs shown.

    In the second list, a task whose program was replaced is None.
    """
    drawn: list[Question] = []
    own: list[Question | None] = []
    source = open_source("builtin")
    choosing, bare = (LocalBackend(source, "safe", options) for options in (True, False))
    for task_id in islice(ids_of(level=level, family=family), count):
        trace, program = choosing.load(task_id), bare.load(task_id)
        outputs = sorted([trace.truth, *trace.false])
        drawn.append(Question(outputs, outputs.index(trace.truth)))
        own.append(Question(outputs, outputs.index(program.truth)) if program.truth in outputs else None)
        if len(drawn) % 500 == 0:
            print(f"{len(drawn)} tasks made", flush=True)
    choosing.close()
    return drawn, own


def features(outputs: Sequence[str]) -> Tensor:
    """Returns the features of each output: float32, shape (outputs, COLUMNS + 4)."""
    found = torch.zeros(len(outputs), COLUMNS + 4)
    bags = [Counter(_words(output)) for output in outputs]
    lines = [set(output.split("\n")) for output in outputs]
    for row, (output, bag) in enumerate(zip(outputs, bags, strict=True)):
        for word, count in bag.items():
            found[row, zlib.crc32(word.encode()) % COLUMNS] += math.log1p(count)
        others = [other for other in range(len(outputs)) if other != row]
        found[row, COLUMNS:] = torch.tensor(
            [
                math.log1p(len(output)),
                math.log1p(len(lines[row])),
                sum(len(lines[row] & lines[other]) / len(lines[row] | lines[other]) for other in others),
                sum((bag & bags[other]).total() / (bag | bags[other]).total() for other in others),
            ]
        )
    return found


def _words(output: str) -> Iterator[str]:
    words = _WORD.findall(output)
    yield from words
    yield from map("~".join, pairwise(words))


def tensors(asked: Sequence[Question]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns features, the mask of existing options, and the true options.

    Returns:
        Features, float32, shape (questions, OPTIONS, columns); mask, bool, shape (questions, OPTIONS), True =
        exists; indices of the true options, int64, shape (questions,).
    """
    values = torch.zeros(len(asked), OPTIONS, COLUMNS + 4)
    there = torch.zeros(len(asked), OPTIONS, dtype=torch.bool)
    for number, question in enumerate(asked):
        values[number, : len(question.outputs)] = features(question.outputs)
        there[number, : len(question.outputs)] = True
    return values, there, torch.tensor([question.truth for question in asked])


def guesses(known: Sequence[Question], asked: Sequence[Question], steps: int = 200) -> Tensor:
    """Returns log-probabilities of the options by a model fitted on ``known``, shape (asked, OPTIONS)."""
    values, there, truth = tensors(known)
    # The minimum keeps words that are rare in `known` from weighing far too much in `asked`.
    mean, deviation = values[there].mean(0), values[there].std(0).clamp_min(0.05)
    weights = torch.zeros(values.shape[-1], requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.02)
    values = (values - mean) / deviation
    for _ in range(steps):
        logits = (values @ weights).masked_fill(~there, -math.inf)
        loss = torch.nn.functional.cross_entropy(logits, truth) + 3e-3 * weights.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    values, there, _ = tensors(asked)
    with torch.no_grad():
        logits = ((values - mean) / deviation) @ weights
        return logits.masked_fill(~there, -math.inf).log_softmax(1)


def measured(known: Sequence[Question], asked: Sequence[Question]) -> dict[str, Any]:
    """Returns the measures of a model fitted on ``known``, over ``asked``."""
    found = guesses(known, asked)
    truth = torch.tensor([question.truth for question in asked])
    right = found.gather(1, truth[:, None])
    # Rounded, because sums in another order may differ in the last digit.
    best = found.round(decimals=4)
    ties = best == best.max(1, keepdim=True).values
    greedy = (ties.gather(1, truth[:, None]).squeeze(1) / ties.sum(1)).sum()
    return {
        "fitted_on": len(known),
        "asked": len(asked),
        "uniform": round(sum(1 / len(question.outputs) for question in asked) / len(asked), 4),
        "probability": [round(value, 4) for value in wilson(float(right.exp().sum()), len(asked))],
        "greedy": [round(value, 4) for value in wilson(float(greedy), len(asked))],
    }


def table(results: dict[str, Any]) -> str:
    """Returns the results as a table, in percent."""
    lines = [f"{'true is what is printed by':<32}{'uniform':>9}{'probability':>22}{'greedy':>22}"]
    for key, name in (("drawn", "the version that is shown"), ("own", "the task's own program")):
        row = results[key]
        shares = (
            f"{share.mean:.1%} ({100 * share.low:.1f}–{100 * share.high:.1f})"
            for share in (Interval(*row["probability"]), Interval(*row["greedy"]))
        )
        lines.append(f"{name:<32}{row['uniform']:>9.1%}" + "".join(f"{share:>22}" for share in shares))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trace_blind",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--level", type=int, default=1, help="of the programs [1]")
    parser.add_argument("--family", default="sorting", help='of the programs, or "all" [sorting]')
    parser.add_argument("--known", type=int, default=3000, help="tasks to fit on [3000]")
    parser.add_argument("--asked", type=int, default=1000, help="tasks to guess on [1000]")
    given = parse(parser, argv)
    family = None if given.family == "all" else given.family

    drawn, own = questions(given.level, family, given.known + given.asked)
    known, asked = own[: given.known], own[given.known :]
    results: dict[str, Any] = {
        "benchmark": "trace_blind",
        "machine": machine() | {"torch": torch.__version__},
        "level": given.level,
        "family": given.family,
        "drawn": measured(drawn[: given.known], drawn[given.known :]),
        "own": measured([one for one in known if one], [one for one in asked if one]),
    }
    print(table(results))
    return end(results, given.out)


if __name__ == "__main__":
    main()
