"""Actions answered by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from task_gym.contract import CLOSING
from task_gym.errors import ArgumentError
from task_gym.wrappers.base import Info, TurnWrapper, check_mask, check_text

#: What the observation ends with in place of the question for a number.
NAMED_CLOSING = "Your choice (action name only):"


class NamedText(str):
    """A text that carries what its legal actions are called.

    It is equal to the same text without names, and pickles and copies with them; what is cut or joined from
    it has none.

    Args:
        names: One a legal action, by ascending action; none after the end.
    """

    names: tuple[str, ...]

    def __new__(cls, text: str, names: Sequence[str] = ()) -> NamedText:
        self = super().__new__(cls, text)
        self.names = tuple(names)
        return self


class NamedActions(TurnWrapper):
    """Have actions answered by name: the observation asks for one, and carries all of them.

    A question for an action's number is turned into one for its name; one that asks for something else, as
    ``CodeTraceChoice-v0(listed=False)`` for an output, stays. The observation becomes a :class:`NamedText`
    with ``info["admissible_commands"]`` as its names, less the line ends around each. Actions stay numbers: a
    policy that writes the name of one gives its number, as ``LLMPolicy(answer="name")`` does.

    A model that is small or has not been taught to read lists says more by how probable it finds an answer
    than by the number it would give it (the cloze and the multiple choice formulation of Gu et al. 2024,
    arXiv:2406.08446).

    Raises:
        ArgumentError: an environment whose observations are no texts, or which has no mask, or which names no
            actions (found out when it is reset).
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        check_text(self)
        check_mask(self)

    def show(self, observation: str, info: Info) -> tuple[NamedText, Info]:
        """The text with its names, and the info as it is."""
        if observation.endswith(CLOSING):
            observation = observation.removesuffix(CLOSING) + NAMED_CLOSING
        if "admissible_commands" not in info:
            raise ArgumentError(
                f"NamedActions: an environment that does not name its actions was given, {self.unwrapped}; "
                'allowed: one whose info has "admissible_commands"'
            )
        return NamedText(observation, [name.strip("\r\n") for name in info["admissible_commands"]]), info
