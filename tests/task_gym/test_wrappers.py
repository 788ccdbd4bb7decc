"""Wrappers of observations, names, rewards and infos."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers the environments)
import trace_gym  # noqa: F401  (the same)
from task_gym.contract import CLOSING
from task_gym.errors import ArgumentError, TokenError
from task_gym.spaces import UnicodeText
from task_gym.wrappers import (
    DictObservation,
    NamedActions,
    NumericInfo,
    TokenObservation,
    ZeroCentredReward,
)
from tests.task_gym.scripts import Script, turn

# -- DictObservation: the mask beside the observation ------------------------------------------------------

EVEN = [1, 0] * 5


def test_observation_and_mask() -> None:
    env = DictObservation(Script(turn("a"), turn("b", 0.5)))
    observation, info = env.reset(seed=0)
    assert list(observation) == ["observation", "action_mask"] and observation["observation"] == "a"
    assert observation["action_mask"].tolist() == EVEN and observation["action_mask"].dtype == np.int8
    observation, reward, *_, info = env.step(3)
    assert (observation["observation"], reward) == ("b", 0.5)
    # The space is the one that readers of masks declare.
    assert env.observation_space == gym.spaces.Dict(
        {"observation": UnicodeText(1000), "action_mask": gym.spaces.Box(0, 1, (10,), np.int8)}
    )
    observation["action_mask"][:] = 0  # it is the observation's own
    assert info["action_mask"].tolist() == EVEN


# -- TokenObservation: padded ids in, text in the info -----------------------------------------------------

ABC = [turn("ab"), turn("abc"), turn("abcd")]


def encode(text: str) -> list[int]:
    return [ord(letter) - ord("a") for letter in text]


def test_ids_are_padded_on_the_right() -> None:
    env = TokenObservation(Script(*ABC), encode, length=3, vocab_size=26, pad_id=26)
    ids, info = env.reset(seed=0)
    assert ids.tolist() == [0, 1, 26] and ids.dtype == np.int32
    assert info["text"] == "ab" and info["action_mask"].tolist() == EVEN
    ids, *_, info = env.step(0)
    assert ids.tolist() == [0, 1, 2] and info["text"] == "abc"  # a text may fill the length
    assert env.observation_space == gym.spaces.Box(0, 26, (3,), np.int32)
    with pytest.raises(TokenError, match="4 tokens was given, allowed: length=3"):
        env.step(0)


@pytest.mark.parametrize(("start", "token"), [("A", -32), ("z", 25), ("b", 1)])
def test_ids_out_of_range_or_equal_to_padding_are_refused(start: str, token: int) -> None:
    env = TokenObservation(Script(turn(start)), encode, length=3, vocab_size=25, pad_id=1)
    with pytest.raises(TokenError, match=f"token id {token} was given, allowed: 0 … 24 .* 1"):
        env.reset()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0}, "length: 0 was given, allowed: 1 or more"),
        ({"pad_id": -2}, "pad_id: -2 was given, allowed: -1 … 26"),
        ({"pad_id": 27}, "pad_id: 27 was given"),
        ({"length": "4"}, "length: '4' was given"),
        ({"encode": "gpt2"}, "encode: 'gpt2' was given, allowed: a function from a text"),
    ],
)
def test_bad_settings_of_tokens_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        TokenObservation(
            Script(*ABC), **{"encode": encode, "length": 4, "vocab_size": 26, "pad_id": 26, **change}
        )


@pytest.mark.parametrize("returned", [{"input_ids": [1]}, None, [1.5], ["1"], [[1], [2]], [[1], [2, 3]]])
def test_what_is_no_list_of_ids_is_named(returned: Any) -> None:
    """A tokenizer itself returns a mapping; numbers with fractions would be cut."""
    env = TokenObservation(Script(*ABC), lambda text: returned, length=4, vocab_size=26, pad_id=26)
    with pytest.raises(ArgumentError, match=r"encode: it returned .*, allowed: .*\['input_ids'\]"):
        env.reset()


# -- NamedActions: the question asks for a name, and the text carries the names ----------------------------


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


def test_what_it_wraps_has_texts_and_a_mask() -> None:
    with pytest.raises(ArgumentError, match="NamedActions: an environment without action_masks"):
        NamedActions(gym.make("CodeTrace-v0"))
    with pytest.raises(ArgumentError, match="NamedActions: an environment with observations in"):
        NamedActions(DictObservation(gym.make("GameSpiel-v0", game="kuhn_poker")))
    with pytest.raises(ArgumentError, match="NamedActions: an environment that does not name its actions"):
        NamedActions(Script(turn("a"))).reset()


# -- ZeroCentredReward: 2s - 1 if the episode terminates, else what was paid -------------------------------


@pytest.mark.parametrize(
    ("reward", "terminated", "info", "paid"),
    [
        (1.0, True, {"score": 1.0}, 1.0),
        (0.5, True, {"score": 0.5}, 0.0),
        (0.25, True, {"score": 0.25}, -0.5),
        # Score 0 is worth -1, and the illegal action that ended it costs 0.01 as before.
        (-0.01, True, {"score": 0.0}, pytest.approx(-1.01)),
        (0.0, False, {"score": 0.0, "result": "cut"}, 0.0),
        (0.0, False, {"score": None, "result": "fault"}, 0.0),
    ],
)
def test_the_end_pays_the_centred_score(
    reward: float, terminated: bool, info: dict[str, Any], paid: float
) -> None:
    env = ZeroCentredReward(Script(turn("a", seat=1), ("b", reward, terminated, not terminated, info)))
    assert env.reset()[1]["seat"] == 1
    text, *rest, told = env.step(0)
    assert (text, rest) == ("b", [paid, terminated, not terminated]) and told.items() >= info.items()


def test_other_steps_pay_what_they_paid() -> None:
    env = ZeroCentredReward(Script(turn("a"), turn("b"), turn("c", -0.01, error={}), turn("d", 4.0)))
    env.reset()
    assert [env.step(0)[1] for _ in range(3)] == [0.0, -0.01, 4.0]


# -- NumericInfo: only numbers, and the same keys, types and shapes at every turn of every environment -----

ENVIRONMENTS: list[Any] = [
    {"id": "GameSpiel-v0", "game": "kuhn_poker"},
    {"id": "GameSpiel-v0", "task_ids": [(0, 2_199_999_999)], "max_turns": 3},
    {"id": "GameSpielText-v0", "game": "hex", "params": {"board_size": 3}},
    {"id": "CodeTrace-v0", "level": 1},
    {"id": "CodeTraceLines-v0", "level": 1},
    pytest.param({"id": "CodeTraceChoice-v0", "level": 1}, marks=[pytest.mark.families, pytest.mark.sample]),
]


def shape_of(info: dict[str, Any]) -> dict[str, Any]:
    return {key: (type(value), getattr(value, "shape", None)) for key, value in info.items()}


@pytest.mark.parametrize("arguments", ENVIRONMENTS, ids=lambda arguments: arguments["id"])
def test_every_turn_has_the_same_keys_types_and_shapes(arguments: dict[str, Any]) -> None:
    env, shapes, ends = NumericInfo(gym.make(**arguments)), [], []
    for seed in range(3):
        _, info = env.reset(seed=seed)
        shapes.append(shape_of(info))
        over = not math.isnan(info["score"])
        while not over:
            legal = np.flatnonzero(info["action_mask"]) if "action_mask" in info else ()
            action = int(legal[0]) if isinstance(env.action_space, gym.spaces.Discrete) else "no answer"
            _, _, terminated, truncated, info = env.step(action)
            shapes.append(shape_of(info))
            over = terminated or truncated
        ends.append(info)
    assert all(shape == shapes[0] for shape in shapes) and len(shapes) >= 6
    assert all(np.asarray(value).dtype.kind in "bif" for value in ends[0].values())
    assert all(info["turn"] > 0 or info["illegal"] for info in ends)


def test_its_values() -> None:
    """An illegal action costs what it costs upstream, and ends nothing."""
    env = NumericInfo(gym.make("GameSpiel-v0", game="kuhn_poker", rules=False))
    _, info = env.reset(seed=5)
    assert (info["task_id"], info["seed"], info["turn"]) == (-1, 5, 0)
    assert math.isnan(info["score"]) and info["upstream_reward"] == 0.0
    assert not info["success"] and not info["illegal"] and info["action_mask"].tolist() == [1, 1]
    *_, info = env.step(7)
    assert info["illegal"] and info["upstream_reward"] == -0.01 and math.isnan(info["score"])
