"""Cleaning and scores: records, cases by hand, and properties; code tracing as questions with a scorer."""

from __future__ import annotations

import json
import re
import time
from itertools import combinations
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trace_gym  # noqa: F401  (registers CodeTrace-v0)
from task_gym.errors import ArgumentError
from tests.task_gym.test_replies import draw_replies, specified_cut
from trace_gym.dataset import TraceDataset
from trace_gym.score import clean, clean_line, is_scorable, line_is_right, scores

_DATA = Path(__file__).parents[1] / "data"
_RECORDS = [
    record
    for name in ("affinetes_injections.jsonl", "affinetes_replies.jsonl")
    for record in map(json.loads, (_DATA / name).read_text(encoding="utf-8").split("\n")[:-1])
    if "cleaned" in record
]
"""Replies with upstream's own scores: nine by hand, and random ones of fences, tags and digits."""

_LINE = st.text(st.sampled_from("ab ").filter(str), max_size=3) | st.sampled_from(
    ["__DBG_0__ 1", "__DBG_0__ 2", "__DBG_1__ 'a'"]
)
_OUTPUT = st.lists(_LINE, max_size=6).map("\n".join)


def test_cleaning_and_score_are_upstreams() -> None:
    assert len(_RECORDS) == 9 + 400
    for record in _RECORDS:
        reply = record["reply"]
        assert clean(reply) == record["cleaned"], reply
        assert scores(record["expected"], reply)["affine"] == record["score"], reply


@pytest.mark.parametrize(
    ("truth", "reply", "affine", "exact"),
    [
        ("a\nb\n", "a\nb", 1, 1),
        ("a\nb\n", "a \r\nb\t\n\n", 1, 1),
        ("a\nb\n", "a\rb", 1, 1),
        ("a\nb\n", "\n\na\nb", 1, 1),
        ("5", "```5```", 1, 0),
        ("5", "```\n5\n```", 1, 1),
        ("5", "```text\n5\n```", 1, 1),
        ("5", "```python3\n5\n```", 0, 1),  # upstream takes "python" away, and compares with "35"
        ("5", "```c++\n5\n```", 0, 1),
        ("  a\n b\n", "```\n  a\n b\n```", 1, 1),  # the first line's indentation is part of the output
        ("  a\n b\n", "</think>\n\n  a\n b", 1, 1),
        ("  a\n b\n", "a\n b", 1, 0),
        ("a\n\nb\n", "a\nb", 1, 0),
        ("1 23", "12 3", 1, 0),
        ("True", "true", 1, 0),
        ("a\x0cb", "a\x0cb", 1, 1),
        ("a", "b", 0, 0),
        ("", "", 1, 0),  # upstream's fault; no truth of ours
        (" \n", "", 1, 0),
    ],
)
def test_affine_and_exact_by_hand(truth: str, reply: str, affine: float, exact: float) -> None:
    grades = scores(truth, reply)
    assert (grades["affine"], grades["exact"]) == (affine, exact)
    assert (grades["lines"] == 1) == exact


@pytest.mark.parametrize(
    ("truth", "reply", "share"),
    [
        # No debug lines: the common prefix over the longer of both.
        ("a\nb\nc\nd", "a\nb\nx\nd", 2 / 4),
        ("a\nb", "a\nb\nc", 2 / 3),
        ("a\nb\nc", "a", 1 / 3),
        ("a", "x\na", 0),
        ("a", "", 0),
        ("a\n\nb", "a\n\nc", 2 / 3),
        ("a\nb", "a\n__DBG_0__ 1", 1 / 2),  # the truth has none, so they count as any other line
        # With debug lines: the mean of 1 of 4 lines and 1 of 2 debug lines.
        ("a\n__DBG_0__ 1\nb\n__DBG_1__ 2", "a\n__DBG_0__ 3\nb\n__DBG_1__ 2", (1 / 4 + 1 / 2) / 2),
        # One left out, the others right: 1 of 4 lines, 2 of 3 debug lines.
        ("__DBG_0__ 1\n__DBG_1__ 1\n__DBG_0__ 2\nz", "__DBG_0__ 1\n__DBG_0__ 2\nz", (1 / 4 + 2 / 3) / 2),
        # The same tag again: the second of the truth is not the first of the reply. 0 of 2, and 0 of 2.
        ("__DBG_0__ 1\n__DBG_0__ 2", "__DBG_0__ 2", 0),
        # Debug lines that are made up count against: 1 of 3, and 1 of 3.
        ("__DBG_0__ 1", "__DBG_0__ 1\n__DBG_1__ 1\n__DBG_1__ 1", (1 / 3 + 1 / 3) / 2),
        # Printed into a line that the program had begun: a debug line all the same.
        ("n? __DBG_0__ 3\na", "n? __DBG_0__ 3\nb", (1 / 2 + 1) / 2),
    ],
)
def test_lines_by_hand(truth: str, reply: str, share: float) -> None:
    assert scores(truth, reply)["lines"] == pytest.approx(share)


