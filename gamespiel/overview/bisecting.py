"""``gamespiel runs diff --bisect``: the first decision at which two runs part, when both are played again."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.sampling.noise import Address
from gamespiel.assembly import connect_sampler, make_algorithm
from gamespiel.config import InvalidValueError
from gamespiel.environments.curriculum import add_stage_tasks
from gamespiel.environments.held_out import hold_out_tasks
from gamespiel.overview.reading import Run


class Choice(NamedTuple):
    """A decision of a step.

    Attributes:
        turn: The episode's turn.
        episode: The episode among those of the step.
        prompt: The prompt, as text.
        answer: The answer, as text.
    """

    turn: int
    episode: int
    prompt: str
    answer: str


def find_first_decision(first: Run, second: Run, step: int) -> tuple[Choice | None, Choice | None] | None:
    """Returns the first decision of a step that differs between two runs; None if all are equal.

    Each run is played again from its newest checkpoint before the step, on this machine, in memory: no folder
    is written to.

    Args:
        first: A run.
        second: Another one.
        step: The step, from 1.

    Returns:
        The decisions of both runs at the first place that differs; None for a run that makes none there.

    Raises:
        InvalidValueError: a run has no checkpoint before the step.
    """
    by_place = [{decision[:2]: decision for decision in play_again(run, step)} for run in (first, second)]
    for place in sorted(by_place[0].keys() | by_place[1].keys()):
        one, other = (decisions.get(place) for decisions in by_place)
        if one != other:
            return one, other
    return None


def play_again(run: Run, step: int) -> list[Choice]:
    """Returns the decisions of a run's step, which is played again.

    Raises:
        InvalidValueError: there is no checkpoint before the step.
    """
    before = [path for path in checkpoint.checkpoints(run.folder) if checkpoint.step_of(path) < step]
    if not before:
        raise InvalidValueError(
            f"--bisect: {run.folder} has no checkpoint before step {step}, to play it again from; keep more "
            "of them (run.keep_checkpoints)"
        )
    config = hold_out_tasks(add_stage_tasks(run.config))
    model = make_algorithm(dataclasses.replace(config, run=dataclasses.replace(config.run, report_to=())))
    connect_sampler(config, model.policy)
    checkpoint.load(model, before[-1])
    recorder = _Recorder(model.policy.sampler, step - 1)
    model.policy.sampler = recorder
    with tempfile.TemporaryDirectory() as folder:
        model.set_logger(Logger(folder, []))
        model.learn(callback=_StopAfter(step))
    decode = model.policy.codec.tokenizer.decode
    return [
        Choice(turn, episode, decode(list(prompt)), decode(list(tokens)))
        for turn, episode, prompt, tokens in recorder.decisions
    ]


class _Recorder:
    """A sampler that keeps the decisions of one step; all else is the sampler's own."""

    def __init__(self, sampler: Any, step: int) -> None:
        self._sampler, self._step = sampler, step
        self.decisions: list[tuple[int, int, Sequence[int], Sequence[int]]] = []

    def sample(self, requests: Sequence[Request]) -> list[Decision]:
        sampled: list[Decision] = self._sampler.sample(requests)
        for request, decision in zip(requests, sampled, strict=True):
            noise = request.noise
            if isinstance(noise, Address) and noise.step == self._step:
                self.decisions.append((noise.turn, noise.episode, decision.prompt, decision.tokens))
        return sampled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


class _StopAfter(BaseCallback):
    """Ends training when a step is complete: the next one is begun, and discarded."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self._last = step

    def _on_step(self) -> bool:
        model: LLMPPO = self.model  # type: ignore[assignment]
        return model.step < self._last


def describe_place(decisions: tuple[Choice | None, Choice | None], first: Path, second: Path) -> list[str]:
    """Returns what is said of the first decision that differs."""
    one, other = decisions
    either = one or other
    assert either is not None
    lines = [f"the first decision that differs: episode {either.episode}, turn {either.turn}"]
    if one is not None and other is not None and one.prompt == other.prompt:
        return [*lines, one.prompt, f"{first} answers {one.answer!r}, {second} answers {other.answer!r}"]
    for folder, decision in ((first, one), (second, other)):
        does = "decides nothing there" if decision is None else f"is asked:\n{decision.prompt}"
        lines.append(f"{folder} {does}")
    return lines
