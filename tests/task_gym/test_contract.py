"""The rules that games and traces share: strikes, results and the ending's info."""

from __future__ import annotations

import pytest

from task_gym.contract import Strikes, ending_info, illegal_info, result_of
from task_gym.errors import ArgumentError, IllegalActionError


def test_the_third_strike_in_a_row_gives_up() -> None:
    strikes = Strikes("penalize")
    assert [strikes.add("no") for _ in range(2)] == [False, False]
    strikes.count = 0  # a legal action
    assert [strikes.add("no") for _ in range(3)] == [False, False, True]
    assert Strikes("forfeit").add("no")


def test_a_strike_that_raises_is_not_counted() -> None:
    strikes = Strikes("raise")
    with pytest.raises(IllegalActionError, match="no"):
        strikes.add("no")
    assert strikes.count == 0


def test_there_is_no_fourth_rule() -> None:
    with pytest.raises(ArgumentError, match=r"illegal: 'forfit' was given, .*; did you mean 'forfeit'"):
        Strikes("forfit")


def test_the_parts_of_the_info() -> None:
    assert illegal_info("no") == {
        "upstream_reward": -0.01,
        "error": {"type": "invalid_action", "message": "no"},
    }
    assert [result_of(margin) for margin in (0.1, 0.0, -0.1)] == ["win", "draw", "loss"]
    # Recorded games have the keys in this order.
    won = ending_info(0.75, [1.0], "win", [2], scores=[0.75])
    assert list(won) == ["score", "scores", "success", "returns", "result", "history"]
    assert won["success"] and not ending_info(0.5, [], "draw", [])["success"]
    assert ending_info(None, [], "fault", [])["success"] is False
