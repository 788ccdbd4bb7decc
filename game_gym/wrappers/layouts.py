"""Wrappers that show a turn in another layout: without its list, with the rules once, with other ids."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from game_gym.prompts import with_choices, without_choices, without_rules
from game_gym.wrappers.base import LayoutWrapper
from task_gym.arguments import read_action
from task_gym.contract import CLOSING
from task_gym.errors import ArgumentError, IllegalActionError, illegal_action, shown
from task_gym.wrappers.base import Info


class HideLegalActions(LayoutWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Leaves the list of legal actions out of the text.

    The text still says what to answer, and mask and info have the legal actions as before. Wrappers that
    rewrite the list, as ShuffledActions does, go inside this one.

    Raises:
        ArgumentError: the environment is no game, or its observations are no texts.
        LayoutError: a wrapper inside changed the end of the text.
    """

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text without the block of legal actions."""
        state = without_choices(text, info["legal_actions"], info["admissible_commands"])
        return f"{state}\n\n{CLOSING}"


class UpstreamLayout(LayoutWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Shows the rules in the first turn of an episode only, as affinetes' sessions do.

    The rest of the text stays as it is. ``reset`` returns the first turn; after an illegal action it is shown
    again, without the rules. With open seats each seat sees the rules in its own first turn.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with ``rules=True``.

    Raises:
        ArgumentError: the environment shows no rules, or is no game.
        LayoutError: a wrapper inside changed the beginning of the text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        if not self._game.rules:
            raise ArgumentError(
                "UpstreamLayout: an environment with rules=False was given, allowed: rules=True, so that "
                "there are rules to tell in the first turn"
            )
        self._informed: set[int] = set()  # the seats that saw the rules in this episode

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begins an episode, in which no seat saw the rules yet."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._informed = set()
        return self.show(observation, info)

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text, with the rules if the seat has not seen them."""
        shorter = without_rules(text, self._game.variant)
        first = info["seat"] not in self._informed
        self._informed.add(info["seat"])
        return text if first else shorter


_KEY = 0x1ABE15
"""Separates the labels' random numbers from all others that begin with an episode's seed."""


def shuffled_labels(seed: int, actions: int) -> NDArray[np.int64]:
    """Returns the labels of an episode: a permutation of 0 … actions - 1, indexed by the game's own id.

    It depends only on its arguments, in any process and release: NumPy keeps the output of a seeded bit
    generator, while its Generator's ``permutation`` may change.
    """
    keys = np.random.PCG64([seed, _KEY]).random_raw(actions)
    return np.argsort(keys, kind="stable")


class ShuffledActions(LayoutWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Gives the actions other ids in each episode, so that an id is worth reading and not worth learning.

    The new ids are called labels. They replace ids in the text's list, in ``legal_actions``,
    ``admissible_commands``, ``action_mask``, ``action_masks()``, the message of an illegal action and the
    action of ``step``; lists are in ascending label. ``history`` keeps OpenSpiel's ids, and so does the
    environment inside: ask the wrapper, and not ``env.unwrapped``, for masks.

    The labels are a permutation of all the ids of the game that is played, drawn from ``info["seed"]``
    (``shuffled_labels``). It covers all ids, not only the legal ones: a label means one action throughout
    an episode, and labels say nothing of how many actions are legal. It covers the game's ids, not those of a
    larger action space that games share: an address has the same labels whatever else the environment may
    draw. Ids beyond the game's are never legal and stay as they are.

    The text of a declared game refers to actions by name, so that only its list has ids. If the names begin
    with ids, as in backgammon, they begin with labels here. OpenSpiel's own strings, which describe games
    without a declaration, stay as they are.

    Args:
        env: GameSpiel-v0. Render modes "ansi" and "rgb_array" show labels. Mode "human" prints the game's own
            ids, because the environment inside prints.

    Raises:
        ArgumentError: another environment was given; GameSpielText-v0 reads replies by the game's own ids.
        LayoutError: a wrapper inside changed the end of the text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        if not isinstance(env.action_space, gym.spaces.Discrete):
            raise ArgumentError(
                f"ShuffledActions: an environment with actions in {env.action_space} was given, allowed: "
                "Discrete actions (GameSpiel-v0)"
            )
        self._size = int(env.action_space.n)
        # Label by id and id by label, for every id of the action space; ids until the first reset.
        self._labels = self._ids = np.arange(self._size)
        # Labels of the legal actions, ascending, and their names in the same order.
        self._legal: list[int] = []
        self._names: list[str] = []

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask by label: bool, shape (n,), True = legal."""
        return super().action_masks()[self._ids]

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begins an episode, with its labels."""
        observation, info = self.env.reset(seed=seed, options=options)
        actions = self._game.variant.actions
        self._labels = np.arange(self._size)
        self._labels[:actions] = shuffled_labels(info["seed"], actions)
        self._ids = np.argsort(self._labels)
        return self.show(observation, info)

    def step(self, action: Any) -> tuple[str, Any, bool, bool, Info]:
        """Makes the move that has this label."""
        label = read_action(action)
        action_id = int(self._ids[label]) if 0 <= label < self._size else label
        given, legal = f"action: {shown(label)} was given", self._legal
        try:
            result = super().step(action_id)
        except IllegalActionError:
            raise IllegalActionError(illegal_action(given, legal)) from None
        if "error" in result[-1]:
            result[-1]["error"]["message"] = illegal_action(given, legal)
        return result

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns text and info in labels."""
        ids, names = info["legal_actions"], info["admissible_commands"]
        labels = self._labels[ids].tolist()
        if self._game.variant.spec.numbered_names:
            rests = [name[len(str(own)) :] for own, name in zip(ids, names, strict=True)]
            names = [f"{label}{rest}" for label, rest in zip(labels, rests, strict=True)]
        shown = sorted(zip(labels, names, strict=True))
        self._legal, self._names = [label for label, _ in shown], [name for _, name in shown]
        text, info = super().show(observation, info)
        relabelled = {
            "action_mask": info["action_mask"][self._ids],
            "legal_actions": self._legal.copy(),
            "admissible_commands": self._names.copy(),
        }
        return text, {**info, **relabelled}

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text with its list in labels."""
        state = without_choices(text, info["legal_actions"], info["admissible_commands"])
        return with_choices(state, self._legal, self._names)
