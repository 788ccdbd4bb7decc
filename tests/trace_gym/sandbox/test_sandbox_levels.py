"""Tests of the level in force, and of levels that this machine lacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from task_gym.errors import ArgumentError, SandboxError, TaskGymError
from tests.trace_gym.boxes import need
from trace_gym.sandbox import LEVELS, Sandbox, interpreter, probe, run, trouble


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Makes the levels of the returned set unavailable on this machine."""
    names: set[str] = set()
    monkeypatch.setattr(probe, "trouble", lambda level: "taken away" if level in names else trouble(level))
    yield names


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_in_force_or_has_a_reason_not_to_be(level: str) -> None:
    reason = trouble(level)
    if reason is None:
        assert run("print(1)", level=level).level == level
    else:
        with pytest.raises(SandboxError, match=f"level {level!r} or stronger is not to be had here"):
            run("print(1)", level=level)


def test_this_machine_has_one() -> None:
    assert any(trouble(level) is None for level in LEVELS)


def test_left_out_it_is_the_strongest() -> None:
    strongest = next(level for level in LEVELS if trouble(level) is None)
    assert run("").level == strongest == Sandbox().level


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_the_next_level_takes_over(missing: set[str], gone: int) -> None:
    need(LEVELS[gone + 1])
    missing.update(LEVELS[: gone + 1])
    assert run("print(1)").level == LEVELS[gone + 1]


def test_less_than_required_is_refused(missing: set[str]) -> None:
    missing.update(LEVELS[:2])
    with pytest.raises(SandboxError) as caught:
        run("print(1)", require="landlock")
    assert str(caught.value) == (
        "sandbox: level 'landlock' or stronger is not to be had here "
        "(namespaces: taken away; landlock: taken away)"
    )
    assert isinstance(caught.value, TaskGymError)
    missing.update(LEVELS)
    with pytest.raises(
        SandboxError, match=r"level 'rlimits' or stronger .*; seccomp: taken away; rlimits: taken"
    ):
        Sandbox()


def test_more_than_required_is_taken(missing: set[str]) -> None:
    need("landlock")
    missing.add("namespaces")
    assert run("print(1)", require="rlimits").level == "landlock"
    with pytest.raises(SandboxError, match="level='seccomp' was given, allowed with require='landlock'"):
        run("print(1)", level="seccomp", require="landlock")


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(ArgumentError, match=r"sandbox: require: 'namespace' was given.*mean 'namespaces'"):
        run("", require="namespace")
    with pytest.raises(ArgumentError, match=r"sandbox: level: 'rlimit' was given.*mean 'rlimits'"):
        Sandbox(level="rlimit")
    with pytest.raises(ArgumentError, match="level: 'none' was given"):
        trouble("none")


def test_a_promise_that_does_not_hold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the trial of the strongest level, run at the weakest, names the missing protection."""
    need("rlimits")
    real = probe.Worker
    monkeypatch.setattr(probe, "Worker", lambda level, hash_seed: real("rlimits", hash_seed))
    reason = probe.trouble.__wrapped__("namespaces")
    assert reason is not None and reason.startswith("not kept in a trial: ")
    for promise in ("no processes", "no sockets", "no files but its own", "a process namespace"):
        assert promise in reason


def test_other_systems_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.sys, "platform", "darwin")
    monkeypatch.setattr(probe, "trouble", probe.trouble.__wrapped__)
    with pytest.raises(SandboxError, match="this system is 'darwin', allowed: 'linux'"):
        run("print(1)")


def test_an_interpreter_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter.sys, "_base_executable", "/nowhere/python", raising=False)
    with pytest.raises(SandboxError, match="'/nowhere/python' was found"):
        interpreter.executable()
