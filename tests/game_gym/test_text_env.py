"""GameSpielText-v0: replies in, the same game out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import game_gym  # noqa: F401  (registers the environments)
from task_gym.errors import ArgumentError, EpisodeError, IllegalActionError
from tests.game_gym.play import LEDUC


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


@pytest.mark.parametrize(
    ("reply", "upstream", "last"),
    [
        # x(1,1) is action 4, but the 1 in it is the id of x(0,1), and ids come before names.
        ("my move is x(1,1)", 1, 1),
        ("my move is x(1,1), action 4", 1, 4),  # first number and first legal id: 1; last legal id: 4
        ("4", 4, 4),
    ],
)
def test_a_number_inside_a_name_is_an_id(reply: str, upstream: int, last: int) -> None:
    cases = [("openenv", "upstream", upstream), ("evaluate", "upstream", upstream), ("openenv", "last", last)]
    for seeding, parse, action in cases:
        env = text_env(task_id=None, game="tic_tac_toe", seeding=seeding, parse=parse)
        _, info = env.reset(seed=0)
        assert info["admissible_commands"][4] == "x(1,1)"
        env.step(reply)
        assert env.state.history()[0] == action


# Anything; numbers, some of them legal; reasoning, bits of names and numbers.
REPLIES = (
    st.text(max_size=20)
    | st.integers(-1, 120).map(str)
    | st.from_regex(r"(<think>)?[a-z0-9 (),♠←-]{0,12}(</think(ing)?>)?[A-Za-z0-9 ,♥]{0,12}", fullmatch=True)
)


@pytest.mark.parametrize(
    ("seeding", "parse"), [("openenv", "upstream"), ("evaluate", "upstream"), ("openenv", "last")]
)
@pytest.mark.parametrize("game", ["leduc_poker", "gin_rummy", "hex", "hearts", "solitaire", "chess"])
@settings(max_examples=25, deadline=None)
@given(replies=st.lists(REPLIES, max_size=12))
def test_a_reply_is_a_legal_move_or_an_illegal_action(
    game: str, seeding: str, parse: str, replies: list[str]
) -> None:
    # Open seats: every move of the history after the first turn is chance's or a reply's.
    env = text_env(task_id=None, game=game, seeding=seeding, parse=parse, opponent="open", rules=False)
    text, info = env.reset(seed=len(replies))
    for reply in replies:
        assert reply in env.action_space
        before, legal, turn = env.state.history(), info["legal_actions"], info["turn"]
        again, reward, over, truncated, info = env.step(reply)
        if "error" in info:
            assert env.state.history() == before and info["turn"] == turn and reward == -0.01
            assert over or (again == text and info["legal_actions"] == legal)
        else:
            assert env.state.history()[len(before)] in legal and info["turn"] == turn + 1
        assert truncated is False
        if over:
            break
        text = again


def test_errors() -> None:
    env = text_env(illegal="raise")
    with pytest.raises(EpisodeError, match="outside an episode"):
        env.step("1")
    env.reset(seed=8)
    with pytest.raises(ArgumentError, match="action: 1 was given, allowed: a reply as text"):
        env.step(1)
    with pytest.raises(IllegalActionError, match="reply: 'fold' names no legal action, legal: 1, 2"):
        env.step("fold")
