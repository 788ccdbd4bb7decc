"""TokenObservation: padded ids in, text in the info."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.errors import ArgumentError, TokenError
from task_gym.spaces import UnicodeText
from task_gym.wrappers import TokenObservation


class Letters(gym.Env[str, int]):
    """Shows a text of growing length."""

    observation_space = UnicodeText(100)
    action_space = gym.spaces.Discrete(2)  # type: ignore[assignment]

    def __init__(self, start: str = "ab") -> None:
        self.text = self.start = start

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.text = self.start
        return self.text, {"action_mask": np.array([1, 0], np.int8)}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.text += "c"
        return self.text, 0.0, False, False, {}

    def action_masks(self) -> np.ndarray:
        return np.array([True, False])


def encode(text: str) -> list[int]:
    return [ord(letter) - ord("a") for letter in text]


def test_ids_are_padded_on_the_right() -> None:
    env = TokenObservation(Letters(), encode, length=4, vocab_size=26, pad_id=26)
    ids, info = env.reset(seed=0)
    assert ids.tolist() == [0, 1, 26, 26]
    assert ids.dtype == np.int32
    assert info["text"] == "ab"
    assert info["action_mask"].tolist() == [1, 0]
    ids, *_, info = env.step(0)
    assert ids.tolist() == [0, 1, 2, 26]
    assert info["text"] == "abc"
    assert env.observation_space == gym.spaces.Box(0, 26, (4,), np.int32)
    assert env.action_masks().tolist() == [True, False]


def test_a_text_may_fill_the_length_and_not_exceed_it() -> None:
    env = TokenObservation(Letters(), encode, length=3, vocab_size=26, pad_id=-1)
    env.reset()
    assert env.step(0)[0].tolist() == [0, 1, 2]
    with pytest.raises(TokenError, match="4 tokens was given, allowed: length=3"):
        env.step(0)


@pytest.mark.parametrize(("start", "given"), [("A", -32), ("z", 25), ("b", 1)])
def test_ids_out_of_range_or_equal_to_padding_are_refused(start: str, given: int) -> None:
    env = TokenObservation(Letters(start), encode, length=3, vocab_size=25, pad_id=1)
    with pytest.raises(TokenError, match=f"token id {given} was given, allowed: 0 … 24 .* 1"):
        env.reset()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0}, "length: 0 was given, allowed: 1 or more"),
        ({"vocab_size": 0, "pad_id": 0}, "vocab_size: 0 was given"),
        ({"pad_id": -2}, "pad_id: -2 was given, allowed: -1 … 26"),
        ({"pad_id": 27}, "pad_id: 27 was given"),
        ({"pad_id": None}, "pad_id: None was given"),
        ({"length": "4"}, "length: '4' was given"),
        ({"encode": "gpt2"}, "encode: 'gpt2' was given, allowed: a function from a text"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        TokenObservation(
            Letters(), **{"encode": encode, "length": 4, "vocab_size": 26, "pad_id": 26, **change}
        )


@pytest.mark.parametrize("returned", [{"input_ids": [1]}, None, [1.5], ["1"], [[1], [2]], [[1], [2, 3]]])
def test_what_is_no_list_of_ids_is_named(returned: Any) -> None:
    """A tokenizer itself returns a mapping; numbers with fractions would be cut."""
    env = TokenObservation(Letters(), lambda text: returned, length=4, vocab_size=26, pad_id=26)
    with pytest.raises(ArgumentError, match=r"encode: it returned .*, allowed: .*\['input_ids'\]"):
        env.reset()


def test_what_is_no_text_is_refused() -> None:
    inner = TokenObservation(Letters(), encode, length=4, vocab_size=26, pad_id=26)
    with pytest.raises(ArgumentError, match=r"TokenObservation: .*Box.* was given"):
        TokenObservation(inner, encode, length=4, vocab_size=26, pad_id=26)
