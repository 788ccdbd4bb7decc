"""The opponent ``policy:RUN``: a checkpoint's policy behind its mask, and its probabilities.

Importing this registers it. The first move that it makes loads the model.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from task_gym.errors import OpponentError, TaskGymError
from task_gym.opponents import Seating, register_opponent
from task_gym.samplers.base import pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from game_gym.spec import State, Variant
    from gamespiel.agents.policy import LLMPolicy

USAGE = "policy:RUN"

NOISE = 108
"""Keeps the opponent's draws apart from all else that follows from its seed."""

MOST_KEPT = 1 << 16
"""The most prompts whose probabilities are kept."""


class FrozenPolicy:
    """A checkpoint's policy: the probabilities that it gives to the legal actions of a position.

    Args:
        place: A run, ``RUN@STEP``, ``RUN@best`` or a checkpoint.

    Attributes:
        checkpoint: The name of the checkpoint: a run's newest, whatever follows it.

    Raises:
        OpponentError: there is no such run, or its policy does not choose behind a mask, prompt by prompt.
    """

    def __init__(self, place: str) -> None:
        from gamespiel.agents.installed import check_trainer
        from gamespiel.agents.runs import catalog
        from gamespiel.config import saved_config

        try:
            check_trainer(f"opponent policy:{place}")
            self._checkpoint = catalog.find(catalog.read_place(place))
            self._env: Any = saved_config(self._checkpoint).env
        except TaskGymError as error:
            raise OpponentError(f"opponent policy:{place}: {error}") from error
        self.checkpoint = self._checkpoint.name
        talks = getattr(self._env, "conversation", False)
        if self._env.env_type != "openspiel" or self._env.decode != "choice" or talks:
            raise OpponentError(
                f"opponent policy:{place}: it was trained with env.env_type {self._env.env_type}, env.decode "
                f"{self._env.decode} and env.conversation {talks}; "
                "allowed: a policy of games that chooses behind a mask, with a prompt per turn"
            )
        self._policy: LLMPolicy | None = None
        self._known: dict[tuple[str, tuple[int, ...]], list[float]] = {}
        self._lock = threading.Lock()

    def probabilities(self, variant: Variant, state: State, seat: int, legal: Sequence[int]) -> list[float]:
        """Returns the probability of each legal action of ``seat``, which is to move at ``state``."""
        return self.list_probabilities([self._ask(variant, state, seat, legal)], [legal])[0]

    def list_probabilities(self, texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[list[float]]:
        """Returns the probabilities of the legal actions of several prompts; each prompt is read once."""
        keys = [(str(text), tuple(actions)) for text, actions in zip(texts, legal, strict=True)]
        with self._lock:  # opponents in threads share the model
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
            probabilities = {key: self._known[key] for key in keys if key in self._known}
            if new:
                rows = self._load().distribution(list(new.values()), [list(key[1]) for key in new])
                probabilities |= {key: row.tolist() for key, row in zip(new, rows, strict=True)}
            if len(self._known) + len(new) > MOST_KEPT:
                self._known.clear()
            self._known.update(probabilities)
        return [probabilities[key] for key in keys]

    def _ask(self, variant: Variant, state: State, seat: int, legal: Sequence[int]) -> str:
        """Returns the position's prompt in the form that the policy was trained on."""
        from game_gym.prompts import render
        from task_gym.wrappers.common import ask_for_name

        text = render(variant, state, seat, self._env.rules, self._env.list_actions)
        if self._env.answer == "id":
            return text
        return ask_for_name(text, variant.choices(state, seat, legal)[0])

    @property
    def form(self) -> dict[str, Any]:
        """The form of its prompts, as ``game_gym.tree.build_tree`` takes it."""
        env = self._env
        return {"rules": env.rules, "list_actions": env.list_actions, "named": env.answer == "name"}

    def use(self, policy: LLMPolicy) -> None:
        """Takes the checkpoint's policy from who has loaded it: a model is in memory once."""
        self._policy = policy

    def _load(self) -> LLMPolicy:
        if self._policy is None:
            from gamespiel.assembly import load_policy

            with _loading:
                self._policy = load_policy(self._checkpoint)
        return self._policy


_policies: dict[tuple[str, int], FrozenPolicy] = {}
_loading = threading.RLock()
"""Held while a policy is loaded: transformers' loading and torch's seed belong to the whole process."""


def find_policy(place: str) -> FrozenPolicy:
    """Returns the policy that all opponents of one place share; a forked child makes its own."""
    key = place, os.getpid()
    policy = _policies.get(key)
    return _policies.setdefault(key, FrozenPolicy(place)) if policy is None else policy


class PolicyOpponent:
    """Draws each move from a checkpoint's probabilities, by its own prompts.

    Args:
        seating: The game and the seat. The argument is a run.

    Raises:
        OpponentError: see ``FrozenPolicy``.
    """

    def __init__(self, seating: Seating) -> None:
        if not seating.argument:
            raise OpponentError(f"opponent: 'policy' was given without a run, allowed: {USAGE}")
        self._policy = find_policy(seating.argument)
        self._noise = np.random.Generator(np.random.Philox(0))

    def restart(self, seed: int) -> None:
        """Begins an episode."""
        self._noise = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, NOISE])))

    def act(self, view: Any) -> int:
        """Returns the action that is drawn."""
        legal: list[int] = view.legal_actions()
        odds = self._policy.probabilities(view.variant, view.state, view.seat, legal)
        return legal[pick(odds, self._noise.random())]


register_opponent("policy", PolicyOpponent, usage=USAGE, takes_argument=True, find_policy=find_policy)
