"""Named errors say what was given, what is allowed, and the nearest match."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

from task_gym import errors
from task_gym.arguments import check_backend, check_whole, is_number, read_action, read_reply
from task_gym.errors import (
    ArgumentError,
    GameError,
    SeedError,
    TaskGymError,
    check_choice,
    nearest,
    shown,
    unknown,
)

NAMED = [error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, TaskGymError)]


@pytest.mark.parametrize("error", NAMED)
def test_errors_are_value_errors_made_of_one_string(error: type[TaskGymError]) -> None:
    # A worker process hands an error to its parent as type and string.
    assert issubclass(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error("why")))) == "why"


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ("leduc", "; did you mean 'leduc_poker'?"),
        ("LEDUC_POKER", "; did you mean 'leduc_poker'?"),
        ("zzz", ""),
        (["hex"], ""),
        (2048, "; did you mean '2048'?"),
        (204, ""),
    ],
)
def test_nearest(given: object, phrase: str) -> None:
    assert nearest(given, ["leduc_poker", "hex", "2048"]) == phrase


def test_unknown_names_all_three() -> None:
    message = unknown("seeding", "openev", ["openenv", "evaluate"])
    assert message == "seeding: 'openev' was given, allowed: 'openenv', 'evaluate'; did you mean 'openenv'?"


def test_messages_show_any_value() -> None:
    """Python writes no integer of more than 4,300 digits, and a reply may have a megabyte."""
    assert shown("x" * 600) == f"'{'x' * 199}… (602 characters)"  # both quotation marks count
    for given in (10**5000, "x" * 10**6):
        message = unknown("rules", given, [True, False])
        assert message.startswith("rules: ") and "allowed: True, False" in message and len(message) < 600


def test_choices_are_compared_by_type_too() -> None:
    check_choice("rules", True, (True, False))
    with pytest.raises(ArgumentError, match="rules: 1 was given, allowed: True, False"):
        check_choice("rules", 1, (True, False))
    with pytest.raises(GameError):
        check_choice("game", "b", ("a",), GameError)


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
