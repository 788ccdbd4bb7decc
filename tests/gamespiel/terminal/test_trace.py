"""``gamespiel trace``: a program, an answer and its scores."""

from __future__ import annotations

import io
import re

import gymnasium as gym
import pytest
from rich.console import Console

import trace_gym  # noqa: F401  (registers CodeTrace-v0)
from gamespiel.cli import main
from gamespiel.terminal.trace import trace
from tests.gamespiel.terminal.conftest import printed, typed

TASK = 94490495542  # classes, level 2


def truth() -> list[str]:
    env = gym.make("CodeTrace-v0", task_id=TASK)
    env.reset(seed=0)
    lines: list[str] = env.step("")[-1]["truth"].splitlines()
    return lines


def program(task_id: int = TASK) -> str:
    env = gym.make("CodeTrace-v0", task_id=task_id)
    env.reset(seed=0)
    code: str = env.unwrapped.trace.code.rstrip("\n")  # type: ignore[attr-defined]
    return code


def scores(shown: str) -> dict[str, float]:
    return {name: float(score) for name, score in re.findall(r"^(\w+) +(\d\.\d{3})$", shown, re.M)}


def test_the_truth_scores_1(console: Console) -> None:
    info = trace(task_id=TASK, console=console, read=typed([*truth(), ".", "not read"]))
    shown = printed(console, program())
    assert shown.startswith(f"task {TASK}: classes, level 2\n") and "class Farmer" in shown
    assert scores(shown) == {"affine": 1, "exact": 1, "lines": 1} and info["success"]
    assert "\nx" not in shown.split("true output")[1]


@pytest.mark.parametrize(("width", "terminal"), [(60, True), (80, False)])
def test_the_program_is_printed_as_it_is(width: int, terminal: bool) -> None:
    """No line is broken by a newline of ours, so a program that is copied or piped is the program."""
    console = Console(width=width, file=io.StringIO(), force_terminal=terminal, no_color=True)
    wide = 0
    for task_id in (TASK, 5, 1234567, 99_000_000_123):
        console.file.seek(0), console.file.truncate()
        trace(task_id=task_id, console=console, read=typed(["."]))
        code = program(task_id)
        wide += max(map(len, code.splitlines())) > width
        printed_text = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
        assert printed_text.partition("\n")[2].startswith(f"{code}\n")
    assert wide  # or the test would show nothing


def test_wrong_lines_are_marked(console: Console) -> None:
    first, *rest = truth()
    trace(task_id=TASK, console=console, read=typed([first, "wrong", *rest[1:-1]]))
    shown = printed(console, program())
    # One line differs and the last is missing.
    assert len(re.findall(r"^x ", shown.split("true output")[1], re.M)) == 2
    # 4 lines, 3 of them debug lines: 1/4 right from the first on, and 2/3 of the debug lines.
    assert scores(shown) == {"affine": 0, "exact": 0, "lines": pytest.approx((1 / 4 + 2 / 3) / 2, abs=5e-4)}


def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--task_id", "-1"]) == 2
    assert "task id" in capsys.readouterr().err
    assert main(["trace", "--family", "clases"]) == 2
    assert "did you mean 'classes'?" in capsys.readouterr().err
