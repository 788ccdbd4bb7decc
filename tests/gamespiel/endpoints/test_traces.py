"""``ask_trace``: the conversation and the score of a trace, as upstream's ``evaluate`` returns them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamespiel.endpoints.chat import Chat
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.endpoints.traces import ask_trace
from tests.gamespiel.endpoints.models import ModelStub, delta, event, streamed
from trace_gym.envs.text import CodeTraceEnv

TASK = 7


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub(lambda body: "") as server:
        yield server


def asked(stub: ModelStub) -> dict[str, Any]:
    return ask_trace(Chat(Endpoint("m", stub.url)), CodeTraceEnv(), TASK, 0)


def truth() -> str:
    env = CodeTraceEnv(task_id=TASK)
    env.reset(seed=0)
    return str(env.step("")[-1]["truth"])


def test_an_empty_reply_is_none_and_is_not_compared(stub: ModelStub) -> None:
    stub.faults = [
        None,  # an empty reply
        streamed(delta(" \n\t "), "data: [DONE]\n\n"),
        streamed(event({"choices": []}), "data: [DONE]\n\n"),
        lambda handler: handler.send(200, '{"choices": []}'),
    ]
    for _ in range(4):
        result = asked(stub)
        assert result["extra"]["conversation"][1] == {"role": "assistant", "content": None}
        assert (result["score"], result["success"]) == (0.0, False)
        assert result["extra"]["test_result"] == "0/1"
        assert result["extra"]["by_scoring"] is None
        assert "error" not in result and "error_type" not in result
    assert len(stub.asked) == 4


def test_the_conversation_keeps_reasoning_and_fence(stub: ModelStub) -> None:
    """The score cuts them out; only the white space around the reply is not kept."""
    reply = f"<think>\n</think>\n```text\n{truth()}\n```"
    stub.answer = lambda body: f"\n {reply}\n\n"
    result = asked(stub)
    prompt, answer = result["extra"]["conversation"]
    assert prompt == stub.asked[0]["messages"][0] and len(stub.asked[0]["messages"]) == 1
    assert answer == {"role": "assistant", "content": reply}
    assert (result["score"], result["success"], result["extra"]["test_result"]) == (1.0, True, "1/1")


def test_the_question_is_in_upstreams_words(
    stub: ModelStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace_task.py").write_text('prompt = f"Run {transformed} on {inputs}!"\n')
    monkeypatch.setenv("TRACE_TASK_PATH", str(tmp_path))
    result = asked(stub)
    question = result["extra"]["conversation"][0]["content"]
    assert question.startswith("Run ") and question.endswith(" on !") and "__DBG_0__" in question
    assert stub.asked[0]["messages"] == [{"role": "user", "content": question}]
