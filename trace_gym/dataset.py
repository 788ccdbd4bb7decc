"""Code tracing as a data set of questions with a scorer, in reasoning-gym's shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from task_gym.checks import check_whole
from task_gym.errors import ArgumentError, check_choice
from task_gym.seeding import SEED_LIMIT
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.score import SCORINGS, scores

Entry = dict[str, Any]


class TraceDataset(Sequence[Entry]):
    """Questions about programs: ``{"question", "answer", "metadata"}``, and a score for any answer.

    Entry i is the episode of ``CodeTrace-v0`` with seed ``seed + i``, so that it is the same on any machine.

    Args:
        size: Number of entries.
        seed: The first seed.
        scoring: "affine", "exact" or "lines": what :meth:`score_answer` returns.
        **arguments: Those of ``CodeTrace-v0`` that choose programs, such as ``level`` and ``family``.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def __init__(self, size: int = 100, seed: int = 0, scoring: str = "affine", **arguments: Any) -> None:
        check_choice("scoring", scoring, SCORINGS)
        self._size = check_whole("size", size, SEED_LIMIT, ArgumentError)
        self._first = check_whole("seed", seed, SEED_LIMIT - size, ArgumentError)
        self._scoring = scoring
        self._env = CodeTraceEnv(**arguments)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        if not -self._size <= index < self._size:
            raise IndexError(f"entry {index} of {self._size}")
        question, info = self._env.reset(seed=self._first + index % self._size)
        trace = self._env.trace
        assert trace is not None
        kept = ("task_id", "seed", "family", "level", "source")
        return {
            "question": question,
            "answer": trace.truth,
            "metadata": {key: info[key] for key in kept},
        }

    def __iter__(self) -> Iterator[Entry]:
        return (self[i] for i in range(self._size))

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Returns the score of a reply to an entry, in [0, 1]; no reply scores 0."""
        return 0.0 if answer is None else scores(entry["answer"], answer)[self._scoring]

    def pairs(self) -> Iterator[tuple[str, Any]]:
        """Yields (prompt, scorer): the scorer takes a reply and returns its score."""
        for entry in self:
            yield entry["question"], lambda reply, entry=entry: self.score_answer(reply, entry)

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
