"""Tests of environments on rows that strangers wrote: sizes, time, and what a person sees."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from task_gym.errors import AdmissionError, EpisodeError
from tests.trace_gym.play import IDS, Make
from tests.trace_gym.rows import write_rows
from trace_gym.backends import local


@pytest.fixture
def make(tmp_path: Path, warm: None, make_env: Make) -> Make:
    """Returns a function that makes an environment of these programs, with no input."""
    numbers = count()

    def environment(*programs: str, **arguments: Any) -> Any:
        source = write_rows(tmp_path / f"rows{next(numbers)}.jsonl", *programs)
        return make_env(source=source, task_ids=[(0, 99)], **arguments)

    return environment


@pytest.mark.parametrize("injector", ["safe", "affine"])
@pytest.mark.parametrize("name", IDS)
def test_a_huge_row_is_refused_before_it_is_read(name: str, injector: str, make: Make) -> None:
    """3 MB would not fit the observation space, and 20,000 lines took minutes."""
    env = make("x = 1\n" * 20_000, "#" * 3_000_000, name=name, injector=injector)
    begun = time.process_time()
    with pytest.raises(AdmissionError, match="it has 120,000 characters; allowed: 32,768 bytes"):
        env.reset(seed=0, options={"task_id": 0})
    assert time.process_time() - begun < 5  # a second's fraction, where it was two minutes


@pytest.mark.launch
@pytest.mark.sample
def test_the_largest_row_is_an_observation_of_the_space(make: Make) -> None:
    """A name of 9,000 characters is shown 8 times in a print: 6 of those would be 432,000 characters."""
    name = "a" * 9_000
    env = make(f"{name} = 1\n{name} = 2\nprint({name})\n", "print(1)\n")
    for task_id in (0, 2):
        text, _ = env.reset(seed=0, options={"task_id": task_id})
        assert text in env.observation_space and len(text) < 300_000
        text, *_ = env.step("2")
        assert text in env.observation_space


def test_an_observation_outside_the_space_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make("print(1)\n")
    monkeypatch.setattr(env, "_ask", lambda trace: "x" * (2**20 + 1))
    with pytest.raises(AdmissionError, match="observation has 1,048,577 characters; allowed: 1,048,576"):
        env.reset(seed=0)
    assert env.trace is None
    with pytest.raises(EpisodeError):
        env.step("1")


@pytest.mark.launch
@pytest.mark.sample
def test_a_reset_that_takes_too_long_is_an_error_and_no_other_program(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock is 25 s later: at the beginning, and after each program that is refused."""
    env = make("input()\n", "print()\n", "1 / 0\n", "print(4)\n")
    clock = iter(range(0, 10_000, 25))
    with monkeypatch.context() as patch:
        patch.setattr(local, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
        message = (
            r"row 0.* unsound: .*EOFError.*; 3 programs were checked for more than 60 s, and none was sound"
        )
        with pytest.raises(AdmissionError, match=message):
            env.reset(seed=0, options={"task_id": 0})
        assert env.reset(seed=0, options={"task_id": 1})[1]["row"] == 3  # after 50 s
    assert env.reset(seed=0, options={"task_id": 0})[1]["row"] == 3


def test_a_number_that_cannot_be_written_anew_says_so(make: Make) -> None:
    """Python reads 5,000 hexadecimal digits and writes at most 4,300 decimal ones."""
    code = f"x = 0x{'f' * 5000}\nprint(x % 7)\n"
    with pytest.raises(AdmissionError, match="cannot be written anew: Exceeds the limit"):
        make(code, injector="affine").reset(seed=0, options={"task_id": 0})


def test_a_person_sees_control_characters_and_a_model_gets_them(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "print('\x1b]0;owned\x07', '\\x1b[2J', 1)\n"
    env = make(code, render_mode="human")
    text, _ = env.reset(seed=0)
    assert code in text
    ended, *_, info = env.step("")
    assert info["truth"] == "\x1b]0;owned\x07 \x1b[2J 1\n" and info["truth"] in ended
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "\x07" not in printed
    assert r"\x1b]0;owned\x07 \x1b[2J 1" in printed
