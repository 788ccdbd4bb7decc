"""The wrapper that has actions answered by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from task_gym.contract import CLOSING, NAMED_CLOSING
from task_gym.errors import ArgumentError
from task_gym.wrappers.base import Info, TurnWrapper, check_mask, check_text


class NamedText(str):
    """A text that carries the names of its legal actions.

    It is equal to the same text without names, and pickles and copies with them. Slices and joins of it have
    none.

    Args:
        text: The text.
        names: One per legal action, by ascending action; none after the end.
    """

    names: tuple[str, ...]

    def __new__(cls, text: str, names: Sequence[str] = ()) -> Self:
        self = super().__new__(cls, text)
        self.names = tuple(names)
        return self


def ask_for_name(text: str, names: Sequence[str]) -> NamedText:
    """Returns the text of a turn that asks for a name in place of a number, and carries the names."""
    if text.endswith(CLOSING):
        text = text.removesuffix(CLOSING) + NAMED_CLOSING
    return NamedText(text, [name.strip("\r\n") for name in names])


class NamedActions(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for an action's name in place of its number: the observation carries all the names.

    A question for an action's number becomes one for its name. Any other question stays, as that of
    ``CodeTraceChoice-v0(listed=False)`` for an output. The observation becomes a ``NamedText`` with
    ``info["admissible_commands"]`` as its names, without the line ends around each. Actions stay numbers: a
    policy that writes a name gives its number, as ``LLMPolicy(answer="name")`` does.

    A model that is small, or not trained to read lists, shows more by the probability of an answer than by
    the number that it writes (the cloze and the multiple choice formulation of Gu et al. 2024,
    arXiv:2406.08446).

    Raises:
        ArgumentError: the environment's observations are no texts, or it has no mask, or it names no actions
            (checked at its reset).
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        check_text(self)
        check_mask(self)

    def show(self, observation: str, info: Info) -> tuple[NamedText, Info]:
        """Returns the text with its names, and the info as it is."""
        if "admissible_commands" not in info:
            raise ArgumentError(
                f"NamedActions: an environment that does not name its actions was given, {self.unwrapped}; "
                'allowed: one whose info has "admissible_commands"'
            )
        return ask_for_name(observation, info["admissible_commands"]), info
