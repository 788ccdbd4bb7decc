"""The text space admits every character, cheaply."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.spaces import UnicodeText

SPACE = UnicodeText(1000)


@given(st.text(max_size=1000))
def test_any_text_is_contained_and_survives_flattening(text: str) -> None:
    assert text in SPACE
    flat = gym.spaces.flatten(SPACE, text)
    assert flat.shape == (1000,)
    assert gym.spaces.unflatten(SPACE, flat) == text


@pytest.mark.parametrize("wrong", ["x" * 1001, 5, None, b"bytes", np.array("a")])
def test_what_is_not_contained(wrong: object) -> None:
    assert wrong not in SPACE


def test_length_bounds_are_inclusive() -> None:
    space = UnicodeText(3, min_length=2)
    assert [text in space for text in ("a", "ab", "abc", "abcd")] == [False, True, True, False]
    assert UnicodeText(5) == UnicodeText(5) != UnicodeText(6) and gym.spaces.Text(5) != UnicodeText(5)


def test_samples_are_contained_and_follow_the_seed() -> None:
    first, second = UnicodeText(1000, seed=4), UnicodeText(1000, seed=4)
    samples = [first.sample() for _ in range(100)]
    assert all(sample in first for sample in samples)
    assert samples == [second.sample() for _ in range(100)]
    assert len(UnicodeText(500, min_length=300).sample()) == 300  # no longer than it must be beyond 64


def test_masks_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="neither mask"):
        SPACE.sample(mask=(3, None))


def test_character_set_is_every_character() -> None:
    assert "♠" in SPACE.character_set
    assert "ab" not in SPACE.character_set
    assert len(SPACE.character_set) == len(SPACE.character_list) == 0x110000
    assert SPACE.character_list[int(SPACE.character_index("♠"))] == "♠"
