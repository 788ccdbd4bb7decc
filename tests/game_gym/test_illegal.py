"""Illegal actions: they cost, change nothing, and the third in a row gives the game up."""

from __future__ import annotations

import pytest

from task_gym.errors import IllegalActionError
from tests.game_gym.play import LEDUC, make


def test_an_illegal_action_costs_and_changes_nothing() -> None:
    env = make(task_id=LEDUC)
    text, before = env.reset(seed=8)  # seat 0, where folding is illegal at first
    assert before["legal_actions"] == [1, 2]
    history = env.state.history()
    again, reward, terminated, truncated, info = env.step(0)
    assert (again, reward, terminated, truncated) == (text, -0.01, False, False)
    assert info["upstream_reward"] == -0.01
    assert info["error"] == {"type": "invalid_action", "message": "action: 0 was given, legal: 1, 2"}
    assert env.state.history() == history
    assert info["action_mask"].tolist() == before["action_mask"].tolist()
    assert info["turn"] == 0
    assert "error" not in env.step(1)[-1]


@pytest.mark.parametrize("action", [-1, 9, pytest.param(10**5000, id="huge")])
def test_actions_outside_the_space_are_illegal_too(action: int) -> None:
    env = make(game="tic_tac_toe")
    env.reset(seed=0)
    _, reward, *_, info = env.step(action)
    assert reward == -0.01
    assert info["error"]["message"].endswith("was given, legal: 0, 1, 2, 3, 4, 5, 6, 7, 8")


def test_the_third_in_a_row_forfeits() -> None:
    env = make(task_id=LEDUC)
    env.reset(seed=8)
    assert [env.step(0)[2] for _ in range(2)] == [False, False]
    text, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated) == (-0.01, True, False)
    # The least return of leduc for two is 1 + 2 * 2 + 2 * 4 = 13 chips lost.
    assert info["returns"] == [-13, 13]
    assert info["scores"] == [0, 1]
    assert (info["score"], info["success"], info["result"]) == (0, False, "loss")
    assert info["history"] == env.state.history()
    assert not info["action_mask"].any()
    assert text.startswith("Game over: leduc_poker")


def test_a_legal_action_between_starts_the_count_over() -> None:
    env = make(game="tic_tac_toe")
    _, info = env.reset(seed=0)
    total = 0.0
    terminated = False
    while not terminated:
        for _ in range(2):
            _, reward, terminated, _, info = env.step(99)
            assert not terminated
            total += reward
        _, reward, terminated, _, info = env.step(info["legal_actions"][0])
        total += reward
    # An episode's return is its score, less 0.01 for each illegal action.
    assert total == pytest.approx(info["score"] - 0.02 * info["turn"])


def test_forfeit_ends_at_the_first() -> None:
    env = make(task_id=LEDUC, illegal="forfeit")
    env.reset(seed=3)
    _, reward, terminated, _, info = env.step(5)
    assert (reward, terminated, info["result"], info["seat"]) == (-0.01, True, "loss", 1)
    assert info["returns"] == [13, -13]


def test_raise_raises_and_the_game_goes_on() -> None:
    env = make(task_id=LEDUC, illegal="raise")
    env.reset(seed=8)
    with pytest.raises(IllegalActionError, match="action: 0 was given, legal: 1, 2"):
        env.step(0)
    assert env.step(1)[-1]["turn"] == 1
