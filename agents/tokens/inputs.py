"""The inputs of a policy: observations as token sequences, masks as legal sets, and the actions' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from torch import Tensor

from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.conversations import ConversationCodec, Prompt
from task_gym.wrappers import ConversationText, NamedText

GivenMasks = npt.NDArray[Any] | Tensor
"""Action masks as callers give them: any type, shape (n, n_actions) or (n_actions,), true = legal."""


class MissingMaskError(ValueError):
    """No action mask, or one of the wrong shape or without a legal action: legality is never guessed."""


class MissingNamesError(ValueError):
    """An observation without the names of its legal actions, given to a policy that answers by name."""


def is_readable(space: spaces.Space[Any]) -> bool:
    """Returns whether a space's observations are texts or rows of token ids."""
    token_ids = (
        isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.integer) and len(space.shape) == 1
    )
    return token_ids or isinstance(space, spaces.Text)


def read_prompts(conversations: ConversationCodec, observations: Any) -> list[Prompt]:
    """Returns prompts of texts, of conversations, or of right-padded token ids without their padding.

    Raises:
        ValueError: a row of token ids is all padding.
    """
    codec = conversations.codec
    if isinstance(observations, Tensor) or (
        isinstance(observations, np.ndarray) and np.issubdtype(observations.dtype, np.number)
    ):
        rows = np.atleast_2d(np.asarray(torch.as_tensor(observations).cpu())).astype(np.int64)
        filled = rows != codec.pad
        if not filled.any(-1).all():
            raise ValueError(f"rows {np.flatnonzero(~filled.any(-1)).tolist()} hold nothing but padding")
        lengths = rows.shape[1] - filled[:, ::-1].argmax(-1)
        codec.check_length(int(lengths.max()))
        return [Prompt(tuple(row[:length].tolist())) for row, length in zip(rows, lengths, strict=True)]
    texts = [observations] if isinstance(observations, str) else observations
    return [
        conversations.encode(text.messages)
        if isinstance(text, ConversationText) and text.messages
        else Prompt(codec.encode_prompt(str(text)))
        for text in texts
    ]


def legal_sets(action_masks: GivenMasks | None, rows: int, n_actions: int) -> list[Tokens]:
    """Returns legal sets, ascending, from masks of shape (rows, n_actions), true = legal.

    Raises:
        MissingMaskError: the masks are missing, of another shape, or one allows nothing.
    """
    if action_masks is None:
        raise MissingMaskError(
            "LLMPolicy needs action_masks: shape (n, n_actions), true = legal; "
            "gymnasium environments give them as env.unwrapped.action_masks()"
        )
    masks = np.atleast_2d(np.asarray(torch.as_tensor(action_masks).cpu()).astype(bool))
    if masks.shape != (rows, n_actions):
        raise MissingMaskError(
            f"action masks of shape {masks.shape} came with {rows} observations and {n_actions} actions, "
            f"expected {(rows, n_actions)}"
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


def names_of(observations: Any, legal: Sequence[Tokens]) -> list[tuple[str, ...]]:
    """Returns the names of each observation's legal actions, in the order of its legal set.

    Raises:
        MissingNamesError: an observation has no names, or not one per legal action.
    """
    texts = [observations] if isinstance(observations, str) else observations
    names = []
    for text, actions in zip(texts, legal, strict=True):
        given = len(text.names) if isinstance(text, NamedText) else "no"
        if given != len(actions) or list(actions) != sorted(actions):
            raise MissingNamesError(
                f"an observation with {given} names came with the legal actions {list(actions)}, but "
                "this policy answers by name, one per legal action in ascending order: put the environment "
                "into task_gym.wrappers.NamedActions"
            )
        names.append(tuple(text.names))
    return names


def batch_observations(observation: Any) -> tuple[Any, bool]:
    """Returns observations as a batch, and whether several were given; texts do not become tensors."""
    if isinstance(observation, str):
        return [observation], False
    if isinstance(observation, np.ndarray) and np.issubdtype(observation.dtype, np.number):
        return np.atleast_2d(observation), observation.ndim > 1
    return observation, True
