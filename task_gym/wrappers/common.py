"""Wrappers of one turn: names as answers, the mask beside the observation, numbers alone, centred scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import gymnasium as gym
import numpy as np

from task_gym.contract import CLOSING, NAMED_CLOSING
from task_gym.errors import ArgumentError
from task_gym.wrappers.base import Info, MaskedWrapper, TurnWrapper, check_mask, check_text


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


class DictObservation(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Puts the mask beside the observation: ``{"observation": …, "action_mask": int8 (n,), 1 = legal}``.

    The keys and the mask's Box are those of PettingZoo's environments, which Tianshou reads. The observation
    may be a text, or what a wrapper inside returns in its place: tokens, a tensor, a chat. A mask of zeros
    means that the episode is over, as in the info.

    Raises:
        ArgumentError: the environment has no ``action_masks()``.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        check_mask(self)
        # Not the action space's n: a reply as text is masked too.
        size = self.action_masks().size
        self.observation_space = gym.spaces.Dict(
            {
                "observation": env.observation_space,
                "action_mask": gym.spaces.Box(0, 1, shape=(size,), dtype=np.int8),
            }
        )

    def show(self, observation: Any, info: Info) -> tuple[dict[str, Any], Info]:
        """Returns the dictionary, with a copy of the mask, and the info as it is."""
        return {"observation": observation, "action_mask": info["action_mask"].copy()}, info


ADDRESS = ("task_id", "seed", "seat", "turn")
"""Whole numbers; -1 where there is none, as the task id of a game that was named."""


class NumericInfo(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Keeps of ``info`` what is a number, with the same keys, types and shapes after every reset and step.

    For what stores infos or makes tensors of them: Minari with ``record_infos=True``, Gymnasium's
    ``NumpyToTorch``. Texts, lists of changing length and keys that come at the end would be in their way:
    ``NumpyToTorch`` turns a text into a generator.

    The keys are ``action_mask`` (int8, (n,), 1 = legal; only if the environment masks its actions),
    ``task_id``, ``seed``, ``seat``, ``turn`` (int, -1 if there is none), ``upstream_reward`` (float),
    ``score`` (float, NaN until the end and after a fault), ``success`` (bool) and ``illegal`` (bool: whether
    the action was illegal). It goes outside all wrappers that read the info.
    """

    def show(self, observation: Any, info: Info) -> tuple[Any, Info]:
        """Returns the observation, and the numbers of the info."""
        numbers: Info = {"action_mask": np.asarray(info["action_mask"])} if "action_mask" in info else {}
        for key in ADDRESS:
            value = info.get(key)
            numbers[key] = -1 if value is None else int(value)
        score = info.get("score")
        numbers["upstream_reward"] = float(info["upstream_reward"])
        numbers["score"] = math.nan if score is None else float(score)
        numbers["success"] = bool(info.get("success", False))
        numbers["illegal"] = "error" in info
        return observation, numbers


class ZeroCentredReward(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Pays 2·score - 1 in place of the score: 1 for the best end, 0 for a draw, -1 for the worst.

    With score s, the step that terminates the episode pays ``reward + s - 1``. That is 2s - 1 if the reward
    was only the score. An illegal action still costs 0.01, so that an episode's return is 2s - 1 less 0.01
    for each illegal action, and a forfeit's last step pays -1.01. Every other step keeps its reward.

    A truncated episode pays nothing at its end. A cut by ``max_turns`` has no outcome to centre: a learner
    that bootstraps adds the position's value to 0 and not to a loss, and one that does not sees a draw. A
    fault is nobody's doing. An episode that is over at reset pays nothing, as without this wrapper: its score
    is in the info.
    """

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Steps the wrapped environment, and centres the score if the episode terminates."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward)
        if terminated:
            paid += info["score"] - 1.0
        return observation, paid, terminated, truncated, info
