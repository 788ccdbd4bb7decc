"""HideLegalActions: the same text without the list."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers the environments)
from game_gym.wrappers import HideLegalActions, ShuffledActions
from task_gym.errors import ArgumentError, LayoutError
from task_gym.picture import picture
from tests.game_gym.play import episode, make
from tests.task_gym.scripts import Script, turn

ANSWER = "\n\nYour choice (action ID only):"


def build(**arguments: Any) -> HideLegalActions:
    return HideLegalActions(gym.make("GameSpiel-v0", **arguments))


@pytest.mark.parametrize("game", ["leduc_poker", "tic_tac_toe", "chess", "goofspiel", "matrix_rps"])
@pytest.mark.parametrize("opponent", ["random", "open"])
def test_the_list_is_left_out_and_nothing_else(game: str, opponent: str) -> None:
    hidden = episode(build(game=game, opponent=opponent, max_turns=30), 3)
    shown = episode(make(game=game, opponent=opponent, max_turns=30), 3)
    assert [entry[1:] for entry in hidden] == [entry[1:] for entry in shown]
    for (text, *_, info), (whole, *_, _) in zip(hidden, shown, strict=True):
        if info["legal_actions"]:
            lines = [
                f"  {action} -> {name}"
                for action, name in zip(info["legal_actions"], info["admissible_commands"], strict=True)
            ]
            assert text.endswith(ANSWER)
            listed = "\n".join(["\n\nLegal Actions:", *lines])
            assert text.removesuffix(ANSWER) + listed + ANSWER == whole
        else:
            assert text == whole


def test_an_illegal_action_still_says_what_is_legal() -> None:
    env = build(game="tic_tac_toe", render_mode="ansi")
    env.reset(seed=0)
    text, reward, *_, info = env.step(99)
    assert reward == -0.01 and "legal: 0, 1, 2" in info["error"]["message"]
    assert env.render() == text and "->" not in text


def test_a_picture_is_of_the_same_text() -> None:
    pictured = build(game="tic_tac_toe", render_mode="rgb_array")
    text, _ = pictured.reset(seed=0)
    assert np.array_equal(pictured.render(), picture(text))
    assert not np.array_equal(pictured.render(), pictured.unwrapped.render())


def test_wrappers_that_rewrite_the_list_go_inside() -> None:
    inside = HideLegalActions(ShuffledActions(make(game="tic_tac_toe")))
    text, info = inside.reset(seed=0)
    assert "->" not in text and info["legal_actions"] == list(range(9))
    with pytest.raises(LayoutError, match=r"a text that ends .* ends with the list of legal actions, as"):
        ShuffledActions(build(game="tic_tac_toe")).reset(seed=0)


def test_other_environments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"HideLegalActions: .*Script.* allowed: GameSpiel-v0"):
        HideLegalActions(Script(turn("a")))
    with pytest.raises(ArgumentError, match=r"HideLegalActions: .*Box.*, allowed: text observations"):
        HideLegalActions(gym.make("CartPole-v1"))
