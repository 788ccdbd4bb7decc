"""Baselines for traces, and what their results are sorted by."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from gamespiel.agents.noise import Stream, action_uniforms
from gamespiel.agents.policy import PolicySample
from gamespiel.agents.rollout import Decide, Episode, Masks, Turn
from gamespiel.assembly import trace_arguments
from gamespiel.config.sections import EnvConfig
from trace_gym.backends import Trace
from trace_gym.source import parse

REPLY_ENVIRONMENT = "CodeTrace-v0"


def echo(source: str) -> str:
    """The text literals of a program, a line each, in the order in which they stand there."""
    found: list[ast.Constant] = []

    def read(node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node)
        for child in ast.iter_child_nodes(node):
            read(child)

    read(parse(source))
    # Of an f-string, whose parts share its position in some versions of Python, the order is the tree's.
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return "\n".join(str(node.value) for node in found)


REPLIES: Mapping[str, Callable[[Trace], str]] = {
    "oracle": lambda trace: trace.truth,
    "empty": lambda trace: "",
    "echo": lambda trace: echo(trace.source),
}
"""Agents of CodeTrace-v0."""


def reply_episodes(
    config: EnvConfig, agent: str, seeds: Sequence[int], on_step: Callable[[bool], None] = lambda over: None
) -> list[Episode]:
    """Plays one episode of CodeTrace-v0 per seed, answered by one of `REPLIES`; calls `on_step` after each.

    A turn's action and what a policy would say of it are left at nothing: a reply has no number.
    """
    env = gym.make(REPLY_ENVIRONMENT, disable_env_checker=True, **trace_arguments(config))
    local: Any = env.unwrapped
    answer, episodes, no_mask = REPLIES[agent], [], np.zeros(0, dtype=np.bool_)
    try:
        for index, seed in enumerate(seeds):
            shown, _ = env.reset(seed=seed)
            final, reward, _, _, info = env.step(answer(local.trace))
            turn = Turn(shown, no_mask, -1, math.nan, math.nan, math.nan, float(reward))
            episodes.append(Episode(index, seed, info, [turn], final))
            on_step(True)
    finally:
        env.close()
    return episodes


def choice_agent(name: str, seed: int, episodes: int) -> Decide:
    """An agent of CodeTraceChoice-v0: `random` picks any of the options, `first` the first."""

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> PolicySample:
        options = masks.sum(axis=1)
        if name == "random":
            uniforms = action_uniforms(seed, 0, turn, 0, episodes, indices, Stream.BASELINE)
            rank = (uniforms * options).astype(np.int64)
        else:
            rank = np.zeros(len(indices), dtype=np.int64)
        # The legal action with that many legal ones before it.
        actions = np.argmax(masks.cumsum(axis=1) > rank[:, None], axis=1)
        zeros, no_model = torch.zeros(len(indices)), torch.full((len(indices),), torch.nan)
        return PolicySample(actions, zeros, zeros, no_model)

    return decide


def by_level_and_family(episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
    """Episodes by level and by family, each where there is more than one, and all of them."""
    groups: dict[str, list[Episode]] = {}
    for name in ("level", "family"):
        values = {episode.info[name] for episode in episodes} - {None}
        if len(values) > 1:
            for value in sorted(values):
                groups[f"{name} {value}"] = [e for e in episodes if e.info[name] == value]
    return {**groups, "all": list(episodes)}
