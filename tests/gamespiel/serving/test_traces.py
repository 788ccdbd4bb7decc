"""Traces on a server: a data set with user namespaces and without, debug prints, and upstream's question."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from task_gym.caller import CALLER, Caller, CallerLeftError
from task_gym.errors import ArgumentError
from task_gym.processes import OFFERED
from tests.trace_gym.rows import PATH
from trace_gym.backends import make_backend
from trace_gym.envs.text import CodeTraceEnv
from trace_gym.sandbox import trouble

pytest.importorskip("uvicorn")

from gamespiel.cli import main
from gamespiel.serving import traces
from gamespiel.serving.lanes import Lane
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.trace_processes import TraceProcesses
from gamespiel.serving.traces import TraceActor

ROWS = ServeOptions(env="trace", source=str(PATH))


def test_rows_of_a_data_set_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "trouble", lambda level: f"{level} are forbidden")
    rows = TraceActor(ROWS)
    for ask in (rows.reset, rows.evaluate):  # not as a failure, after which a client would try again
        with pytest.raises(ArgumentError, match=r"allowed here: 'builtin'; namespaces are forbidden$"):
            ask(task_id=1, seed=0)
    asked = TraceActor(ServeOptions(env="trace")).reset(task_id=1, seed=0)
    assert asked["info"]["sandbox"] == "in-process" and not asked["done"]


@pytest.mark.skipif(trouble("namespaces") is not None, reason="no user namespaces")
def test_rows_of_a_data_set_run_in_the_sandbox() -> None:
    actor = TraceActor(ROWS)
    asked = actor.reset(task_id=1, seed=0)
    assert asked["info"]["sandbox"] == "namespaces"
    answered = actor.step("?", asked["episode_id"])
    assert (answered["done"], answered["reward"]) == (True, 0.0)


@pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")
def test_a_process_that_ends_while_it_is_idle_costs_no_trace() -> None:
    processes = TraceProcesses("builtin", "safe", "builtin")
    try:
        own = make_backend("builtin", "safe", False)
        assert processes.load(1) == own.load(1)
        (idle,) = processes._spare
        os.kill(idle.pid, signal.SIGKILL)  # as a machine without memory does
        assert processes.load(2) == own.load(2)
        (idle,), caller = processes._spare, Caller()
        caller.leave()
        token = CALLER.set(caller)
        with pytest.raises(CallerLeftError):
            processes.load(3)
        CALLER.reset(token)
        assert not processes._spare and idle.pid in [pid for _, pid in processes._nursery.dead]
    finally:
        processes.end()


def observe(task_id: int, **arguments: Any) -> str:
    return CodeTraceEnv(task_id=task_id, **arguments).reset(seed=0)[0]


@pytest.mark.parametrize("injector", ["safe", "affine"])
def test_the_injector_is_the_one_of_local_play(injector: str) -> None:
    actor = TraceActor(ServeOptions(env="trace", injector=injector))
    assert observe(3, injector="safe") != observe(3, injector="affine")
    asked = actor.reset(task_id=3, seed=0)
    assert asked["observation"] == observe(3, injector=injector)
    assert asked["info"]["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(ArgumentError, match=r"injector: 'afine' was given, .*did you mean 'affine'"):
        TraceActor(ServeOptions(env="trace", injector="afine"))


def test_the_command_names_the_injector(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[ServeOptions] = []
    monkeypatch.setattr("gamespiel.serving.run.serve", seen.append)
    assert main(["serve", "--env", "trace"]) == main(["serve", "--env", "trace", "--injector", "affine"]) == 0
    assert [options.injector for options in seen] == ["safe", "affine"]
    assert main(["serve", "--env", "openspiel", "--injector", "affine"]) == 2
    assert "injector: 'affine' was given, allowed: with --env trace only" in capsys.readouterr().err


def test_the_container_names_source_and_injector(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(__file__).parents[3] / "docker" / "trace" / "env.py"
    spec = spec_from_file_location("container_env", file)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv("GAMESPIEL_SOURCE", raising=False)
    for name, value in ((None, "safe"), ("affine", "affine")):
        monkeypatch.delenv("GAMESPIEL_INJECTOR", raising=False)
        if name is not None:
            monkeypatch.setenv("GAMESPIEL_INJECTOR", name)
        assert module.Actor().reset(3, 0)["observation"] == observe(3, injector=value)


def test_the_question_is_in_upstreams_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = TraceActor(ServeOptions(env="trace"))
    ours = actor.reset(3, 0)["observation"]
    (tmp_path / "trace_task.py").write_text('prompt = f"Run {transformed} on {inputs}!"\n')
    monkeypatch.setenv("TRACE_TASK_PATH", str(tmp_path))
    asked = actor.reset(3, 0)
    assert asked["observation"] == observe(3) != ours
    assert asked["observation"].startswith("Run ") and actor.state(asked["episode_id"]) == asked
    monkeypatch.delenv("TRACE_TASK_PATH")
    assert actor.reset(3, 0)["observation"] == ours


def test_a_call_for_which_there_is_no_thread_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask_twice() -> int:
        lane = Lane(1, 1, "test")
        with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="can't start new thread"):
            patch.setattr(threading.Thread, "start", refuse)
            await lane.run("caller", lambda: 1)
        return int(await asyncio.wait_for(lane.run("caller", lambda: 2), 30))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    assert asyncio.run(ask_twice()) == 2
