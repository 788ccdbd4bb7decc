"""GameSpielText-v0: replies in, the same game out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import game_gym  # noqa: F401  (registers the environments)
from task_gym.errors import ArgumentError, EpisodeError, IllegalActionError
from tests.game_gym.play import LEDUC, episode, make


def text_env(**arguments: Any) -> Any:
    return gym.make("GameSpielText-v0", **{"task_id": LEDUC, **arguments}).unwrapped


@pytest.mark.parametrize(
    ("arguments", "reply", "turn"),
    [
        # Seat 0 may call (1) or raise (2).
        ({}, "0 is illegal, so 1", 0),  # reset/step: the first number, which is illegal
        ({"seeding": "evaluate"}, "0 is illegal, so 1", 1),
        ({"seeding": "evaluate"}, "<think>2</think>call", 1),
        ({}, "call", 0),
        ({"parse": "last"}, "not 2 but 1, as 0 is illegal", 1),
        ({"parse": "last", "seeding": "evaluate"}, "call? I RAISE", 1),
        ({}, "", 0),
    ],
)
def test_replies_are_read_by_the_rule_in_use(arguments: dict[str, Any], reply: str, turn: int) -> None:
    env = text_env(**arguments)
    env.reset(seed=8)
    _, reward, _, _, info = env.step(reply)
    assert info["turn"] == turn
    if not turn:
        assert reward == info["upstream_reward"] == -0.01
        assert info["error"]["message"] == f"reply: {reply!r} names no legal action, legal: 1, 2"


def test_it_is_the_same_game() -> None:
    whole = make(task_id=LEDUC)
    env = text_env()
    for seed in range(10):
        expected = episode(whole, seed)
        text, info = env.reset(seed=seed)
        assert text == expected[0][0]
        for turn, step in enumerate(expected[1:]):
            action = info["legal_actions"][(7 * turn + seed) % len(info["legal_actions"])]
            text, reward, terminated, truncated, info = env.step(f"{action}")
            assert (text, reward, terminated, truncated) == step[:4]


def test_three_bad_replies_forfeit() -> None:
    env = text_env()
    env.reset(seed=8)
    assert [env.step("pass")[2] for _ in range(3)] == [False, False, True]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=20) | st.from_regex(r"[0-3 a-c]{1,4}"), max_size=12), st.booleans())
def test_no_reply_breaks_it(replies: list[str], last: bool) -> None:
    env = text_env(parse="last" if last else "upstream", seeding="evaluate")
    env.reset(seed=len(replies))
    for reply in replies:
        assert reply in env.action_space
        if env.step(reply)[2]:
            break


def test_errors() -> None:
    env = text_env(illegal="raise")
    with pytest.raises(EpisodeError, match="outside an episode"):
        env.step("1")
    env.reset(seed=8)
    with pytest.raises(ArgumentError, match="action: 1 was given, allowed: a reply as text"):
        env.step(1)
    with pytest.raises(IllegalActionError, match="reply: 'fold' names no legal action, legal: 1, 2"):
        env.step("fold")
