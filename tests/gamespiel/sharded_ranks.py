"""Scenarios of ranks that share a sharded base model; see ``tests/gamespiel/ranks.py``.

``torchrun … -m tests.gamespiel.sharded_ranks FOLDER [NAME …]`` plays all, or those that are named.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP

from gamespiel.agents.engines.base import layers_of, transformer_of
from gamespiel.agents.ranks import sharded
from gamespiel.agents.ranks.world import World
from tests.agents.families import FAMILIES
from tests.gamespiel import ranks
from tests.gamespiel.ranks import CPU, LAUNCH, config_of, describe_weights, error_of, play_all, stairs
from tests.gamespiel.runs import train_quietly

RUNS: dict[str, tuple[str, dict[str, str]]] = {
    "kuhn": ("kuhn", {}),
    # Three episodes, and one turn per optimizer step: one rank plays more, and one has nothing to read.
    "one turn": ("one turn", {}),
    "self-play": ("self-play", {"ppo__average_decay": "0.5"}),
    "pool": ("pool", {}),
    # Weights of a file lie at other addresses than those that were gathered, by which float sums may round.
    "text": ("text", {"model__random_weights": "true"}),
    "bfloat16": ("bfloat16", {}),
    "checkpointed": ("kuhn", {"model__gradient_checkpointing": "true"}),
    # A loss is of several forwards, which the way back passes one after the other.
    "split": ("kuhn", {"model__reading": "shared", "ppo__tokens_per_forward": "150"}),
    "evaluated": ("kuhn", {"run__eval_games": "2", "run__eval_steps": "1", "run__eval_episodes": "2"}),
}
"""Runs by name: that of ``ranks.PLAIN``, and what is changed in it."""

SHARDED = {"model__shard": "true"}

Fail = Callable[[int, torch.Tensor], bool]
"""Fails in a layer, or returns whether it has made it fail later."""

READ_FAMILIES = [name for name, family in FAMILIES.items() if family.answer == "id"]


# -- scenarios, each of which every rank calls ---------------------------------------------------------------


def train_both(name: str, folder: Path) -> None:
    """A run with a replicated base, and with a sharded one."""
    plain, changes = RUNS[name]
    for kind in ("replicated", "sharded"):
        more = changes | {"model__shard": str(kind == "sharded").lower()}
        train_quietly(config_of(plain, folder / name / kind, **more))


def measure_parts(folder: Path) -> Any:
    """How many of the layers' weights this rank has, whenever it plays or learns, and all ranks have."""
    world = World(LAUNCH, CPU)
    model = stairs(world, shard=True)
    layers = layers_of(transformer_of(model.policy.model))
    own: dict[str, list[int]] = {}

    def measure(phase: str, done: int, total: int) -> None:
        parts = [p for layer in layers for p in layer.parameters() if not p.requires_grad]
        numbers = [part.to_local().untyped_storage().nbytes() // 4 for part in parts]  # type: ignore[attr-defined]
        own[phase] = sorted({sum(numbers), *own.get(phase, [])})

    model.on_progress = measure
    measure("loaded", 0, 0)
    model.learn()
    measure("learned", 0, 0)
    world.close()
    return own


def train_families(folder: Path) -> Any:
    """Toy games on each family, replicated and sharded, in both ways to read; returns whether they differ."""
    found = {}
    for family in READ_FAMILIES:
        place = FAMILIES[family].save(folder / f"{family}-{LAUNCH.rank}")
        for reading in ("padded", "shared"):
            both = []
            for shard in (False, True):
                world = World(LAUNCH, CPU)
                model = stairs(world, model_name=place, random_weights=True, reading=reading, shard=shard)
                model.learn()
                world.close()
                both.append(describe_weights(model))
            found[f"{family}, {reading}"] = both[0] == both[1]
    return found


def train_failing(name: str, fail: Fail, folder: Path) -> str:
    """The second rank calls ``fail`` with the number and the states of each layer, until it has failed."""
    forward, layers, failed = Qwen3MLP.forward, list[Any](), list[bool]()

    def fail_or_go_on(self: Any, given: torch.Tensor) -> torch.Tensor:
        made = forward(self, given)
        if self not in layers:
            layers.append(self)
        if LAUNCH.rank == 1 and not failed:
            failed.append(True)
            if not fail(layers.index(self), made):
                failed.clear()
        return made

    with patch.object(Qwen3MLP, "forward", fail_or_go_on):
        return error_of(lambda: train_quietly(config_of("kuhn", folder / name, **SHARDED)))


def lack_memory(layer: int, states: torch.Tensor) -> bool:
    """Memory runs out in a forward of several texts, with gradients."""
    texts, tokens, _ = states.shape
    is_check = tokens == 3  # of the model, when it is loaded
    if layer > 0 or texts == 1 or is_check or not torch.is_grad_enabled():
        return False
    raise torch.OutOfMemoryError("no memory is left")


def lack_memory_on_way_back(layer: int, states: torch.Tensor) -> bool:
    """Memory runs out in the last layer: the others are still to come."""
    if layer == 0 or not torch.is_grad_enabled():
        return False

    def fail(gradient: torch.Tensor) -> None:
        raise torch.OutOfMemoryError("no memory is left")

    states.register_hook(fail)
    return True


def break_layer(layer: int, states: torch.Tensor) -> bool:
    """The layer cannot be read in the update of the first step."""
    if torch.is_grad_enabled():
        raise OSError("the layer has gone")
    return False


def die(layer: int, states: torch.Tensor) -> bool:
    if torch.is_grad_enabled():
        os.kill(os.getpid(), signal.SIGKILL)
    return False


def die_in_layer(folder: Path) -> str:
    """The second rank is killed in the middle of a forward; the first says what it finds."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of torchrun, which would end the first one too
    return train_failing("dead", die, folder)


def gather_again(folder: Path) -> tuple[str, int]:
    """There is no memory for the message with a layer's weights, once: it is tried again.

    Returns the error, and how often the failure was made.
    """
    allocate, failed = sharded._AllGather.allocate, list[bool]()

    def allocate_or_fail(self: Any, *given: Any, **more: Any) -> torch.Tensor:
        if LAUNCH.rank == 1 and not failed:
            failed.append(True)
            raise torch.OutOfMemoryError("no memory is left")
        return allocate(self, *given, **more)

    with patch.object(sharded._AllGather, "allocate", allocate_or_fail):
        error = error_of(lambda: train_quietly(config_of("kuhn", folder / "gathered again", **SHARDED)))
    return error, len(failed)


FAILURES: dict[str, Fail] = {
    "memory in a forward": lack_memory,
    "memory in a backward pass": lack_memory_on_way_back,
    "broken": break_layer,
}

SCENARIOS: dict[str, Callable[[Path], Any]] = {
    **{name: partial(train_both, name) for name in RUNS},
    "parts": measure_parts,
    "families": train_families,
    **{name: partial(train_failing, name, fail) for name, fail in FAILURES.items()},
    "gathered again": gather_again,
    "stopped": lambda folder: ranks.interrupt_one(folder, "", **SHARDED),
    "diverged": lambda folder: ranks.meet_infinity(folder, "", **SHARDED),
}


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    scenarios = SCENARIOS | ({"dead": die_in_layer} if names == ["dead"] else {})
    play_all({name: partial(own, folder) for name, own in scenarios.items()}, folder, names)


if __name__ == "__main__":
    main()
