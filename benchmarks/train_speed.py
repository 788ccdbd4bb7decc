"""Measures how fast a language model is trained: `python -m benchmarks.train_speed`.

Whole training steps of every model are timed, in both readings: 8 episodes of a game with rules, with 1 and
4 passes over their turns. Each model and reading has a process of its own, so that its peak of memory is its
own.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from benchmarks.ending import end, machine, make_parser, parse
from benchmarks.train_step import FORMULA, MODELS, apart, measure_step
from game_gym.games import TABLE

READINGS = ("shared", "padded")

Steps = Mapping[str, Any]
"""A model in one reading, as ``measure_step`` returns it."""


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = make_parser("train_speed", __doc__)
    parser.add_argument(
        "--model",
        nargs="+",
        choices=list(MODELS),
        default=["smollm2-135m", "qwen2.5-0.5b"],
        metavar="NAME",
        help=f"models: {', '.join(MODELS)} [smollm2-135m qwen2.5-0.5b]",
    )
    parser.add_argument("--readings", nargs="+", choices=READINGS, default=READINGS, help="[both]")
    parser.add_argument("--game", choices=TABLE, default="leduc_poker", metavar="GAME", help="[leduc_poker]")
    parser.add_argument("--repetitions", type=int, default=2, help="of every step; medians are reported [2]")
    parser.add_argument(
        "--tokenizer", metavar="DIR", help="that of models without weights [the embedded model's]"
    )
    arguments = parse(parser, argv)

    steps: dict[str, dict[str, Steps]] = {}
    for name in arguments.model:
        steps[name] = {}
        for reading in arguments.readings:
            settings = (arguments.repetitions, (1, 4), reading, arguments.game, arguments.tokenizer)
            steps[name][reading] = apart(measure_step, name, *settings)
            show(name, reading, steps[name][reading])
    results = {
        "benchmark": "train_speed",
        "machine": machine() | hardware(),
        "game": arguments.game,
        "tokenizer": arguments.tokenizer,
        "repetitions": arguments.repetitions,
        "flops_formula": FORMULA,
        "steps": steps,
        "padded_over_shared": {name: compare(timings) for name, timings in steps.items() if len(timings) > 1},
    }
    return end(results, arguments.out)


def hardware() -> dict[str, Any]:
    """Returns the facts that ``machine`` leaves out, and that matter here."""
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "kernel": platform.release().partition("-")[0],
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def compare(readings: Mapping[str, Steps]) -> dict[str, dict[str, float]]:
    """Returns how many times as long a decision takes padded as shared, in each phase, by passes."""
    shared, padded = (readings[reading]["steps"] for reading in READINGS)
    return {
        epochs: {
            phase: round(
                (padded[epochs][phase] / padded[epochs]["decisions"])
                / (shared[epochs][phase] / shared[epochs]["decisions"]),
                2,
            )
            for phase in ("collect_seconds", "update_seconds", "seconds")
        }
        for epochs in shared
    }


def show(name: str, reading: str, figures: Steps) -> None:
    for epochs, step in figures["steps"].items():
        print(
            f"{name}, {reading}, {epochs}: {step['seconds']:.2f} s, "
            f"{step['sampled_tokens_per_second']:.0f} tokens/s in sampling, "
            f"{step['updated_tokens_per_second']:.0f} in updating, "
            f"{step['share_of_matrix_peak']:.0%} of {figures['matrix_peak_gflops']} GFLOP/s, "
            f"{figures['peak_memory_gb']} GB, {step['hours_for_10000_steps']:.1f} h for 10,000 steps",
            flush=True,
        )


if __name__ == "__main__":
    main()
