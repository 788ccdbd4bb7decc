"""Loops that play one seat of a game against uniform opponents, one per library.

Every function plays ``episodes`` games and returns the number of decisions of ``agent``. The first game plays
``seed``. The seeds of the others are drawn from a generator with that seed, as in a Gymnasium environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pyspiel

from game_gym.spec import State, Variant
from task_gym.contract import CLOSING
from task_gym.seeding import DRAWN_LIMIT, Stream

CHANCE, SIMULTANEOUS, TERMINAL = (
    int(player)
    for player in (pyspiel.PlayerId.CHANCE, pyspiel.PlayerId.SIMULTANEOUS, pyspiel.PlayerId.TERMINAL)
)

Look = Callable[[Variant, State, int, list[int]], tuple[str, Any]]
"""(variant, state, seat, legal actions) -> the text and the mask for the agent."""


class UniformAgent:
    """An agent that draws uniformly from the legal actions."""

    def __init__(self, seed: int) -> None:
        self._stream = Stream(seed)

    def act(self, shown: Any, mask: Any, legal: list[int]) -> int:
        return self._stream.choice(legal)


class RecordingAgent(UniformAgent):
    """A uniform agent that records every text, mask and list of legal actions."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.seen: list[tuple[str, bytes, list[int]]] = []

    def act(self, shown: Any, mask: Any, legal: list[int]) -> int:
        self.seen.append((shown, mask.tobytes(), legal))
        return super().act(shown, mask, legal)


def look(variant: Variant, state: State, seat: int, legal: list[int]) -> tuple[str, Any]:
    """Returns the text and the mask, made in the simplest way."""
    block = "\n".join([f"  {action} -> {state.action_to_string(seat, action)}" for action in legal])
    spec = variant.spec
    text = (
        f"Game: {spec.name}\nYou are Player {seat}.\n\nCurrent State:\n{spec.describe(state, seat)}\n\n"
        f"Legal Actions:\n{block}\n\n{CLOSING}"
    )
    mask = np.zeros(variant.actions, dtype=np.int8)
    mask[legal] = 1
    return text, mask


def play_bare(variant: Variant, seed: int, episodes: int, agent: UniformAgent, look: Look = look) -> int:
    """Plays bare pyspiel, with the environment's strings, masks and random streams.

    A game ends with its returns: no score, no closing text, no history.
    """
    game, players = variant.game, variant.players
    generator = np.random.default_rng(seed)
    chance, opponents = Stream(), [Stream() for _ in range(players)]
    decisions = 0
    for episode in range(episodes):
        if episode:
            seed = int(generator.random() * DRAWN_LIMIT)
        seat = seed % players
        chance.seed(seed + 100)
        for other in range(players):
            if other != seat:
                opponents[other].seed(seed + 2 if players == 2 else seed + other + 2)
        state = game.new_initial_state()
        while (player := state.current_player()) != TERMINAL:
            if player == CHANCE:
                actions, probabilities = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(actions[chance.weighted(probabilities)])
            elif player == seat:
                legal = state.legal_actions()
                state.apply_action(agent.act(*look(variant, state, seat, legal), legal))
                decisions += 1
            elif player != SIMULTANEOUS:
                state.apply_action(opponents[player].choice(state.legal_actions()))
            else:
                legal = state.legal_actions(seat)
                action = agent.act(*look(variant, state, seat, legal), legal)
                decisions += 1
                state.apply_actions(
                    [
                        action if other == seat else opponents[other].choice(state.legal_actions(other))
                        for other in range(players)
                    ]
                )
        state.returns()
    return decisions


def play_environment(
    env: gym.Env[Any, Any], seed: int, episodes: int, agent: UniformAgent, reseed: bool = False
) -> int:
    """Plays a GameSpiel environment; with ``reseed``, every episode has a seed, as in the trainer."""
    generator = np.random.default_rng(seed)
    decisions = 0
    for episode in range(episodes):
        if episode:
            seed = int(generator.random() * DRAWN_LIMIT)
        shown, info = env.reset(seed=seed) if reseed or not episode else env.reset()
        over = "result" in info
        while not over:
            action = agent.act(shown, info["action_mask"], info["legal_actions"])
            shown, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            decisions += 1
    return decisions


def play_rl_environment(env: Any, seed: int, episodes: int, agent: UniformAgent) -> int:
    """Plays ``open_spiel.python.rl_environment``, which shows every seat's tensor at every node."""
    generator, others = np.random.default_rng(seed), UniformAgent(seed + 1)
    env.seed(seed)
    decisions = 0
    for episode in range(episodes):
        if episode:
            seed = int(generator.random() * DRAWN_LIMIT)
        seat = seed % env.num_players
        step = env.reset()
        while not step.last():
            shown, legal, player = (
                step.observations[key] for key in ("info_state", "legal_actions", "current_player")
            )
            actions = []
            for seated in range(env.num_players) if player == SIMULTANEOUS else (player,):
                mover = agent if seated == seat else others
                actions.append(mover.act(shown[seated], None, legal[seated]))
                decisions += seated == seat
            step = env.step(actions)
    return decisions
