"""Traces of a data set on a server, with user namespaces and without, as in a container."""

from __future__ import annotations

import pytest

from task_gym.errors import ArgumentError
from tests.trace_gym.rows import PATH
from trace_gym.sandbox import trouble

pytest.importorskip("uvicorn")

from gamespiel.serving import traces
from gamespiel.serving.options import ServeOptions
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
