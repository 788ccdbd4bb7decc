"""Observations, as pure functions of a program, its standard input and the answers so far."""

from __future__ import annotations

from collections.abc import Sequence

from task_gym.contract import CLOSING
from trace_gym.envs.upstream_prompt import render_upstream


def render_task(code: str, stdin: str) -> str:
    """Returns the observation of CodeTrace-v0, in upstream's words if ``TRACE_TASK_PATH`` is set."""
    if (text := render_upstream(code, stdin)) is not None:
        return text
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
