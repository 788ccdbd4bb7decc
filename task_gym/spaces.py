"""A Gymnasium Text space that admits every Unicode character."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Text
from gymnasium.vector.utils import create_shared_memory

PRINTABLE = string.ascii_letters + string.digits + string.punctuation + " \n♠♥♦♣│─┌┐└┘→←↑↓"
"""The characters of samples. Membership is wider: any character."""

SAMPLE_LENGTH = 64
"""The most characters of a sample, whatever the space admits: samples are for checks, not for reading."""


class _AllCharacters(Sequence[str]):
    """Every Unicode character in a sequence that stores none of them; its position is the code point."""

    def __contains__(self, item: object) -> bool:
        return isinstance(item, str) and len(item) == 1

    def __getitem__(self, index: Any) -> Any:
        return chr(index)

    def __len__(self) -> int:
        return 0x110000


class UnicodeText(Text):
    """Strings of ``min_length`` to ``max_length`` characters (both inclusive), any Unicode characters.

    ``contains`` looks at type and length only, so it costs the same for 4 kB as for 4 characters.
    ``sample`` draws short printable strings. Flattening uses code points. An AsyncVectorEnv needs
    ``shared_memory=False``; otherwise this space raises an error that says so.
    """

    def __init__(
        self, max_length: int, *, min_length: int = 0, seed: int | np.random.Generator | None = None
    ) -> None:
        super().__init__(max_length, min_length=min_length, charset=PRINTABLE, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a printable string of at most ``max(min_length, 64)`` characters; masks are refused."""
        if mask is not None or probability is not None:
            raise NotImplementedError("UnicodeText.sample takes neither mask nor probability; leave both out")
        longest = max(self.min_length, min(self.max_length, SAMPLE_LENGTH))
        length = int(self.np_random.integers(self.min_length, longest + 1))
        return "".join(PRINTABLE[i] for i in self.np_random.integers(len(PRINTABLE), size=length))

    def contains(self, x: Any) -> bool:
        """Returns whether ``x`` is a string of an allowed length."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length

    @property
    def character_set(self) -> Any:
        """Every character."""
        return _AllCharacters()

    @property
    def character_list(self) -> Any:
        """Every character, at the position that ``character_index`` gives."""
        return _AllCharacters()

    def character_index(self, char: str) -> np.int32:
        """Returns the code point."""
        return np.int32(ord(char))

    @property
    def characters(self) -> str:
        """The characters of samples."""
        return PRINTABLE

    def __repr__(self) -> str:
        return f"UnicodeText({self.min_length}, {self.max_length})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )


@create_shared_memory.register(UnicodeText)
def _refuse_shared_memory(space: UnicodeText, n: int = 1, ctx: Any = None) -> Any:
    # Gymnasium reads shared texts once, when the vector environment is made, and returns those zeros forever
    # (seen in 1.4.0). An error is better than empty observations.
    raise CustomSpaceError(
        "texts cannot be shared in memory; make the vector environment with shared_memory=False"
    )
