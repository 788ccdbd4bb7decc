"""The baselines of code tracing: replies that are made of a program, and choices among outputs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gamespiel.kinds.episodes import answers_of

if TYPE_CHECKING:
    from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep
    from gamespiel.agents.sampling.decisions import Answer
    from trace_gym.backends import Trace

REPLIES: Mapping[str, Callable[[Trace], str]] = {
    "oracle": lambda trace: trace.truth,
    "empty": lambda trace: "",
    "echo": lambda trace: echo_texts(trace.code),
}
"""Baselines of CodeTrace-v0 by name: a trace to its reply."""

CHOICES = ("random", "first")
"""Baselines of CodeTraceChoice-v0."""


def echo_texts(code: str) -> str:
    """Returns a program's text literals, one per line, in the order of the program."""
    from trace_gym.syntax import parse

    literals: list[ast.Constant] = []

    def collect_texts(node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            literals.append(node)
        for child in ast.iter_child_nodes(node):
            collect_texts(child)

    collect_texts(parse(code))
    # Parts of an f-string share its position in some Python versions; they keep the tree's order.
    literals.sort(key=lambda node: (node.lineno, node.col_offset))
    return "\n".join(str(node.value) for node in literals)


def play_replies(
    env: gym.Env[Any, Any],
    agent: str,
    seeds: Sequence[int],
    on_step: OnStep = lambda over, turns: None,
) -> list[Episode]:
    """Plays one episode of CodeTrace-v0 per seed with one of ``REPLIES``, and closes the environment.

    A turn has no decision: nobody sampled its tokens.

    Args:
        env: The environment.
        agent: The baseline's name.
        seeds: The episodes' seeds.
        on_step: Is called after each episode.
    """
    from gamespiel.agents.rollout import Episode, Turn

    local: Any = env.unwrapped
    answer, episodes, no_mask = REPLIES[agent], [], np.zeros(0, dtype=np.bool_)
    try:
        for index, seed in enumerate(seeds):
            shown, _ = env.reset(seed=seed)
            reply = answer(local.trace)
            final, reward, _, _, info = env.step(reply)
            turn = Turn(shown, no_mask, reply, reward=float(reward))
            episodes.append(Episode(index, seed, info, [turn], final))
            on_step(True, 1)
    finally:
        env.close()
    return episodes


def choice_agent(name: str, seed: int, episodes: int) -> Decide:
    """Returns an agent of CodeTraceChoice-v0: ``random`` picks any of the options, ``first`` the first."""

    from gamespiel.agents.sampling.noise import Address, Purpose

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        options = masks.sum(axis=1)
        if name == "random":
            uniforms = Address(seed, Purpose.BASELINE, 0, turn, 0).uniforms(0, indices)
            rank = (uniforms * options).astype(np.int64)
        else:
            rank = np.zeros(len(indices), dtype=np.int64)
        # The legal action that has ``rank`` legal actions before it.
        return answers_of(np.argmax(masks.cumsum(axis=1) > rank[:, None], axis=1))

    return decide
