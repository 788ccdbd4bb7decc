"""Named errors say what was given, what is allowed, and the nearest match."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

from task_gym import errors
from task_gym.arguments import is_number
from task_gym.errors import TaskGymError, explain_unknown, quote

NAMED = [error for _, error in inspect.getmembers(errors, inspect.isclass) if issubclass(error, TaskGymError)]


@pytest.mark.parametrize("error", NAMED)
def test_errors_are_value_errors_made_of_one_string(error: type[TaskGymError]) -> None:
    # A worker process hands an error to its parent as type and string.
    assert issubclass(error, ValueError)
    assert str(pickle.loads(pickle.dumps(error("why")))) == "why"


def test_messages_show_any_value() -> None:
    """Python writes no integer of more than 4,300 digits, and a reply may have a megabyte."""
    assert quote("x" * 600) == f"'{'x' * 199}… (602 characters)"  # both quotation marks count
    for value in (10**5000, "x" * 10**6):
        message = explain_unknown("rules", value, [True, False])
        assert message.startswith("rules: ") and "allowed: True, False" in message and len(message) < 600


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *[(1, True), (-0.5, True), (10**400, False), (float("nan"), False), (float("-inf"), False)],
        *[(np.float32(0.5), True), (np.int8(1), True), (np.float32("nan"), False)],
        *[(True, False), (np.True_, False)],
    ],
)
def test_numbers(value: Any, number: bool) -> None:
    assert is_number(value) is number  # the third is greater than any float
    assert not is_number(str(value))
