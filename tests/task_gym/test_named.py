"""NamedActions: the question asks for a name, and the text carries the names."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers the environments)
import trace_gym  # noqa: F401  (the same)
from task_gym.contract import CLOSING
from task_gym.errors import ArgumentError
from task_gym.wrappers import ChatObservation, NamedActions, NamedText
from tests.task_gym.scripts import Script, turn


def test_a_named_text_is_a_text() -> None:
    text = NamedText("abc", ["x", "y"])
    assert text == "abc" and hash(text) == hash("abc") and isinstance(text, str)
    assert text.names == ("x", "y") and NamedText("abc").names == ()
    for twin in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text), copy.copy(text)):
        assert twin == "abc" and twin.names == ("x", "y")
    assert not hasattr(text + "d", "names")


def test_the_names_go_with_the_question() -> None:
    env = NamedActions(
        Script(
            turn(f"a\n\n{CLOSING}", admissible_commands=["Fold", "\nx\n 1\n", " y"]),
            turn("no question", admissible_commands=["Call"]),
            ("over", 1.0, True, False, {"admissible_commands": [], "score": 1.0}),
        )
    )
    text, info = env.reset()
    # Line ends around a name go; other white space is the name's own.
    assert text == "a\n\nYour choice (action name only):" and text.names == ("Fold", "x\n 1", " y")
    assert info["admissible_commands"] == ["Fold", "\nx\n 1\n", " y"]
    text, reward, terminated, truncated, _ = env.step(2)
    assert (text, text.names, reward, terminated, truncated) == ("no question", ("Call",), 0.0, False, False)
    text, reward, terminated, _, info = env.step(4)
    assert (text, text.names, reward, terminated, info["score"]) == ("over", (), 1.0, True, 1.0)
    assert env.unwrapped.answers == [2, 4]  # type: ignore[attr-defined]  # numbers, as they were given


def test_a_game_by_name() -> None:
    env = NamedActions(gym.make("GameSpiel-v0", game="leduc_poker", rules=False))
    text, info = env.reset(seed=0)
    assert text in env.observation_space and text.endswith("Your choice (action name only):")
    assert text.names == tuple(info["admissible_commands"]) and "Call" in text.names
    assert env.action_masks().sum() == len(text.names)
    again = gym.make(env.spec)  # type: ignore[arg-type]  # the wrapper is part of the recipe
    assert again.reset(seed=0)[0].names == text.names


def test_what_it_wraps_has_texts_and_a_mask() -> None:
    with pytest.raises(ArgumentError, match="NamedActions: an environment without action_masks"):
        NamedActions(gym.make("CodeTrace-v0"))
    with pytest.raises(ArgumentError, match="NamedActions: an environment with observations in"):
        NamedActions(ChatObservation(gym.make("GameSpiel-v0", game="kuhn_poker")))
    with pytest.raises(ArgumentError, match="NamedActions: an environment that does not name its actions"):
        NamedActions(Script(turn("a"))).reset()
