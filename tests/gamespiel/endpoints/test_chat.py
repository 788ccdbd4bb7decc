"""The client of chat completions: repeats, refusals, limits, counts and keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain

import pytest

from gamespiel.endpoints import completion as completion_module
from gamespiel.endpoints.chat import Chat, ClosedError, EndpointError, Sampling
from gamespiel.endpoints.endpoint import Endpoint, key_for, parse_endpoint
from gamespiel.endpoints.patience import UPSTREAM, Patience
from task_gym.errors import ArgumentError
from task_gym.remote.protocol import Retries
from tests.gamespiel.endpoints.models import (
    Fault,
    Handler,
    ModelStub,
    completion,
    delta,
    event,
    hang_up,
    status,
    streamed,
)

SAID = [{"role": "user", "content": "Say it."}]
SSE, ERROR = "text/event-stream", None


@pytest.fixture(scope="module")
def server() -> Iterator[ModelStub]:
    with ModelStub(lambda body: " 7 ") as server:
        yield server


@pytest.fixture
def stub(server: ModelStub) -> ModelStub:
    server.faults, server.pause = [], 0.0
    server.asked.clear()
    server.keys.clear()
    return server


def cut_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", SSE)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(delta("6").encode())
    hang_up(handler)


def soon() -> float:
    return time.monotonic() + 60


@cache  # a client takes long to make
def open_chat(url: str, patience: Patience | None) -> tuple[Chat, list[float]]:
    """Returns a client, and the pauses before its tries, in which nobody sleeps."""
    pauses: list[float] = []
    return Chat(Endpoint("m", url), patience=patience, sleep=pauses.append), pauses


def ask(stub: ModelStub, patience: Patience | None = None) -> tuple[str, list[float]]:
    """Returns a reply, and the pauses before its tries."""
    chat, pauses = open_chat(stub.url, patience)
    pauses.clear()
    return chat.request_reply(SAID, 0, soon())[0], pauses.copy()


def test_a_reply_and_its_tokens(stub: ModelStub) -> None:
    chat = Chat(Endpoint("m", stub.url, "k3y"), Sampling(0.7, 5))
    text, usage = chat.request_reply(SAID, 11, soon())
    assert (text, usage.to_dict()) == (
        "7", {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    )  # fmt: skip
    assert stub.asked == [
        {
            "model": "m", "messages": SAID, "seed": 11, "temperature": 0.7, "max_tokens": 5,
            "stream": True, "stream_options": {"include_usage": True},
        }
    ]  # fmt: skip
    assert stub.keys == ["Bearer k3y"]
    assert "k3y" not in repr(chat.endpoint)


def test_passing_failures_are_tried_again_after_longer_and_longer_pauses(stub: ModelStub) -> None:
    stub.faults = [status(500), cut_off, status(200, '{"choices": ['), status(429, retry_after="7"), hang_up]
    before = open_chat(stub.url, None)[0].usage.requests
    # Doubling from 0.5; the fourth is the server's wish of 7 s, which is longer than 4.
    assert ask(stub) == ("7", [0.5, 1.0, 2.0, 7.0, 8.0])
    assert open_chat(stub.url, None)[0].usage.requests == before + 1
    stub.faults = [status(429, retry_after="nan"), status(429, retry_after="inf")]
    assert ask(stub) == ("7", [0.5, 30.0])


def test_failures_that_do_not_pass_name_the_endpoint(stub: ModelStub) -> None:
    stub.faults = [status(503)] * 6
    with pytest.raises(EndpointError, match=rf"endpoint {stub.url}: .* status 503; 6 tries"):
        ask(stub)
    assert len(stub.asked) == 6
    stub.faults = [status(400)]
    with pytest.raises(EndpointError, match=r"refuses the request with status 400: so it is"):
        ask(stub)
    assert len(stub.asked) == 7  # a refusal is not repeated
    away = Chat(Endpoint("m", "http://127.0.0.1:9/v1"), sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match=r"it cannot be reached"):
        away.request_reply(SAID, 0, soon())


@pytest.mark.launch
@pytest.mark.sample
def test_time_limits(stub: ModelStub) -> None:
    stub.pause = 0.2
    patience = Patience(0.1, 0.1, Retries(tries=2, first=0.5))
    chat = Chat(Endpoint("m", stub.url), patience=patience, sleep=lambda seconds: None)
    with pytest.raises(EndpointError, match=r"did not answer in 0 s; 2 tries failed"):
        chat.request_reply(SAID, 0, soon())
    with pytest.raises(TimeoutError):
        chat.request_reply(SAID, 0, time.monotonic() - 1)
    stub.pause = 0.0
    # The two requests before may be answered only now, and each takes one.
    stub.faults = [streamed(*chain(*((delta("6"), 0.05) for _ in range(400))))] * 3
    with pytest.raises(TimeoutError):
        Chat(Endpoint("m", stub.url)).request_reply(SAID, 0, time.monotonic() + 0.3)


USAGE = '{"choices": [{"message": {"content": "7"}}], "usage": %s}'


@pytest.mark.parametrize(
    "reply",
    [
        "null",
        "[" * 200_000,
        '{"choices": [{"message": null}]}',
        '{"choices": [{"message": {"content": ["7"]}}]}',
        USAGE % "[1]",
        USAGE % '{"prompt_tokens": Infinity}',
        USAGE % '{"prompt_tokens": -1}',
        USAGE % '{"completion_tokens": 1e300}',
        ["data: 7\n\n"],
        [event({"choices": [7]})],
        [event({"choices": [{"delta": {"content": 7}}]})],
        [event({"choices": [], "usage": {"prompt_tokens": -1}})],
        [event({"choices": {"a": 1}})],
    ],
)
def test_malformed_replies_are_tried_again(stub: ModelStub, reply: str | list[str]) -> None:
    stub.faults = [status(200, reply) if isinstance(reply, str) else streamed(delta("6"), *reply)]
    assert ask(stub) == ("7", [0.5])


@pytest.mark.launch
@pytest.mark.sample
def test_a_slow_reply_is_waited_for_as_long_as_pieces_come_and_no_longer() -> None:
    """Twelve pieces with pauses of 0.1 s take longer than any one pause may.

    Comments keep a connection alive, and are no pieces. A response without events must be whole in time.
    """
    text = "0123456789ab"
    comments = chain(*((": still there\n\n", 0.1) for _ in range(600)))

    def send_spaces(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "600")
        handler.end_headers()
        for _ in range(600):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)

    def ask_once(fault: Fault) -> tuple[str, list[float]]:
        with ModelStub(lambda body: " 7 ") as stub:
            stub.streams = False
            stub.faults = [fault]
            return ask(stub, Patience(20.0, 0.9, Retries(tries=2, first=0.5)))

    faults = streamed(*chain(*((delta(digit), 0.1) for digit in text))), streamed(delta("6"), *comments)
    began = time.monotonic()
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(ask_once, [*faults, send_spaces]))
    assert answers == [(text, []), ("7", [0.5]), ("7", [0.5])]
    assert time.monotonic() - began < 50  # the comments, and the spaces, take 60 s


def test_a_reply_of_too_many_pieces_is_taken_as_it_is(
    stub: ModelStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion_module, "PIECES", 4)
    stub.faults = [streamed(*map(delta, "123456789"), 20.0)]
    assert ask(stub) == ("1234", [])


def test_responses_that_are_too_long_or_compressed_are_given_up(
    stub: ModelStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("task_gym.remote.client.MOST", 1000)
    for fault, message in (
        (status(200, completion("7" * 1000, 1)), "more than 1000 bytes"),
        (streamed(*[delta("7")] * 100), "more than 1000 bytes"),
        (status(200, "{}", content_encoding="gzip"), "compressed response: gzip"),
    ):
        stub.faults = [fault]
        with pytest.raises(EndpointError, match=message):
            ask(stub, Patience(20.0, 20.0, Retries(tries=1, first=0.5)))


def test_upstreams_patience_repeats_no_refusal_but_a_stream_that_broke(stub: ModelStub) -> None:
    stub.faults = [cut_off]
    assert ask(stub, UPSTREAM["game"]) == ("7", [1.0])
    for kind, tries in (("game", 11), ("trace", 1)):
        stub.asked.clear()
        stub.faults = [status(429)]
        with pytest.raises(EndpointError, match=r"refuses the request with status 429"):
            ask(stub, UPSTREAM[kind])
        assert len(stub.asked) == 1
        stub.faults = [status(500, retry_after="9")] * 11  # which upstream does not read
        with pytest.raises(EndpointError, match=r"status 500; (11 tries|1 try) failed"):
            ask(stub, UPSTREAM[kind])
        assert len(stub.asked) == 1 + tries
        # min(2 ** attempt, 32) seconds, with attempts from 0.
        pauses = open_chat(stub.url, UPSTREAM[kind])[1]
        assert pauses == [1, 2, 4, 8, 16, 32, 32, 32, 32, 32][: tries - 1]
        stub.faults = []


def test_closing_ends_a_request_and_a_pause(stub: ModelStub) -> None:
    asked = threading.Event()

    def away(handler: Handler) -> None:
        asked.set()
        handler.send(429, "{}", retry_after="30")

    def silent(handler: Handler) -> None:
        asked.set()
        time.sleep(30)

    for fault in (away, silent):
        stub.faults, chat = [fault], Chat(Endpoint("m", stub.url))
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(chat.request_reply, SAID, 0, soon())
            assert asked.wait(20)
            chat.close()
            with pytest.raises(ClosedError, match=r"the client was closed"):
                waiting.result(20)
            with pytest.raises(ClosedError, match=r"the client was closed"):
                chat.request_reply(SAID, 0, soon())
        asked.clear()
    assert len(stub.asked) == 2


DONE = "data: [DONE]\n\n"
SIX, FIVE = delta("6"), delta("5")

READ = {
    "text/plain": (SIX + DONE, "text/plain", "6"),
    "upper case": (SIX + DONE, "TEXT/EVENT-STREAM", "6"),
    "events called JSON": (SIX + DONE, "application/json", "6"),
    "CRLF": ((SIX + FIVE + DONE).replace("\n", "\r\n"), SSE, "65"),
    "CR": ((SIX + FIVE + DONE).replace("\n", "\r"), SSE, "65"),
    "no [DONE]": (SIX, SSE, "6"),
    "more after [DONE]": (SIX + DONE + FIVE, SSE, "6"),
    "an event in two lines": (SIX.replace('"delta"', '\ndata: "delta"') + DONE, SSE, "6"),
    "no empty line after the last event": (SIX + FIVE.rstrip() + "\n", SSE, "6"),
    "no empty line between events": (SIX.rstrip() + "\n" + FIVE + DONE, SSE, ERROR),
    "events with an id": ("id: 1\n" + SIX + "id: 2\n" + FIVE + DONE, SSE, "65"),
    "an event that is an id": ("id: 1\n\n" + SIX + DONE, SSE, ERROR),
    "a comment after an id": ("id: 1\n" + SIX + ": ping\n\n" + DONE, SSE, ERROR),
    "an event that is a name": ("event: ping\n\n" + SIX + DONE, SSE, ERROR),
    "an event that is a time": ("retry: 3000\n\n" + SIX + DONE, SSE, ERROR),
    "an event without data": ("data:\n\n" + SIX + DONE, SSE, ERROR),
    "an error that is empty": (event({"error": {}}) + SIX + DONE, SSE, "6"),
    "an error": (SIX + event({"error": "out of memory"}) + DONE, SSE, ERROR),
    "no JSON": ("data: {\n\n" + SIX + DONE, SSE, ERROR),
    "no UTF-8": (SIX.replace("6", "\udcff") + DONE, SSE, ERROR),
    "no content": (completion(None, 3), "application/json", ""),
    "no content in pieces": (delta(None) + DONE, SSE, ""),
    "a lone surrogate": (SIX.replace("6", r"\ud800 6") + DONE, SSE, ERROR),
}
"""Responses without faults of HTTP: the body, its type of content, and the reply that upstream reads from it
with openai 3.57.0. The surrogate is an error there in the next request, which cannot be encoded."""

NO_CHOICE = {
    "a whole completion": (completion("6", 1), "application/json", "6"),
    "a whole completion, called events": (completion("6", 1), SSE, "6"),
    "no whole choice": ('{"choices": []}', "application/json", ERROR),
    "no choice in pieces": (event({"choices": []}) + DONE, SSE, ERROR),
    "[DONE]": (DONE, SSE, ERROR),
    "nothing": ("", SSE, ERROR),
    "a page": ("<html>busy</html>", "text/html", ERROR),
    "an error as JSON": ('{"error": {"message": "out of memory"}}', "application/json", ERROR),
}
"""Responses without a piece of a choice: the body, its type of content, and the reply that an agent is taken
to have said. Upstream reads an empty reply from all of them."""


@pytest.mark.parametrize("name", [*READ, *NO_CHOICE])
def test_responses_that_are_completions_or_none(stub: ModelStub, name: str) -> None:
    """Agents are asked again where there is none; ``evaluate`` counts responses as upstream does."""
    body, content_type, reply = (READ | NO_CHOICE)[name]
    stub.faults = [status(200, body, content_type=content_type)]
    assert ask(stub) == ((reply, []) if reply is not None else ("7", [0.5]))
    stub.asked.clear()
    stub.faults = [status(200, body, content_type=content_type)]
    upstreams = "" if name in NO_CHOICE else reply
    if upstreams is None:
        with pytest.raises(EndpointError, match=rf"endpoint {stub.url}: it sent no completion"):
            ask(stub, UPSTREAM["game"])
    else:
        assert ask(stub, UPSTREAM["game"]) == (upstreams, [])
    assert len(stub.asked) == 1


def test_endpoint_names_have_a_model_and_a_url() -> None:
    endpoint = parse_endpoint("openai:Qwen/Qwen3-4B@http://localhost:8000/v1/")
    assert (endpoint.model, endpoint.base_url) == ("Qwen/Qwen3-4B", "http://localhost:8000/v1")
    # A model's name may have an @, as "model@revision" has.
    assert parse_endpoint("openai:m@main@https://h/v1").model == "m@main"
    for wrong in (
        "openai:m",
        "openai:@http://h/v1",
        "openai:m@ftp://h",
        "openai:m@http://h:x",
        "openai:m@http://[::1/v1",
        "openai:m@http://h\x7f/v1",
        "openai:m@http://h/v1?version=1",  # the path of the protocol would come after it
        "openai:m@http://h/v1#max_tokens=1",  # of opponents
    ):
        with pytest.raises(ArgumentError, match=r"endpoint: .* was given, allowed: "):
            parse_endpoint(wrong)


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"environment variable OPENAI") as caught:
        parse_endpoint("openai:m@http://user:s3cret@h/v1")
    assert "s3cret" not in str(caught.value)
    for key in ("s3cret\n", "s3cret\u2013", "s3 cret"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ArgumentError, match=r"the key for http://h/v1 has a space") as caught:
            parse_endpoint("openai:m@http://h/v1")
        assert "cret" not in str(caught.value)


def test_a_key_goes_to_its_own_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUTES_API_KEY", "c")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert key_for("https://llm.chutes.ai/v1") == "c"
    assert key_for("https://notchutes.ai/v1") == "o"
    monkeypatch.delenv("CHUTES_API_KEY")
    assert key_for("https://llm.chutes.ai/v1") == ""
