"""Measures how fast a language model is trained: `python -m benchmarks.train_speed`.

The first model's ways to sample and to update race on the same turns, in turns in one process: the trainer's
reading `shared`, its reading `padded`, a forward for each legal action, and log-probabilities of the whole
vocabulary at all positions. Then whole training steps of every model are timed, each model in a process of
its own: 8 episodes of Leduc poker with rules, with 1 and 4 passes over their turns.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces

from benchmarks.ending import end, parse
from benchmarks.machine import machine
from benchmarks.train_step import (
    FORMULA,
    MODELS,
    apart,
    device,
    matrix_peak,
    measure_step,
    peak_memory,
    settings_of,
)
from benchmarks.train_ways import (
    MICRO_BATCH,
    TOKENS_PER_BACKWARD,
    EachAction,
    Everywhere,
    Ours,
    Timed,
    Turn,
    Way,
    collect,
    race,
    shape_of,
)
from gamespiel.agents.policy import LLMPolicy
from gamespiel.config.sections import EnvConfig

#: liars_dice: its tasks differ in dice, and so in actions.
LIARS_DICE = (1,)
FIVE = (0, 1, 2, 6, 7)
ABOUT_THIRTY = range(24, 37)
"""Numbers of legal actions of the turns on which every action is scored."""

SETTINGS: Mapping[str, EnvConfig] = {
    "leduc, rules": EnvConfig(game="leduc_poker", rules=True),
    "leduc": EnvConfig(game="leduc_poker", rules=False),
    "five games, rules": EnvConfig(allowed_game_indices=FIVE, rules=True),
    "five games": EnvConfig(allowed_game_indices=FIVE, rules=False),
    "30 actions": EnvConfig(allowed_game_indices=LIARS_DICE, rules=True),
}

RIVALS: Mapping[str, str] = {"leduc, rules": "everywhere", "30 actions": "each action"}
"""By setting, the way of others that is compared with ours."""

PHASES: Mapping[str, tuple[str, ...]] = {
    "leduc, rules": ("sample", "reference", "update"),
    "30 actions": ("sample", "update"),
}
"""By setting, the phases that are timed; ``sample`` and ``update`` elsewhere."""

TARGETS: Mapping[tuple[str, str], tuple[str, float]] = {
    ("leduc, rules", "padded"): ("update", 3.0),
    ("leduc", "padded"): ("update", 1.7),
    ("five games, rules", "padded"): ("update", 2.0),
    ("five games", "padded"): ("update", 1.0),
    ("leduc, rules", "everywhere"): ("all", 4.0),
    ("30 actions", "each action"): ("all", 10.0),
}
"""(setting, way) -> the phase, and how many times slower than `shared` the way should be on two cores."""


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.train_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model",
        nargs="+",
        choices=list(MODELS),
        default=["smollm2-135m", "qwen2.5-0.5b"],
        metavar="NAME",
        help=f"models; the ways race on the first: {', '.join(MODELS)} [smollm2-135m qwen2.5-0.5b]",
    )
    parser.add_argument("--turns", type=int, default=16, help="turns per setting [16]")
    parser.add_argument(
        "--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="NAME",
        help=f"where the ways race: {', '.join(map(repr, SETTINGS))} [all]",
    )  # fmt: skip
    parser.add_argument("--scored-turns", type=int, default=2, help="turns with about 30 actions [2]")
    parser.add_argument("--repetitions", type=int, default=2, help="of everything; medians are reported [2]")
    given = parse(parser, argv)

    first = given.model[0]
    ways = apart(measure_ways, first, given.settings, given.turns, given.scored_turns, given.repetitions)
    steps = {}
    for name in given.model:
        steps[name] = apart(measure_step, name, given.repetitions)
        show_step(name, steps[name])
    results = {
        "benchmark": "train_speed",
        "machine": machine() | hardware(),
        "repetitions": given.repetitions,
        "tokens_per_backward": TOKENS_PER_BACKWARD,
        "micro_batch_of_others": MICRO_BATCH,
        "ways": ways,
        "flops_formula": FORMULA,
        "steps": steps,
    }
    return end(results, given.out)


def hardware() -> dict[str, Any]:
    """Returns the facts that ``machine`` leaves out, and that matter here."""
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "kernel": platform.release().partition("-")[0],
        "load": [round(load, 2) for load in os.getloadavg()],
    }


# -- ways side by side -------------------------------------------------------------------------------------


def measure_ways(
    name: str, chosen: Sequence[str], turns: int, scored_turns: int, repetitions: int
) -> dict[str, Any]:
    """Returns seconds, ratios and tokens of all ways in all settings."""
    with settings_of(name) as settings:
        shared, padded = (make_policy(settings, reading) for reading in ("shared", "padded"))
    found = {}
    for setting, config in ((setting, SETTINGS[setting]) for setting in chosen):
        thirty = setting == "30 actions"
        some = collect(
            config,
            scored_turns if thirty else turns,
            shared.codec.encode_prompt,
            *([ABOUT_THIRTY] if thirty else []),
        )
        found[setting] = compare(setting, shared, padded, some, repetitions)
        show_ways({setting: found[setting]})
    return {
        "model": MODELS[name].name,
        "dtype": str(shared.dtype).removeprefix("torch."),
        "matrix_peak_gflops": round(matrix_peak(shared.dtype) / 1e9, 1),
        "settings": found,
        "peak_memory_gb": round(peak_memory() / 1e9, 2),
    }


def make_policy(settings: Any, reading: str) -> LLMPolicy:
    """Returns a policy for texts; the turns bring their legal actions."""
    return LLMPolicy(
        spaces.Text(1_000_000),
        spaces.Discrete(1),
        lambda remaining: 1e-5,
        model={**vars(settings), "reading": reading},
        device=device(),
    )


def compare(
    setting: str, shared: LLMPolicy, padded: LLMPolicy, turns: Sequence[Turn], repetitions: int
) -> dict[str, Any]:
    """Returns a setting's race; before it, each way reads a turn, to be warm."""
    ways: dict[str, Way] = {"shared": Ours(shared), "padded": Ours(padded)}
    rival = RIVALS.get(setting)
    if rival is not None:
        ways[rival] = {"everywhere": Everywhere, "each action": EachAction}[rival](padded)
    phases = PHASES.get(setting, ("sample", "update"))
    race(ways, phases, turns[:1], 1)
    return shape_of(turns) | summary(setting, race(ways, phases, turns, repetitions), len(turns))


