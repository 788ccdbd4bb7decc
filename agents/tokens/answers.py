"""The answers that a policy may give: the legal actions' texts, or any text.

A policy has one of the two. Both say which constraint a turn's answer has, from its observation and its mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import ActionTrie, Constraint, FreeText
from task_gym.errors import TaskGymError
from task_gym.wrappers import NamedText

TRIES_CACHED = 65_536

NAMED_TRIES_CACHED = 4096
"""Fewer than ``TRIES_CACHED``: names differ by state and can be long, and one update reuses them."""

GivenMasks = npt.NDArray[Any] | Tensor
"""Action masks as callers give them: any type, shape (n, n_actions) or (n_actions,), true = legal."""

UNMASKED = "a policy that writes replies (decode='text') has no distribution under a mask"


class MissingMaskError(ValueError):
    """No action mask, or one of the wrong shape or without a legal action: legality is never guessed."""


class MissingNamesError(ValueError):
    """An observation without the names of its legal actions, given to a policy that answers by name."""


class AmbiguousNamesError(TaskGymError, ValueError):
    """Names of legal actions that the tokenizer cannot tell apart."""


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
        self.trie_of_numbers: Callable[[Tokens], ActionTrie] = lru_cache(TRIES_CACHED)(
            lambda legal: ActionTrie.build({action: codec.encode_action(action) for action in legal})
        )
        self.trie_of_names: Callable[[Tokens, tuple[str, ...]], ActionTrie] = lru_cache(NAMED_TRIES_CACHED)(
            self._trie_of_names
        )

    def constraints(
        self, observations: Any, action_masks: GivenMasks | None, rows: int
    ) -> Sequence[Constraint]:
        """Returns the constraint of each turn's answer.

        Raises:
            MissingMaskError: the masks are missing, of another shape, or one allows nothing.
            MissingNamesError: names are needed, and an observation does not have one per legal action.
        """
        return self.make_tries(observations, self.legal_sets(action_masks, rows))

    def legal_sets(self, action_masks: GivenMasks | None, rows: int) -> list[Tokens]:
        """Returns legal sets, ascending, from masks of shape (rows, n_actions), true = legal.

        Raises:
            MissingMaskError: as ``constraints`` does.
        """
        if action_masks is None:
            raise MissingMaskError(
                "LLMPolicy needs action_masks: shape (n, n_actions), true = legal; "
                "gymnasium environments give them as env.unwrapped.action_masks()"
            )
        masks = np.atleast_2d(np.asarray(torch.as_tensor(action_masks).cpu()).astype(bool))
        if masks.shape != (rows, self.n_actions):
            raise MissingMaskError(
                f"action masks of shape {masks.shape} came with {rows} observations and {self.n_actions} "
                f"actions, expected {(rows, self.n_actions)}"
            )
        if not masks.any(-1).all():
            empty = np.flatnonzero(~masks.any(-1)).tolist()
            raise MissingMaskError(f"the action masks of rows {empty} allow nothing: is the episode over?")
        # Most masks of a batch repeat, and looking one up is faster than reading it.
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        sets = {
            key: tuple(np.flatnonzero(masks[row]).tolist())
            for key, row in dict(zip(keys, range(rows), strict=True)).items()
        }
        return [sets[key] for key in keys]

    def make_tries(self, observations: Any, legal: Sequence[Sequence[int]]) -> Sequence[ActionTrie]:
        """Returns the tries of legal sets, ascending and not empty.

        Raises:
            MissingNamesError: as ``constraints`` does.
            AmbiguousNamesError: the tokenizer cannot tell two names apart.
        """
        sets = [tuple(actions) for actions in legal]
        if not self.by_name:
            return [self.trie_of_numbers(actions) for actions in sets]
        named = zip(sets, _names_of(observations, sets), strict=True)
        return [self.trie_of_names(actions, names) for actions, names in named]

    def _trie_of_names(self, legal: Tokens, names: tuple[str, ...]) -> ActionTrie:
        answers = [self.codec.encode_answer(name) for name in names]
        try:
            return ActionTrie.build(dict(zip(legal, answers, strict=True)))
        except ValueError as error:
            raise AmbiguousNamesError(
                f"names of actions: {list(names)} were given, of which two are the same to the "
                "tokenizer, or one the beginning of another; allowed: names that differ, or answers by id"
            ) from error

    def list_actions(self, actions: Any) -> Sequence[int]:
        """Returns given actions one by one, as ``Constraint.answer_tokens`` takes them."""
        numbers: list[int] = torch.as_tensor(actions).long().reshape(-1).tolist()
        return numbers

    def batch_actions(self, actions: Sequence[int | str], device: torch.device) -> Tensor:
        """Returns actions as Stable-Baselines3 takes a batch of them."""
        return torch.tensor(list(map(int, actions)), dtype=torch.int64, device=device)

    def format_prediction(self, batch: Tensor, several: bool) -> npt.NDArray[np.int64]:
        """Returns a batch as ``predict`` gives it: an array, or its only item."""
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
    ) -> Sequence[Constraint]:
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


def _names_of(observations: Any, legal: Sequence[Tokens]) -> list[tuple[str, ...]]:
    """Returns the names of each observation's legal actions, in the order of its legal set.

    Raises:
        MissingNamesError: an observation has no names, or not one per legal action.
    """
    texts = [observations] if isinstance(observations, str) else observations
    names = []
    for text, actions in zip(texts, legal, strict=True):
        count = len(text.names) if isinstance(text, NamedText) else "no"
        if count != len(actions) or list(actions) != sorted(actions):
            raise MissingNamesError(
                f"an observation with {count} names came with the legal actions {list(actions)}, but "
                "this policy answers by name, one per legal action in ascending order: put the environment "
                "into task_gym.wrappers.NamedActions"
            )
        names.append(tuple(text.names))
    return names


Answers = LegalAnswers | Replies
"""The answers that a policy may give."""
