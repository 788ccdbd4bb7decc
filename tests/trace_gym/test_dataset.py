"""Code tracing as questions with a scorer."""

from __future__ import annotations

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers CodeTrace-v0)
from task_gym.errors import ArgumentError
from trace_gym.dataset import TraceDataset


def test_entries_are_the_environments_episodes() -> None:
    data = TraceDataset(4, seed=7, level=1)
    env = gym.make("CodeTrace-v0", level=1)
    for index, entry in enumerate(data):
        question, info = env.reset(seed=7 + index)
        *_, end = env.step("")
        assert (entry["question"], entry["answer"]) == (question, end["truth"])
        assert entry["metadata"]["task_id"] == info["task_id"] and entry["metadata"]["level"] == 1
    assert len(data) == 4 and data[-1] == data[3] and data[1:3] == [data[1], data[2]]
    with pytest.raises(IndexError, match="entry 4 of 4"):
        data[4]


def test_scores() -> None:
    data = TraceDataset(2, seed=1, scoring="exact", level=1)
    entry = data[0]
    assert data.score_answer(entry["answer"], entry) == 1
    assert data.score_answer(f"<think>Hm.</think>\n```\n{entry['answer']}```", entry) == 1
    assert data.score_answer("something else", entry) == data.score_answer(None, entry) == 0
    # Each scorer has its own entry.
    scored = [[scorer(other["answer"]) for other in data] for _, scorer in data.pairs()]
    assert scored == [[1, 0], [0, 1]]


def test_huggingface() -> None:
    pytest.importorskip("datasets")
    data = TraceDataset(2, level=1)
    rows = data.to_huggingface()
    assert rows.column_names == ["prompt", "answer", "metadata"]
    assert rows[0]["prompt"] == [{"role": "user", "content": data[0]["question"]}]
    assert rows[1]["answer"] == data[1]["answer"]


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"scoring: 'exct' was given.*did you mean 'exact'"):
        TraceDataset(2, scoring="exct")
    with pytest.raises(ArgumentError, match=r"size: -1 was given"):
        TraceDataset(-1)
