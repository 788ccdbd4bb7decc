"""Tests of the choice environment: illegal actions, order, and outputs that do not give away the true one."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from math import sqrt
from typing import Any

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import AdmissionError, ArgumentError, IllegalActionError
from task_gym.wrappers import NamedActions
from tests.trace_gym.play import Make, plain
from tests.trace_gym.rows import write_rows
from trace_gym.backends import LocalBackend, Trace
from trace_gym.envs.prompts import render_task
from trace_gym.programs.builtin import CELLS

pytestmark = pytest.mark.usefixtures("backend")

CHOICE = "CodeTraceChoice-v0"


def test_the_third_illegal_action_gives_up(make_env: Make) -> None:
    env = make_env(CHOICE, task_ids=[(0, 3)])
    text, info = env.reset(seed=1)
    mask, count = info["action_mask"].tolist(), len(info["legal_actions"])
    for action in (8, -1):
        again, reward, terminated, truncated, info = env.step(action)
        assert (again, reward, terminated, truncated) == (text, -0.01, False, False)
        legal = ", ".join(map(str, range(count)))
        assert info["error"] == {
            "type": "invalid_action",
            "message": f"action: {action} was given, legal: {legal}",
        }
        assert info["action_mask"].tolist() == mask and info["turn"] == 0
    _, reward, terminated, truncated, info = env.step(99)
    assert (reward, terminated, truncated) == (-0.01, True, False)
    assert info["score"] == 0.0 and info["result"] == "loss" and set(info["by_scoring"].values()) == {0.0}
    assert info["history"] == [8, -1, 99] and info["turn"] == 0 and not info["action_mask"].any()
    assert info["mutation"] == env.trace.mutation
    env.reset(seed=1)
    assert env.step(8)[2] is False  # each episode has its own count


def test_outputs_may_be_left_to_the_info() -> None:
    """Without a list, the observation is that of CodeTrace-v0, and everything else is unchanged."""
    listed, bare = (gym.make(CHOICE, task_id=3, listed=listed) for listed in (True, False))
    text, info = bare.reset(seed=2)
    trace = bare.unwrapped.trace  # type: ignore[attr-defined]
    asked = render_task(trace.code, trace.stdin)
    longer, same = listed.reset(seed=2)
    assert text == asked and plain(info) == plain(same) and longer != asked
    for env in (bare, NamedActions(bare)):
        text, info = env.reset(seed=2)
        assert text == asked  # it asks for the output already
        right = info["admissible_commands"].index(bare.unwrapped.trace.truth)  # type: ignore[attr-defined]
        assert env.step(right)[1:3] == (1.0, True)
    assert text.names == tuple(output.strip("\n") for output in same["admissible_commands"])
    copied = pickle.loads(pickle.dumps(bare.unwrapped))
    assert copied.reset(seed=2)[0] == asked


def test_masked_options_are_illegal_and_end_an_episode_or_raise(make_env: Make) -> None:
    raising, forfeiting = (make_env(CHOICE, task_id=2, illegal=name) for name in ("raise", "forfeit"))
    for env in (raising, forfeiting):
        env.reset(seed=2)
        env._outputs = env._outputs[:5]  # of eight, as if there were no more
        assert env.action_masks().tolist() == [True] * 5 + [False] * 3
    with pytest.raises(IllegalActionError, match="action: 5 was given, legal: 0, 1, 2, 3, 4"):
        raising.step(5)
    with pytest.raises(ArgumentError, match="action: 'one' was given, allowed: a whole number"):
        raising.step("one")
    assert raising.step(4)[2] is True  # nothing was changed
    _, reward, terminated, _, info = forfeiting.step(5)
    assert (reward, terminated, info["score"]) == (-0.01, True, 0.0)


@pytest.mark.launch
@pytest.mark.sample
def test_a_program_with_too_few_outputs_gives_way(tmp_path: Any, warm: None, make_env: Make) -> None:
    # The first program has nothing to change; the second has a loop and numbers.
    loop = "t = 1\nfor i in range(3, 9):\n    t = t * i + 2\n    print(t % 17, i)\n"
    rows = write_rows(tmp_path / "rows.jsonl", "print(input())\n", loop, inputs="a\n")
    _, info = make_env(CHOICE, source=rows, task_id=0).reset(seed=0)
    assert (info["row"], info["replaced"]) == (1, 1)
    strict = make_env(CHOICE, source=rows, task_id=0, injector="affine")
    with pytest.raises(
        AdmissionError, match=r"row 0.*its mutants print 0 plausible false outputs; 3 are needed"
    ):
        strict.reset(seed=0)


# Guessers that see only the outputs: each gives every output a number, and chooses the highest or the lowest.
Heuristic = Callable[[list[str]], list[float]]


def similarity(alike: Callable[[str, str], float]) -> Heuristic:
    def total(outputs: list[str]) -> list[float]:
        return [sum(alike(one, other) for other in outputs if other is not one) for one in outputs]

    return total


def shared_lines(one: str, other: str) -> float:
    ours, theirs = one.split("\n"), other.split("\n")
    return sum(a == b for a, b in zip(ours, theirs, strict=False)) / max(len(ours), len(theirs))


def shared_words(one: str, other: str) -> float:
    ours, theirs = Counter(one.split()), Counter(other.split())
    return (ours & theirs).total() / (ours | theirs).total()


HEURISTICS: dict[str, Heuristic] = {
    "like the others, by lines": similarity(shared_lines),
    "like the others, by words": similarity(shared_words),
    "characters": lambda outputs: [len(output) for output in outputs],
    "lines": lambda outputs: [output.count("\n") for output in outputs],
    "negative numbers": lambda outputs: [output.count(" -") for output in outputs],
    "different words": lambda outputs: [len(set(output.split())) for output in outputs],
}


def count_expected_hits(traces: list[Trace], heuristic: Heuristic, sign: int) -> float:
    """Returns how often a guesser finds the truth, with ties broken evenly."""
    hits = 0.0
    for trace in traces:
        values = [sign * value for value in heuristic([trace.truth, *trace.false])]
        hits += (values[0] == max(values)) / values.count(max(values))
    return hits


@pytest.mark.trains
def test_the_outputs_alone_do_not_tell_the_true_one(backend: LocalBackend) -> None:
    """No guesser beats chance on one task per cell: mean sum(1/k), variance sum(1/k (1 - 1/k))."""
    traces = [backend.load(task_id) for task_id in range(CELLS)]
    chances = [1 / (1 + len(trace.false)) for trace in traces]
    mean, deviation = sum(chances), sqrt(sum(chance * (1 - chance) for chance in chances))
    off = {
        (name, sign): count_expected_hits(traces, heuristic, sign) - mean
        for name, heuristic in HEURISTICS.items()
        for sign in (1, -1)
    }
    # Ties broken evenly only lessen the variance; |z| < 3 for twelve guessers fails by chance once in thirty.
    assert {name: value / deviation for name, value in off.items() if abs(value) > 3 * deviation} == {}
    # Most tasks have the full number.
    assert sum(len(trace.false) == 7 for trace in traces) > CELLS * 3 // 4


@pytest.mark.trains
def test_a_seed_does_not_say_where_the_truth_is(make_env: Make) -> None:
    """With one seed for 48 tasks with eight options, no place has the truth in 16 of them.

    Six are expected, deviation 2.3.
    """
    env = make_env(CHOICE, task_ids=[(0, CELLS - 1)])
    places: Counter[int] = Counter()
    task_id = 0
    while places.total() < 48:
        _, info = env.reset(seed=3, options={"task_id": task_id})
        if len(info["admissible_commands"]) == 8:
            places[info["admissible_commands"].index(env.trace.truth)] += 1
        task_id += 1
    assert len(places) >= 6 and max(places.values()) < 16