def summary(setting: str, timed: Mapping[str, Mapping[str, Timed]], turns: int) -> dict[str, Any]:
    """Returns seconds, tokens per decision, and how many times slower than `shared` each way is.

    A ratio is the median over the repetitions; "all" compares the phases that a way has with the same phases
    of `shared`.
    """
    ratios: dict[str, dict[str, float]] = {}
    for name, phases in timed.items():
        if name == "shared":
            continue
        ours = timed["shared"]
        ratios[name] = {
            phase: round(_ratio([phases[phase].seconds], [ours[phase].seconds]), 2) for phase in phases
        }
        own = [each.seconds for each in phases.values()]
        ratios[name]["all"] = round(_ratio(own, [ours[phase].seconds for phase in phases]), 2)
    return {
        "seconds": {
            name: {phase: round(statistics.median(each.seconds), 4) for phase, each in phases.items()}
            for name, phases in timed.items()
        },
        "tokens_per_decision": {
            name: {phase: round(each.tokens / turns, 1) for phase, each in phases.items()}
            for name, phases in timed.items()
        },
        "times_slower_than_shared": ratios,
        "targets": {
            name: {"phase": phase, "target": target, "found": ratios[name][phase]}
            for (where, name), (phase, target) in TARGETS.items()
            if where == setting and name in ratios
        },
    }


def _ratio(others: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> float:
    """Returns the median over repetitions of the phases' sum of others over ours."""
    pairs = zip(zip(*others, strict=True), zip(*ours, strict=True), strict=True)
    return statistics.median(sum(other) / sum(own) for other, own in pairs)


# -- on the terminal ---------------------------------------------------------------------------------------


def show_ways(settings: Mapping[str, Any]) -> None:
    for setting, found in settings.items():
        print(
            f"{setting}: {found['turns']} turns, {found['legal_actions']} legal actions and "
            f"{found['tokens_per_prompt']} tokens each, {found['distinct_tokens_per_turn']} of them distinct"
        )
        for name, phases in found["seconds"].items():
            times = "  ".join(f"{phase} {seconds:7.2f} s" for phase, seconds in phases.items())
            slower = found["times_slower_than_shared"].get(name)
            print(
                f"  {name:<12} {times}"
                + (f"  {slower['all']:.2f} times slower than shared" if slower else "")
            )
        for name, target in found["targets"].items():
            print(
                f"  target: {name} {target['target']} times slower ({target['phase']}), {target['found']}",
                flush=True,
            )


def show_step(name: str, found: Mapping[str, Any]) -> None:
    for epochs, step in found["steps"].items():
        print(
            f"{name}, {epochs}: {step['seconds']:.2f} s, {step['sampled_tokens_per_second']:.0f} tokens/s "
            f"in sampling, {step['updated_tokens_per_second']:.0f} in updating, "
            f"{step['share_of_matrix_peak']:.0%} of {found['matrix_peak_gflops']} GFLOP/s, "
            f"{found['peak_memory_gb']} GB, {step['hours_for_10000_steps']:.1f} h for 10,000 steps",
            flush=True,
        )


if __name__ == "__main__":
    main()
