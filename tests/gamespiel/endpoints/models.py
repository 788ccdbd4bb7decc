"""A server that speaks the chat protocol, answers by a function, and fails as the test says."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.task_gym.remote.stub import Fault, FaultyHandler, FaultyServer, hang_up, status

__all__ = ["hang_up", "status"]

Body = dict[str, Any]
CHOICE = re.compile(r"^\s*([0-9]+) -> (.*)$", re.MULTILINE)


def choices(body: Body) -> list[tuple[int, str]]:
    """The legal actions that the latest turn lists."""
    turn = [m["content"] for m in body["messages"] if "Legal Actions:" in m["content"]][-1]
    return [(int(action), name) for action, name in CHOICE.findall(turn.rpartition("Legal Actions:")[2])]


def recorded(body: Body) -> str:
    """The reply of the recorded games: the i-th action is ``legal[(7*i + seed) % len(legal)]``."""
    legal = choices(body)
    moves = sum(m["role"] == "assistant" for m in body["messages"])
    return str(legal[(7 * moves + body["seed"]) % len(legal)][0])


def chatty(body: Body) -> str:
    """Replies of all kinds: a number, a number in words, a name, reasoning, and nonsense now and then."""
    said = len(body["messages"])
    action, name = choices(body)[(3 * said) % len(choices(body))]
    kinds = (str(action), f"I take {action}.", f"<think>\n9999\n</think>\n{action}", name, "no idea")
    return kinds[said % len(kinds)]


class ModelStub(FaultyServer):
    """Answers each request by ``answer``.

    Attributes:
        streams: Whether replies come in pieces where they are asked for so, as all real endpoints do.
        completions: The answer to requests for completions of a text; None if there is no such address.
        asked: The requests' bodies, in order.
        keys: Their authorization headers.
        pause: Seconds before each answer.
    """

    def __init__(self, answer: Callable[[Body], str | None] = recorded, pause: float = 0.0) -> None:
        self.answer, self.pause = answer, pause
        self.streams = True
        self.completions: Any = None
        self.asked: list[Body] = []
        self.keys: list[str | None] = []
        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def __exit__(self, *exception: object) -> None:
        self.close()


class Handler(FaultyHandler):
    server: ModelStub

    def do_POST(self) -> None:
        body, server = self.read(), self.server
        with server.lock:
            server.asked.append(body)
            server.keys.append(self.headers.get("authorization"))
            fault = server.faults.pop(0) if server.faults else None
        with server.under_way():
            time.sleep(server.pause)
            if self.path == "/v1/completions" and server.completions is not None:
                self.send(200, json.dumps(server.completions))
            elif self.path != "/v1/chat/completions":
                self.send(404, json.dumps({"error": {"message": "no such path"}}))
            elif fault is not None:
                fault(self)
            elif server.streams and body.get("stream"):
                self.stream(pieces(server.answer(body), 10 * len(body["messages"])))
            else:
                self.send(200, completion(server.answer(body), 10 * len(body["messages"])))

    def stream(self, events: Iterable[str | float]) -> None:
        """Sends events, in packets that end anywhere; a number is a pause in seconds."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events:
            if isinstance(event, float):
                time.sleep(event)
                continue
            for packet in (event[:7], event[7:]):
                self.wfile.write(packet.encode())
                self.wfile.flush()


def completion(text: str | None, prompt_tokens: int) -> str:
    """A response that counts two tokens per reply."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub"}
    return json.dumps({**whole, "choices": [choice], "usage": usage})


def delta(text: str | None) -> str:
    """An event with a piece of a reply."""
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})


def event(body: Any) -> str:
    return f"data: {json.dumps(body)}\n\n"


def pieces(text: str | None, prompt_tokens: int) -> list[str | float]:
    """The events of a reply, in pieces of three characters, and its count of tokens."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 2, "total_tokens": prompt_tokens + 2}
    said = [delta(text[i : i + 3]) for i in range(0, len(text or ""), 3)] if text else []
    role = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
    return [": a comment\n\n", role, *said, event({"choices": [], "usage": usage}), "data: [DONE]\n\n"]


def streamed(*events: str | float) -> Fault:
    return lambda handler: handler.stream(events)
