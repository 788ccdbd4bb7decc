"""Code tracing as a data set of questions with a scorer, in reasoning-gym's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from task_gym.dataset import Entry, QuestionDataset
from task_gym.errors import check_choice
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.score import SCORINGS, scores


class TraceDataset(QuestionDataset):
    """Questions about programs: ``{"question", "answer", "metadata"}``, and a score for any answer.

    Entry i is the episode of ``CodeTrace-v0`` with seed ``seed + i``, so that it is the same on any machine.

    Args:
        size: Number of entries.
        seed: The first seed.
        scoring: "affine", "exact" or "lines": what ``score_answer`` returns.
        **arguments: Those of ``CodeTrace-v0`` that choose programs, such as ``level`` and ``family``.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def __init__(self, size: int = 100, seed: int = 0, scoring: str = "affine", **arguments: Any) -> None:
        check_choice("scoring", scoring, SCORINGS)
        super().__init__(size, seed)
        self._scoring = scoring
        self._env = CodeTraceEnv(**arguments)

    def entry(self, seed: int) -> Entry:
        """Returns the entry of a seed."""
        question, info = self._env.reset(seed=seed)
        trace = self._env.trace
        assert trace is not None
        metadata = {key: info[key] for key in ("task_id", "seed", "family", "level", "source")}
        return {"question": question, "answer": trace.truth, "metadata": metadata}

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Returns the score of a reply to an entry, in [0, 1]; no reply scores 0."""
        return 0.0 if answer is None else scores(entry["answer"], answer)[self._scoring]
