"""The wrapper that turns text observations into padded token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.arguments import is_whole
from task_gym.errors import ArgumentError, TokenError, quote
from task_gym.wrappers.base import Info, TurnWrapper, check_text

Tokens = NDArray[np.int32]

_ENCODES = (
    "allowed: a function from a text to a list of token ids; for example "
    "lambda text: tokenizer(text)['input_ids']"
)


class TokenObservation(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Replaces a text observation by its token ids, int32 of shape (length,), padded on the right.

    The text stays in ``info["text"]``. Stock vector environments and rollout buffers take a Box of fixed
    shape, and ``action_masks()`` is passed through, so MaskablePPO works behind a DummyVecEnv.

    Args:
        env: An environment with text observations.
        encode: Text to token ids, each in 0 … vocab_size - 1 and none equal to ``pad_id``.
        length: Number of ids per observation.
        vocab_size: Number of ids the encoder may use.
        pad_id: Fills the rest. Any id that the encoder never produces for a text, in -1 … vocab_size.

    Raises:
        ArgumentError: the length or the vocabulary is below 1, the padding id is outside -1 … vocab_size,
            ``encode`` is no function, or the observations are no texts. From ``reset`` and ``step``:
            ``encode`` returned no list of whole numbers.
        TokenError: a text has more than ``length`` tokens, or an id is out of range or is padding.
    """

    def __init__(
        self,
        env: gym.Env[str, Any],
        encode: Callable[[str], Sequence[int]],
        length: int,
        vocab_size: int,
        pad_id: int,
    ) -> None:
        # Not copied: the encoder can be a method of a large tokenizer.
        arguments = {"encode": encode, "length": length, "vocab_size": vocab_size, "pad_id": pad_id}
        super().__init__(env, _disable_deepcopy=True, **arguments)
        check_text(self)
        if not callable(encode):
            raise ArgumentError(f"encode: {quote(encode)} was given, {_ENCODES}")
        for name, value in (("length", length), ("vocab_size", vocab_size)):
            if not is_whole(value) or not 1 <= value < 2**31:
                raise ArgumentError(f"{name}: {quote(value)} was given, allowed: 1 or more, below 2**31")
        if not is_whole(pad_id) or not -1 <= pad_id <= vocab_size:
            raise ArgumentError(
                f"pad_id: {quote(pad_id)} was given, allowed: -1 … {vocab_size} (the vocabulary's size)"
            )
        self._encode, self._length, self._vocab_size, self._pad_id = encode, length, vocab_size, pad_id
        self.observation_space = gym.spaces.Box(
            min(0, pad_id), max(vocab_size - 1, pad_id), shape=(length,), dtype=np.int32
        )

    def show(self, observation: str, info: Info) -> tuple[Tokens, Info]:
        """Returns the token ids, and the info with the text."""
        return self.tokens(observation), {**info, "text": observation}

    def tokens(self, text: str) -> Tokens:
        """Returns the token ids of a text, shape (length,)."""
        encoded: Any = self._encode(text)
        try:
            ids = np.asarray(encoded)
        except Exception:  # what is given decides which
            ids = np.empty((), dtype=np.object_)
        # Shape (1, n) is what tokenizers return for a list of one text. An empty list has a float type.
        if ids.ndim == 0 or ids.shape[-1] != ids.size or (ids.size and ids.dtype.kind not in "iu"):
            raise ArgumentError(
                f"encode: it returned {quote(encoded)} ({type(encoded).__name__}), {_ENCODES}"
            )
        ids = ids.reshape(-1).astype(np.int64)
        if ids.size > self._length:
            raise TokenError(
                f"observation of {ids.size} tokens was given, allowed: length={self._length}; it begins "
                f"{text[:60]!r}"
            )
        wrong = ids[(ids < 0) | (ids >= self._vocab_size) | (ids == self._pad_id)]
        if wrong.size:
            raise TokenError(
                f"token id {int(wrong[0])} was given, allowed: 0 … {self._vocab_size - 1} without the "
                f"padding id {self._pad_id}"
            )
        padded = np.full(self._length, self._pad_id, dtype=np.int32)
        padded[: ids.size] = ids
        return padded
