"""The answers that a policy may give: the legal actions' texts, or any text.

A policy has one of the two. Both say which constraint a turn's answer has, from its observation and its mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import Constraint, FreeText
from gamespiel.agents.tokens.inputs import GivenMasks, legal_sets, names_of
from gamespiel.agents.tokens.trie import ActionTrie
from task_gym.errors import TaskGymError

TRIES_CACHED = 65_536

NAMED_TRIES_CACHED = 4096
"""Fewer than ``TRIES_CACHED``: names differ by state and can be long, and one update reuses them."""


UNMASKED = "a policy that writes replies (decode='text') has no distribution under a mask"


class AmbiguousNamesError(TaskGymError, ValueError):
    """Names of legal actions that the tokenizer cannot tell apart."""


class NamedLegal(NamedTuple):
    """Legal actions of a state that are answered by name.

    Attributes:
        actions: The legal actions, ascending.
        names: The text to write for each of them.
    """

    actions: Tokens
    names: tuple[str, ...]


class Answers(Protocol):
    """The answers that a policy may give.

    Attributes:
        masked: Whether a mask limits them, so that each legal action has a probability.
    """

    masked: bool

    def constraints(
        self, observations: Any, action_masks: GivenMasks | None, rows: int
    ) -> Sequence[Constraint]:
        """Returns the constraint of each turn's answer.

        Raises:
            MissingMaskError: a mask is needed, and is missing, of the wrong shape, or allows nothing.
            MissingNamesError: names are needed, and an observation does not have one per legal action.
        """

    def legal_sets(self, action_masks: GivenMasks | None, rows: int) -> list[Tokens]:
        """Returns legal sets, ascending, from masks of shape (rows, n_actions), true = legal.

        Raises:
            MissingMaskError: the masks are missing, of another shape, or one allows nothing.
            ValueError: no mask limits these answers.
        """

    def make_tries(self, observations: Any, legal: Sequence[Sequence[int]]) -> Sequence[ActionTrie]:
        """Returns the tries of legal sets, ascending and not empty.

        Raises:
            ValueError: no mask limits these answers, so legal actions have no probabilities.
        """

    def list_actions(self, actions: Any) -> Sequence[Any]:
        """Returns given actions one by one, as ``Constraint.answer_tokens`` takes them."""

    def batch_actions(self, actions: Sequence[int | str], device: torch.device) -> Any:
        """Returns actions as Stable-Baselines3 takes a batch of them."""

    def format_prediction(self, batch: Any, several: bool) -> Any:
        """Returns a batch as ``predict`` gives it: an array, or its only item."""


class LegalAnswers:
    """The legal actions' texts, in a trie: an answer is a choice among them.

    Args:
        codec: Turns actions and names into tokens.
        n_actions: Size of the Discrete action space.
        by_name: Whether an action is written as its name in the state, or as its number.
    """

    masked = True

    def __init__(self, codec: ChatCodec, n_actions: int, *, by_name: bool = False) -> None:
        self.codec, self.n_actions, self.by_name = codec, n_actions, by_name
        self._numbered: Callable[[Tokens], ActionTrie] = lru_cache(TRIES_CACHED)(self._trie_of_numbers)
        self._named: Callable[[NamedLegal], ActionTrie] = lru_cache(NAMED_TRIES_CACHED)(self._trie_of_names)

    def constraints(
        self, observations: Any, action_masks: GivenMasks | None, rows: int
    ) -> Sequence[ActionTrie]:
        return self.make_tries(observations, self.legal_sets(action_masks, rows))

    def legal_sets(self, action_masks: GivenMasks | None, rows: int) -> list[Tokens]:
        return legal_sets(action_masks, rows, self.n_actions)

    def make_tries(self, observations: Any, legal: Sequence[Sequence[int]]) -> Sequence[ActionTrie]:
        sets = [tuple(actions) for actions in legal]
        if not self.by_name:
            return [self._numbered(actions) for actions in sets]
        named = zip(sets, names_of(observations, sets), strict=True)
        return [self.trie_of_names(NamedLegal(actions, names)) for actions, names in named]

    def trie_of_numbers(self, legal: Tokens) -> ActionTrie:
        """Returns the trie of a legal set whose actions are written as their numbers."""
        return self._numbered(legal)

    def trie_of_names(self, legal: NamedLegal) -> ActionTrie:
        """Returns the trie of a legal set whose actions are written as their names.

        Raises:
            AmbiguousNamesError: the tokenizer cannot tell two names apart.
        """
        return self._named(legal)

    def _trie_of_numbers(self, legal: Tokens) -> ActionTrie:
        return ActionTrie.build({action: self.codec.encode_action(action) for action in legal})

    def _trie_of_names(self, legal: NamedLegal) -> ActionTrie:
        answers = [self.codec.encode_answer(name) for name in legal.names]
        try:
            return ActionTrie.build(dict(zip(legal.actions, answers, strict=True)))
        except ValueError as error:
            raise AmbiguousNamesError(
                f"names of actions: {list(legal.names)} were given, of which two are the same to the "
                "tokenizer, or one the beginning of another; allowed: names that differ, or answers by id"
            ) from error

    def list_actions(self, actions: Any) -> Sequence[int]:
        given = np.asarray(torch.as_tensor(actions).cpu()).astype(np.int64)
        chosen: list[int] = given.reshape(-1).tolist()
        return chosen

    def batch_actions(self, actions: Sequence[int | str], device: torch.device) -> Tensor:
        return torch.tensor(list(map(int, actions)), dtype=torch.int64, device=device)

    def format_prediction(self, batch: Tensor, several: bool) -> npt.NDArray[np.int64]:
        actions: npt.NDArray[np.int64] = batch.cpu().numpy()
        return actions if several else actions.squeeze(axis=0)


class Replies:
    """Any text: an answer is a reply, which no mask limits.

    Args:
        constraint: Says how long a reply may be, how it ends, and its temperature.
    """

    masked = False

    def __init__(self, constraint: FreeText) -> None:
        self.constraint = constraint

    def constraints(
        self, observations: Any, action_masks: GivenMasks | None, rows: int
    ) -> Sequence[FreeText]:
        return [self.constraint] * rows

    def legal_sets(self, action_masks: GivenMasks | None, rows: int) -> list[Tokens]:
        raise ValueError(UNMASKED)

    def make_tries(self, observations: Any, legal: Sequence[Sequence[int]]) -> Sequence[ActionTrie]:
        raise ValueError(UNMASKED)

    def list_actions(self, actions: Any) -> Sequence[Any]:
        return list(actions)

    def batch_actions(self, actions: Sequence[int | str], device: torch.device) -> npt.NDArray[np.object_]:
        texts = np.empty(len(actions), dtype=object)
        texts[:] = list(actions)
        return texts

    def format_prediction(self, batch: npt.NDArray[np.object_], several: bool) -> Any:
        return batch if several else batch[0]
