"""Measures how fast a language model is trained: `python -m benchmarks.train_speed`.

Whole training steps of every model are timed, in both readings: 8 episodes of a game with rules, with 1 and
4 passes over their turns. Each model and reading has a process of its own, so that its peak of memory is its
own.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import platform
import resource
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from benchmarks.ending import end, machine, make_parser, parse
from benchmarks.gpu.models import make_algorithm, make_step, write_model
from benchmarks.gpu.timing import matrix_peak
from game_gym.games import TABLE
from gamespiel.agents.models.architectures import KNOWN, architecture_of
from gamespiel.agents.models.loading import TINY, ModelSettings
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.config.sections import EnvConfig

READINGS = ("shared", "padded")

Steps = Mapping[str, Any]
"""A model in one reading, as ``measure_step`` returns it."""

EPISODES = 8
STEPS = 10_000

EPOCHS = 1, 4
"""Passes over the turns of a step."""

FORMULA = (
    "FLOPs = 2 (P + A) (sampled + updated) + (2 P + 4 A) backward: P parameters of the layers' linear "
    "modules, A of the adapters; tokens read in sampling, in all passes of the update, and in those with "
    "gradients, which compute no gradient of P; attention and head are left out"
)


class Shape(NamedTuple):
    """A model of the benchmark.

    Attributes:
        name: Its hub name, or ``tiny``.
        pretrained: Whether its weights are loaded; else they are random.
        dtype: The type in which it computes.
        use_4bit: Whether its linear layers have 4 bits.
    """

    name: str
    pretrained: bool = False
    dtype: str = "bfloat16"
    use_4bit: bool = False


MODELS: Mapping[str, Shape] = {
    "tiny": Shape("tiny", pretrained=True, dtype="float32"),
    "smollm2-135m": Shape("HuggingFaceTB/SmolLM2-135M-Instruct", pretrained=True),
    "qwen2.5-0.5b": Shape("Qwen/Qwen2.5-0.5B-Instruct"),
    "qwen3-4b": Shape("Qwen/Qwen3-4B"),
    "qwen3-4b-4bit": Shape("Qwen/Qwen3-4B", use_4bit=True),
}


@contextmanager
def settings_of(name: str, tokenizer: str | None) -> Iterator[ModelSettings]:
    """Yields a model's settings. An architecture without weights gets a folder within the context.

    Args:
        name: One of ``MODELS``.
        tokenizer: A folder with the tokenizer of those without weights; by default the embedded model's.
    """
    shape = MODELS[name]
    if shape.pretrained:
        yield ModelSettings(shape.name, dtype=shape.dtype)
        return
    with write_model(KNOWN[shape.name], tokenizer or TINY) as folder:
        yield ModelSettings(folder, dtype=shape.dtype, random_weights=True, use_4bit=shape.use_4bit)


def peak_memory() -> int:
    """Returns the peak of a GPU's allocated memory in bytes, on a CPU that of the process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure_step(
    name: str,
    repetitions: int,
    reading: Literal["shared", "padded"],
    game: str,
    tokenizer: str | None,
) -> dict[str, Any]:
    """Returns times, tokens and memory of whole steps on a game with rules."""
    with settings_of(name, tokenizer) as settings:
        model = dataclasses.replace(settings, reading=reading)
        env = EnvConfig(game=game, opponent="random", rules=True)
        algorithm = make_algorithm(model, env, EPISODES, num_train_steps=1)
    policy = algorithm.policy
    layers = architecture_of(MODELS[name].name).linear_parameters
    _warm_up(policy)
    peak = matrix_peak(policy.engine.dtype)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()  # its matrices are no part of a step
    steps: dict[int, list[dict[str, float]]] = {number: [] for number in EPOCHS}
    for _ in range(repetitions):
        for number in EPOCHS:
            steps[number].append(_step(algorithm, layers, number, peak))
    return {
        "model": MODELS[name].name,
        "dtype": str(policy.engine.dtype).removeprefix("torch."),
        "bits": 4 if MODELS[name].use_4bit else None,
        "weights": "pretrained" if MODELS[name].pretrained else "random",
        "reading": policy.engine.reading,
        "layer_parameters": layers,
        "adapter_parameters": sum(p.numel() for p in policy.adapter_parameters()),
        "matrix_peak_gflops": round(peak / 1e9, 1),
        "peak_memory_gb": round(peak_memory() / 1e9, 2),
        "steps": {
            f"ppo_epochs_{number}": {
                key: round(statistics.median(step[key] for step in samples), 4) for key in samples[0]
            }
            for number, samples in steps.items()
        },
    }


def _warm_up(policy: LLMPolicy) -> None:
    masks = np.ones((1, int(policy.action_space.n)), dtype=bool)  # type: ignore[attr-defined]
    values, log_probs, _ = policy.evaluate_actions(["warm up"], np.array([0]), masks)
    (values.sum() + log_probs.sum()).backward()
    policy.optimizer.zero_grad(set_to_none=True)


def _step(algorithm: LLMPPO, layers: int, epochs: int, peak: float) -> dict[str, float]:
    """Makes one step; returns what it took."""
    algorithm.hyperparameters = dataclasses.replace(algorithm.hyperparameters, ppo_epochs=epochs)
    row = make_step(algorithm)
    decisions: int = row["decisions"]
    collecting, updating = row["time/collect_seconds"], row["time/update_seconds"]
    sampled = row["rollout/tokens_per_decision"] * decisions
    updated = row["train/tokens_per_decision"] * decisions
    adapters = sum(p.numel() for p in algorithm.policy.adapter_parameters())
    twice = algorithm.policy.engine.dtype != torch.float32
    work = flops(layers, adapters, sampled, updated, epochs, twice=twice)
    return {
        "seconds": collecting + updating,
        "collect_seconds": collecting,
        "update_seconds": updating,
        "decisions": decisions,
        "sampled_tokens_per_decision": row["rollout/tokens_per_decision"],
        "updated_tokens_per_decision": row["train/tokens_per_decision"],
        "sampled_tokens_per_second": sampled / collecting,
        "updated_tokens_per_second": updated / updating,
        "share_of_matrix_peak": work / (collecting + updating) / peak,
        f"hours_for_{STEPS}_steps": (collecting + updating) * STEPS / 3600,
    }


def flops(layers: int, adapters: int, sampled: float, updated: float, epochs: int, *, twice: bool) -> float:
    """Returns the operations of a step by ``FORMULA``.

    Args:
        layers: P of the formula.
        adapters: A of the formula.
        sampled: Tokens read in sampling.
        updated: Tokens read in the update: once for the reference and once per epoch.
        epochs: Passes with gradients.
        twice: Whether one more pass replaces the rollout's log-probabilities, as in all types but float32.
    """
    backward = updated * epochs / (epochs + 1 + twice)
    return 2 * (layers + adapters) * (sampled + updated) + (2 * layers + 4 * adapters) * backward


# -- the run -----------------------------------------------------------------------------------------------


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
            settings = (arguments.repetitions, reading, arguments.game, arguments.tokenizer)
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                steps[name][reading] = pool.submit(measure_step, name, *settings).result()
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
