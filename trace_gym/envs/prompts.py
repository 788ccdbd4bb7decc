"""Observations, as pure functions of a program, its standard input and the answers so far.

The question of CodeTrace-v0 can be in upstream's own words, from upstream's file ``trace_task.py``. That file
is read and never run: it would load a data set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from task_gym.contract import CLOSING
from task_gym.errors import ArgumentError
from task_gym.templates import Template, read_template

VARIABLE = "TRACE_TASK_PATH"
"""The environment variable that names upstream's file, or the folder that has it."""

_FILE, _CODE, _STDIN = "trace_task.py", "transformed", "inputs"


def render_task(code: str, stdin: str) -> str:
    """Returns the observation of CodeTrace-v0, in upstream's words if ``TRACE_TASK_PATH`` is set.

    Raises:
        ArgumentError: the variable names no file that has the question.
    """
    if place := os.environ.get(VARIABLE):
        return _load_upstream(place).fill({_CODE: code, _STDIN: stdin})
    return (
        "Predict exactly what this Python program prints to its standard output.\n\n"
        f"{_program(code, stdin)}\n\nAnswer with the output alone, without explanation."
    )


def render_choice(code: str, stdin: str, outputs: Sequence[str]) -> str:
    """Returns the observation of CodeTraceChoice-v0. Outputs are numbered from 0."""
    listed = "\n".join(f"{_headed(f'Output {number}', output)}" for number, output in enumerate(outputs))
    ids = "\n".join(f"  {number} -> Output {number}" for number in range(len(outputs)))
    return (
        "One of these outputs is what this Python program prints to its standard output.\n\n"
        f"{_program(code, stdin)}\n\n{listed}\n\nLegal Actions:\n{ids}\n\n{CLOSING}"
    )


def render_line(code: str, stdin: str, shown: Sequence[str]) -> str:
    """Returns the observation of CodeTraceLines-v0, with the true lines so far."""
    so_far = _headed("Output so far", "\n".join(shown)) if shown else "Output so far: nothing"
    return (
        "Predict line by line what this Python program prints to its standard output.\n\n"
        f"{_program(code, stdin)}\n\n{so_far}\n\nAnswer with line {len(shown) + 1} alone."
    )


def render_end(truth: str, score: float) -> str:
    """Returns the observation after the end."""
    return f"{_headed('True output', truth)}\n\nYour score: {score:.3f}"


def _program(code: str, stdin: str) -> str:
    read = _headed("Standard input", stdin) if stdin else "Standard input: nothing"
    return f"{_headed('Program', code, 'python')}\n\n{read}"


def _headed(title: str, text: str, language: str = "") -> str:
    """Returns a text in a fence that is longer than any run of backquotes in the text, so none can end it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{title}:\n{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


@lru_cache(maxsize=8)
def _load_upstream(place: str) -> Template:
    file = Path(place)
    if file.is_dir():
        file /= _FILE
    try:
        return read_template(file, "prompt", (_CODE, _STDIN))
    except (OSError, SyntaxError, ValueError) as error:
        raise ArgumentError(
            f"{VARIABLE}: {place!r} was given, allowed: upstream's file {_FILE}, or its folder; {error}"
        ) from error
