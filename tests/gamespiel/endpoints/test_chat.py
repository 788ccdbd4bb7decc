"""The client of chat completions: repeats, refusals, limits, counts and keys."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gamespiel.endpoints import chat as module
from gamespiel.endpoints.chat import Chat, Endpoint, EndpointError, Sampling, key_for, parse_endpoint
from task_gym.errors import ArgumentError
from tests.gamespiel.endpoints.models import Handler, ModelStub, completion, hang_up, status

SAID = [{"role": "user", "content": "Say it."}]


@pytest.fixture
def stub() -> Iterator[ModelStub]:
    with ModelStub(lambda body: " 7 ") as server:
        yield server


def soon() -> float:
    return time.monotonic() + 60


def test_a_reply_and_its_tokens(stub: ModelStub) -> None:
    chat = Chat(Endpoint("m", stub.url, "k3y"), Sampling(0.7, 5))
    text, usage = chat.reply(SAID, 11, soon())
    assert (text, usage.to_dict()) == (
        "7", {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    )  # fmt: skip
    assert stub.asked == [{"model": "m", "messages": SAID, "seed": 11, "temperature": 0.7, "max_tokens": 5}]
    assert stub.keys == ["Bearer k3y"]
    assert "k3y" not in repr(chat.endpoint)


def test_passing_failures_are_tried_again_after_longer_and_longer_pauses(stub: ModelStub) -> None:
    def no_json(handler: Handler) -> None:
        handler.send(200, '{"choices": [')

    def nothing(handler: Handler) -> None:
        handler.send(200, '{"choices": []}')

    stub.faults = [status(500), hang_up, no_json, status(429, retry_after="7"), nothing]
    pauses: list[float] = []
    chat = Chat(Endpoint("m", stub.url), sleep=pauses.append)
    assert chat.reply(SAID, 0, soon())[0] == "7"
    # Doubling from 0.5; the fourth is the server's wish of 7 s, which is longer than 4.
    assert pauses == [0.5, 1.0, 2.0, 7.0, 8.0]
    assert chat.usage.requests == 1


def test_one_failure_too_many_names_the_endpoint(stub: ModelStub) -> None:
    stub.faults = [status(503)] * 6
    chat = Chat(Endpoint("m", stub.url), sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match=rf"endpoint {stub.url}: it answered with status 503; 6 tries"):
        chat.reply(SAID, 0, soon())
    assert len(stub.asked) == 6


def test_a_refusal_is_not_repeated(stub: ModelStub) -> None:
    stub.faults = [status(400)]
    with pytest.raises(EndpointError, match=r"refuses the request with status 400: so it is"):
        Chat(Endpoint("m", stub.url)).reply(SAID, 0, soon())
    assert len(stub.asked) == 1


def test_an_endpoint_that_is_away() -> None:
    chat = Chat(Endpoint("m", "http://127.0.0.1:9/v1"), sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match=r"it cannot be reached"):
        chat.reply(SAID, 0, soon())


def test_time_limits(stub: ModelStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRIES", 2)
    stub.pause = 0.4
    chat = Chat(Endpoint("m", stub.url), Sampling(timeout=0.1), sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match=r"did not answer in 0 s; 2 tries failed"):
        chat.reply(SAID, 0, soon())
    with pytest.raises(TimeoutError):
        chat.reply(SAID, 0, time.monotonic() - 1)


def test_content_may_be_missing(stub: ModelStub) -> None:
    stub.faults = [lambda handler: handler.send(200, completion(None, 3))]
    assert Chat(Endpoint("m", stub.url)).reply(SAID, 0, soon())[0] == ""


def test_names() -> None:
    endpoint = parse_endpoint("openai:Qwen/Qwen3-4B@http://localhost:8000/v1/")
    assert (endpoint.model, endpoint.base_url) == ("Qwen/Qwen3-4B", "http://localhost:8000/v1")
    # A model's name may have an @, as "model@revision" has.
    assert parse_endpoint("openai:m@main@https://h/v1").model == "m@main"
    for wrong in (
        "openai:m",
        "openai:@http://h/v1",
        "openai:m@ftp://h",
        "openai:m@http://",
        "openai:m@http://h:x",
    ):
        with pytest.raises(ArgumentError, match=r"endpoint: .* was given, allowed: "):
            parse_endpoint(wrong)


def test_a_key_goes_to_its_own_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUTES_API_KEY", "c")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert key_for("https://llm.chutes.ai/v1") == "c"
    assert key_for("https://notchutes.ai/v1") == "o"
    monkeypatch.delenv("CHUTES_API_KEY")
    assert key_for("https://llm.chutes.ai/v1") == ""
