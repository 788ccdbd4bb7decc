"""Scenarios of ranks that share a sharded base model; see ``tests/gamespiel/ranks.py``.

``torchrun … -m tests.gamespiel.sharded_ranks FOLDER [NAME …]`` plays all, or those that are named.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP

from gamespiel.agents.engines.base import layers_of, transformer_of
from gamespiel.agents.models import loading, skeleton
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ranks import sharded
from gamespiel.agents.ranks.lock_step import LockStep, Want
from gamespiel.agents.ranks.world import World
from gamespiel.config import Config
from tests.agents.families import FAMILIES
from tests.gamespiel import ranks
from tests.gamespiel.ranks import CPU, LAUNCH, config_of, describe_weights, error_of, play_all, stairs
from tests.gamespiel.runs import train_quietly

RUNS: dict[str, tuple[str, dict[str, str]]] = {
    "kuhn": ("kuhn", {}),
    # Three episodes, and one turn per optimizer step: one rank plays more, and one has nothing to read.
    "one turn": ("one turn", {}),
    "self-play": ("self-play", {"ppo.average_decay": "0.5"}),
    "pool": ("pool", {}),
    # Weights of a file lie at other addresses than those that were gathered, by which float sums may round.
    "text": ("text", {"model.random_weights": "true"}),
    "bfloat16": ("bfloat16", {}),
    "checkpointed": ("kuhn", {"model.gradient_checkpointing": "true"}),
    # A loss is of several forwards, which the way back passes one after the other.
    "split": ("kuhn", {"model.reading": "shared", "ppo.tokens_per_forward": "150"}),
    "evaluated": ("kuhn", {"run.eval_games": "2", "run.eval_steps": "1", "run.eval_episodes": "2"}),
}
"""Runs by name: that of ``ranks.PLAIN``, and what is changed in it."""

SHARDED = {"model__shard": "true"}

READ_FAMILIES = [name for name, family in FAMILIES.items() if family.answer == "id"]


def run_config(name: str, folder: Path, *, shard: bool) -> Config:
    """Returns the configuration of a run with a replicated or a sharded base."""
    plain, changes = RUNS[name]
    more = changes | {"model.shard": str(shard).lower()}
    place = folder / name / ("sharded" if shard else "replicated")
    return config_of(plain, place, **{key.replace(".", "__"): value for key, value in more.items()})


# -- scenarios, each of which every rank calls ---------------------------------------------------------------


def train_both(name: str, folder: Path) -> Any:
    """A run with a replicated base, and with a sharded one; returns the passes that this rank made itself."""
    train_quietly(run_config(name, folder, shard=False))
    with counting() as passes:
        train_quietly(run_config(name, folder, shard=True))
    return passes


@contextmanager
def counting() -> Iterator[dict[str, int]]:
    """Counts the passes that this rank wants within the context."""
    begin, passes = LockStep.begin, {"FORWARD": 0, "BACKWARD": 0}

    def count(self: LockStep, want: Want) -> None:
        if want is not Want.NOTHING:
            passes[want.name] += 1
        begin(self, want)

    LockStep.begin = count  # type: ignore[method-assign]
    try:
        yield passes
    finally:
        LockStep.begin = begin  # type: ignore[method-assign]


def measure_parts(folder: Path) -> Any:
    """How many of the layers' weights this rank has, whenever it plays or learns, and all ranks have."""
    world, model_loaded = World(LAUNCH, CPU), list[int]()
    load = loading.load_base

    def note(*given: Any) -> Any:
        model_loaded.append(LAUNCH.rank)
        return load(*given)

    skeleton.load_base = note
    model = stairs(world, shard=True)
    skeleton.load_base = load
    layers = layers_of(transformer_of(model.policy.model))
    frozen = [p for layer in layers for p in layer.parameters() if not p.requires_grad]
    own: dict[str, set[int]] = {}

    def measure(phase: str, done: int, total: int) -> None:
        parts = [p for layer in layers for p in layer.parameters() if not p.requires_grad]
        assert all(isinstance(part, DTensor) for part in parts), phase
        numbers = [part.to_local().untyped_storage().nbytes() // 4 for part in parts]  # type: ignore[attr-defined]
        own.setdefault(phase, set()).add(sum(numbers))

    model.on_progress = measure
    measure("loaded", 0, 0)
    model.learn()
    measure("learned", 0, 0)
    world.close()
    return {
        "whole": sum(part.numel() for part in frozen),
        "own": {phase: sorted(numbers) for phase, numbers in own.items()},
        "loaded by": model_loaded,
    }


def play_faults(folder: Path) -> Any:
    """All episodes of the second rank are faults, so it has nothing to learn from, and takes part."""
    found = []
    for shard in (False, True):
        world = World(LAUNCH, CPU)
        model = stairs(world, random_weights=True, shard=shard)
        model.learn()
        world.close()
        found.append(describe_weights(model))
    return found


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


def run_out_of_memory(name: str, folder: Path) -> Any:
    """The second rank's memory runs out once, at the place that the name says."""
    with _MEMORY[name]():
        return error_of(lambda: train_quietly(config_of("kuhn", folder / name, **SHARDED)))


@contextmanager
def short_in_forward(*, learning: bool) -> Iterator[None]:
    """Memory runs out in a layer of a forward of several texts, with or without gradients."""

    def fail(states: torch.Tensor) -> None:
        texts, tokens, _ = states.shape
        is_check = tokens == 3  # of the model, when it is loaded
        if texts == 1 or is_check or torch.is_grad_enabled() is not learning:
            raise LookupError  # not yet
        raise torch.OutOfMemoryError("no memory is left")

    with failing_once(fail):
        yield


@contextmanager
def short_in_backward() -> Iterator[None]:
    """Memory runs out on the way back, in the last layer: the others are still to come."""

    def fail(states: torch.Tensor) -> None:
        if not torch.is_grad_enabled():
            raise LookupError  # not yet

        def fail_on_way_back(gradient: torch.Tensor) -> None:
            raise torch.OutOfMemoryError("no memory is left")

        states.register_hook(fail_on_way_back)

    with failing_once(fail, layer=1):
        yield


@contextmanager
def short_of_place() -> Iterator[None]:
    """There is no memory for the message with the first layer's weights, in a forward with gradients."""
    reach, allocate = LockStep.reach, sharded._AllGather.allocate
    learning, failed = [False], list[bool]()

    def note(self: LockStep, layer: int) -> None:
        learning[0] = torch.is_grad_enabled()
        reach(self, layer)

    def allocate_or_fail(self: Any, *given: Any, **more: Any) -> torch.Tensor:
        if LAUNCH.rank == 1 and learning[0] and len(failed) < 2:  # it is tried twice
            failed.append(True)
            raise torch.OutOfMemoryError("no memory is left")
        return allocate(self, *given, **more)

    LockStep.reach = note  # type: ignore[method-assign]
    sharded._AllGather.allocate = allocate_or_fail  # type: ignore[method-assign]
    try:
        yield
    finally:
        LockStep.reach = reach  # type: ignore[method-assign]
        sharded._AllGather.allocate = allocate  # type: ignore[method-assign]


_MEMORY: dict[str, Callable[[], Any]] = {
    "memory in play": partial(short_in_forward, learning=False),
    "memory in a forward": partial(short_in_forward, learning=True),
    "memory in a backward pass": short_in_backward,
    "memory for a layer": short_of_place,
}


@contextmanager
def failing_once(fail: Callable[[torch.Tensor], None], layer: int = 0) -> Iterator[None]:
    """Calls ``fail`` on the second rank with what a layer's feed-forward part makes.

    It is called in each forward, until it does not raise LookupError.
    """
    forward, parts, failed = Qwen3MLP.forward, list[Any](), list[bool]()

    def fail_or_go_on(self: Any, given: torch.Tensor) -> torch.Tensor:
        made = forward(self, given)
        if self not in parts:
            parts.append(self)
        if LAUNCH.rank == 1 and not failed and parts.index(self) == layer:
            failed.append(True)
            try:
                fail(made)
            except LookupError:
                failed.clear()
        return made

    Qwen3MLP.forward = fail_or_go_on
    try:
        yield
    finally:
        Qwen3MLP.forward = forward


def break_layer(folder: Path) -> Any:
    """The second rank's first layer cannot be read in the update of the first step."""

    def fail(states: torch.Tensor) -> None:
        if torch.is_grad_enabled():
            raise OSError("the layer has gone")
        raise LookupError

    with failing_once(fail):
        return error_of(lambda: train_quietly(config_of("kuhn", folder / "broken", **SHARDED)))


def die_in_layer(folder: Path) -> Any:
    """The second rank is killed in the middle of a forward; the first says what it finds."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of torchrun, which would end the first one too

    def die(states: torch.Tensor) -> None:
        if torch.is_grad_enabled():
            os.kill(os.getpid(), signal.SIGKILL)
        raise LookupError

    with failing_once(die):
        return error_of(lambda: train_quietly(config_of("kuhn", folder / "dead", **SHARDED)))


def shard_alone(folder: Path) -> Any:
    """Returns the errors of a second sharded model, and of a policy that does not know the ranks."""
    world = World(LAUNCH, CPU)
    model = stairs(world, shard=True)
    policy = model.policy
    layers = layers_of(transformer_of(policy.model))
    found = [
        error_of(lambda: world.shard(policy.model, layers, CPU)),
        error_of(
            lambda: LLMPolicy(
                policy.observation_space, policy.action_space, lambda _: 1e-3, model={"shard": True}
            )
        ),
    ]
    world.agree(False)
    world.close()
    return found


SCENARIOS: dict[str, Callable[[Path], Any]] = {
    **{name: partial(train_both, name) for name in RUNS},
    "parts": measure_parts,
    "faults": play_faults,
    "families": train_families,
    **{name: partial(run_out_of_memory, name) for name in _MEMORY},
    "stopped": lambda folder: ranks.interrupt_one(folder, "", **SHARDED),
    "diverged": lambda folder: ranks.meet_infinity(folder, "", **SHARDED),
    "refused": shard_alone,
    "broken": break_layer,
}


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    scenarios = SCENARIOS | ({"dead": die_in_layer} if names == ["dead"] else {})
    play_all({name: partial(own, folder) for name, own in scenarios.items()}, folder, names)


if __name__ == "__main__":
    main()
