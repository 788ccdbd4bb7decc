"""The metrics that are equal in two runs of the same configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_OF_THE_MACHINE = re.compile(r"(time|machine)/.*|seconds")


def timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a step's metrics without those that the clock and the machine decide."""
    return {key: value for key, value in row.items() if not _OF_THE_MACHINE.fullmatch(key)}
