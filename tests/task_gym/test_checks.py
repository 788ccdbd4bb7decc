"""Checks of what callers give: each answers with the value, or with its named error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from task_gym.checks import check_backend, check_whole, is_number, read_action, read_reply
from task_gym.errors import ArgumentError, SeedError


@pytest.mark.parametrize("given", [0, 4, np.int64(4)])
def test_whole_numbers(given: Any) -> None:
    assert check_whole("seed", given, 5, SeedError) == given
    assert type(check_whole("seed", given, 5, SeedError)) is int


@pytest.mark.parametrize("given", [-1, 5, True, 1.0, "1", None])
def test_other_than_whole_numbers(given: Any) -> None:
    with pytest.raises(SeedError, match=f"seed: {given!r} was given, allowed: whole numbers 0 … 4"):
        check_whole("seed", given, 5, SeedError)


@pytest.mark.parametrize(
    ("given", "number"),
    [
        *[(1, True), (-0.5, True), (10**400, False), (float("nan"), False), (float("-inf"), False)],
        *[(np.float32(0.5), True), (np.int8(1), True), (np.float32("nan"), False)],
        *[(True, False), (np.True_, False)],
    ],
)
def test_numbers(given: Any, number: bool) -> None:
    assert is_number(given) is number  # the third is greater than any float
    assert not is_number(str(given))


def test_actions_and_replies() -> None:
    assert read_action(np.int64(3)) == 3
    with pytest.raises(ArgumentError, match="action: '3' was given, allowed: a whole number"):
        read_action("3")
    assert read_reply("3") == "3"
    with pytest.raises(ArgumentError, match="action: 3 was given, allowed: a reply as text"):
        read_reply(3)


def test_backends() -> None:
    check_backend("local")
    check_backend("affinetes")
    with pytest.raises(ArgumentError, match=r"'lokal' was given, .*; did you mean 'local'"):
        check_backend("lokal")