@given(
    _OUTPUT,
    st.sampled_from(
        ["{}", "```\n{}\n```", "<think>no</think>{}", "so\n```text\n{}```\n", "x</think>\n\n{}\n"]
    ),
)
def test_the_truth_scores_1_however_it_is_wrapped(truth: str, wrapping: str) -> None:
    assert is_scorable(truth) == bool(truth.strip())
    if truth.strip():
        assert set(scores(truth, wrapping.format(truth)).values()) == {1.0}


@pytest.mark.parametrize("truth", ["", " \n", "a </think> b", "a\n```\nb\n```", "<think>a</think>"])
def test_a_truth_that_cannot_be_told_by_a_reply_is_not_scorable(truth: str) -> None:
    assert not is_scorable(truth)


def _specified(reply: str, fence: str) -> str:
    """Returns what a reply says, by upstream's regular expressions, with the white space at its ends."""
    rest = specified_cut(reply)
    fenced = re.search(fence, rest, re.DOTALL)
    return fenced.group(1) if fenced else rest


_FENCES = [
    "<think>```\na\n```</think>b",
    "a</think>b</think>c",
    "<thinking>a</think>b</thinking>c",  # a lone closing tag would be left
    "say ```py\n  a\n\n``` and ```\nb\n```",
    "```\nnever closed",
    "a ```1b``` c",
    "a ```b``` c",  # letters are a language
]


def test_cleaning_is_what_upstreams_expressions_say() -> None:
    for reply in (*_FENCES, *draw_replies()):
        assert clean(reply) == _specified(reply, r"```(?:[a-zA-Z]*)\n?(.*?)\n?```").strip(), reply
        assert clean_line(reply) == _specified(reply, r"```[^\n]*\n(.*?)```").strip("\r\n"), reply


_REPEATED = ["<think>", "</think>", "```", "`", "\n", " ", "1", "__DBG_1", "__DBG_1__"]
"""Fragments to repeat. Some of them took quadratic time in an earlier version."""


@pytest.mark.parametrize(
    "pair",
    [
        *(fragment * 2 for fragment in _REPEATED),
        *(pytest.param("".join(two), marks=pytest.mark.families) for two in combinations(_REPEATED, 2)),
    ],
)
def test_a_reply_is_scored_in_linear_time(pair: str) -> None:
    # For a quarter of a megabyte, linear code needs 0.1 s of processor time, and quadratic code 30 s.
    reply = pair * ((1 << 18) // len(pair)) + "x"
    began = time.process_time()
    scores("a\n__DBG_1__ 1\n", reply)
    line_is_right("a", reply)
    assert time.process_time() - began < 10


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


def test_scores_of_entries() -> None:
    data = TraceDataset(2, seed=1, scoring="exact", level=1)
    entry = data[0]
    assert data.score_answer(entry["answer"], entry) == 1
    assert data.score_answer(f"<think>Hm.</think>\n```\n{entry['answer']}```", entry) == 1
    assert data.score_answer("something else", entry) == data.score_answer(None, entry) == 0
    # Each scorer has its own entry.
    scored = [[scorer(other["answer"]) for other in data] for _, scorer in data.pairs()]
    assert scored == [[1, 0], [0, 1]]
    with pytest.raises(ArgumentError, match=r"scoring: 'exct' was given.*did you mean 'exact'"):
        TraceDataset(2, scoring="exct")
    with pytest.raises(ArgumentError, match=r"size: -1 was given"):
        TraceDataset(-1)
