"""Questions with a scorer, in reasoning-gym's shape: the base of the rooms' data sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import index as whole
from typing import Any

from task_gym.arguments import check_whole
from task_gym.errors import ArgumentError
from task_gym.seeding import DRAWN_LIMIT

Entry = dict[str, Any]


class QuestionDataset(Sequence[Entry], ABC):
    """Entries ``{"question", "answer", "metadata"}``, and a score for any answer.

    Entry i depends only on ``seed + i`` and on the other arguments.

    Args:
        size: Number of entries.
        seed: The first seed.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = check_whole("size", size, DRAWN_LIMIT, ArgumentError)
        self._first = check_whole("seed", seed, DRAWN_LIMIT - size, ArgumentError)

    @abstractmethod
    def entry(self, seed: int) -> Entry:
        """Returns the entry of a seed."""

    @abstractmethod
    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Returns the score of a reply to an entry, in [0, 1]; no reply scores 0."""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        index = whole(index)  # NumPy's too, as those of a permutation
        if not -self._size <= index < self._size:
            raise IndexError(f"entry {index} of {self._size}")
        return self.entry(self._first + index % self._size)

    def __iter__(self) -> Iterator[Entry]:
        return (self[i] for i in range(self._size))

    def pairs(self) -> Iterator[tuple[str, Callable[[str | None], float]]]:
        """Yields (prompt, scorer): the scorer takes a reply and returns its score."""
        for entry in self:
            yield entry["question"], partial(self.score_answer, entry=entry)

    def to_huggingface(self) -> Any:
        """Returns a ``datasets.Dataset`` with the columns ``prompt``, ``answer`` and ``metadata``.

        A prompt is a conversation of one message, as TRL's trainers take it.
        """
        from datasets import Dataset

        return Dataset.from_list(
            [
                {
                    "prompt": [{"role": "user", "content": entry["question"]}],
                    "answer": entry["answer"],
                    "metadata": entry["metadata"],
                }
                for entry in self
            ]
        )
