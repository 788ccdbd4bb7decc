"""A server that speaks the chat protocol, answers by a function, and fails as the test says."""

from __future__ import annotations

import json
import math
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.task_gym.remote.stub import Fault, FaultyHandler, FaultyServer, hang_up, status

__all__ = ["hang_up", "status"]

Body = dict[str, Any]
Tokens = tuple[str, ...]
END = "<|im_end|>"
"""The token that ends a turn, and the last one of each reply in tokens."""

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
        lists: Returns the response to requests for log-probabilities; None if the endpoint ignores them.
        streams: Whether replies come in pieces where they are asked for so, as all real endpoints do.
        completions: The answer to requests for completions of a text; None if there is no such address.
        asked: The requests' bodies, in order.
        keys: Their authorization headers.
        pause: Seconds before each answer.
    """

    def __init__(self, answer: Callable[[Body], str | None] = recorded, pause: float = 0.0) -> None:
        self.answer, self.pause = answer, pause
        self.lists: Callable[[Body], str] | None = None
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
            elif server.lists is not None and body.get("logprobs"):
                self.send(200, server.lists(body))
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


class TokenModel:
    """A model that is the probabilities of its replies, in tokens.

    Args:
        replies: Returns the probability of each reply to a conversation.
        continues: Whether it goes on with a reply that is begun, or begins another one as many endpoints do.
        most: The most tokens that it lists.
    """

    def __init__(
        self,
        replies: Callable[[list[dict[str, str]]], Mapping[Tokens, float]],
        *,
        continues: bool = True,
        most: int = 20,
    ) -> None:
        self.replies, self.continues, self.most = replies, continues, most

    def write(self, body: Body) -> str:
        """A reply, which follows from the seed and the conversation."""
        odds = self.replies(body["messages"])
        noise = random.Random(json.dumps([body.get("seed"), body["messages"]]))
        return "".join(noise.choices(list(odds), list(odds.values()))[0][:-1])

    def list_tokens(self, body: Body) -> str:
        """The likeliest next tokens; a reply that is begun is in its likeliest tokens."""
        said, begun = body["messages"], ()
        tokens = 10 * len(said)
        if body.get("continue_final_message") and self.continues:
            *said, last = said
            odds = self.replies(said)
            ways = [r[:n] for r in odds for n in range(1, len(r)) if "".join(r[:n]) == last["content"]]
            begun = max(ways, key=lambda way: sum(p for r, p in odds.items() if r[: len(way)] == way))
            tokens = 10 * len(said) + len(begun)
        following: dict[str, float] = {}
        for reply, probability in self.replies(said).items():
            if reply[: len(begun)] == begun:
                token = reply[len(begun)]
                following[token] = following.get(token, 0.0) + probability
        total = sum(following.values())
        rows = [
            {"token": token, "logprob": math.log(probability / total), "bytes": list(token.encode())}
            for token, probability in sorted(following.items(), key=lambda row: -row[1])
            if probability
        ]
        whole = json.loads(completion(rows[0]["token"], tokens))
        content = [{**rows[0], "top_logprobs": rows[: min(self.most, body["top_logprobs"])]}]
        whole["choices"][0]["logprobs"] = {"content": content}
        return json.dumps(whole)

    def serve(self) -> ModelStub:
        """A server of the model."""
        stub = ModelStub(self.write)
        stub.lists = self.list_tokens
        return stub


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
