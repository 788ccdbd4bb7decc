"""The model that sees no program: it finds what there is to be found, and nothing else."""

from __future__ import annotations

import random
from math import log

import pytest
import torch

from benchmarks.trace_blind import COLUMNS, Question, features, guesses, measured, questions


def made_up(count: int, seed: int, mark: str | None) -> list[Question]:
    """Four to eight outputs of three numbers each; with a mark, the true one of two in three has it."""
    rng = random.Random(seed)
    asked = []
    for _ in range(count):
        outputs = [" ".join(str(rng.randrange(10)) for _ in range(3)) for _ in range(rng.randint(4, 8))]
        truth = rng.randrange(len(outputs))
        if mark is not None and rng.random() < 2 / 3:
            outputs[truth] += mark
        asked.append(Question(outputs, truth))
    return asked


@pytest.mark.trains
def test_a_mark_is_found() -> None:
    """With it the guess is right; without it, one of 4 … 8: 2/3 + 1/3 · 0.177 = 0.726."""
    found = measured(made_up(300, 1, " z"), made_up(300, 2, " z"))
    assert (found["fitted_on"], found["asked"]) == (300, 300)
    assert found["greedy"][1] < 0.726 < found["greedy"][2]
    assert found["uniform"] < 0.2 < found["probability"][1]


@pytest.mark.trains
def test_where_there_is_nothing_to_find_it_guesses() -> None:
    found = measured(made_up(300, 1, None), made_up(300, 2, None))
    for way in ("probability", "greedy"):
        assert found[way][1] < found["uniform"] < found[way][2]


def test_equal_outputs_share_what_is_right() -> None:
    """The mean of 1/2, 1/4 and 1/3, whatever the weights are."""
    same = [Question(["a b"] * size, truth) for size, truth in ((2, 0), (4, 3), (3, 1))]
    found = measured(made_up(20, 1, None), same)
    assert found["uniform"] == found["greedy"][0] == found["probability"][0] == 0.3611


def test_options_that_are_not_there_are_impossible() -> None:
    asked = made_up(5, 3, None)
    found = guesses(made_up(20, 1, None), asked).exp()
    torch.testing.assert_close(found.sum(1), torch.ones(5))
    for row, question in zip(found, asked, strict=True):
        assert (row > 0).sum() == len(question.outputs)


def test_what_stands_in_an_output() -> None:
    """By hand: 3 and 5 characters, 1 and 2 lines, and one line of two in both."""
    one, other = features(["a b", "a b\nc"])
    assert one[COLUMNS:].tolist() == pytest.approx(
        # a, b and a~b of a, b, newline, c, a~b, b~newline and newline~c are in both: 3 of 7.
        [log(4), log(2), 1 / 2, 3 / 7]
    )
    assert other[COLUMNS:].tolist() == pytest.approx([log(6), log(3), 1 / 2, 3 / 7])
    assert one[:COLUMNS].sum() == pytest.approx(3 * log(2))


def test_both_questions_have_the_same_outputs() -> None:
    drawn, own = questions(1, "arithmetic", 6)
    assert len(drawn) == len(own) == 6 and sum(one is not None for one in own) >= 4
    both = [(one, other) for one, other in zip(drawn, own, strict=True) if other is not None]
    assert all(one.outputs == other.outputs for one, other in both)
    assert any(one.truth != other.truth for one, other in both)
