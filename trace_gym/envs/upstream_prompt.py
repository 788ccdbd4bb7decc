"""The question in upstream's own words, from upstream's file ``trace_task.py`` (``TRACE_TASK_PATH``).

The file is read and never run: it would load a data set.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from task_gym.errors import ArgumentError
from task_gym.templates import Template, read_template

VARIABLE = "TRACE_TASK_PATH"
"""The environment variable that names the file, or the folder that has it."""

_FILE, _CODE, _STDIN = "trace_task.py", "transformed", "inputs"


def render_upstream(code: str, stdin: str) -> str | None:
    """Returns the observation of CodeTrace-v0 in upstream's words; None if the variable is not set.

    Raises:
        ArgumentError: the variable names no file that has the question.
    """
    place = os.environ.get(VARIABLE)
    return _load(place).fill({_CODE: code, _STDIN: stdin}) if place else None


@lru_cache(maxsize=8)
def _load(place: str) -> Template:
    file = Path(place)
    if file.is_dir():
        file /= _FILE
    try:
        return read_template(file, "prompt", (_CODE, _STDIN))
    except (OSError, SyntaxError, ValueError) as error:
        raise ArgumentError(
            f"{VARIABLE}: {place!r} was given, allowed: upstream's file {_FILE}, or its folder; {error}"
        ) from error
