"""The line that asks a policy to reason before it answers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from task_gym.wrappers import NamedText
from task_gym.wrappers.base import Info, TurnWrapper

THINK = "Reason first, between <think> and </think>. What follows is your answer."
"""The line with which ``env.think`` asks for reasoning."""


class Thinking(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for reasoning before the answer, in a line before the question that ends an observation.

    The environment's own rule finds the answer: it has to leave out what is between the tags.
    """

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns the text with the line, and the info as it is; the text after the end stays."""
        if "result" in info:
            return observation, info
        state, line_end, question = observation.rpartition("\n")
        text = f"{state}{line_end}{THINK}\n{question}"
        return NamedText(text, observation.names) if isinstance(observation, NamedText) else text, info
