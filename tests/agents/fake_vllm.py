"""A stand-in for a vLLM server, with real adapters and faults on demand, and policies that sample from it.

It answers the paths that the sampler uses as vLLM 0.32.0 does. Log-probabilities are computed by the engine
of the learning room, from the adapters in the folder that ``/v1/load_lora_adapter`` names.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from safetensors.torch import load_file

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.sampling.vllm.answers import LogProbs, NodeQuery
from gamespiel.agents.sampling.vllm.connect import Needs, connect, list_targets
from gamespiel.agents.sampling.vllm.probe import LocalReader
from gamespiel.agents.sampling.vllm.replicas import Patience
from gamespiel.agents.sampling.vllm.sampler import VllmSampler
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.constraints import FreeText
from tests.agents.toys import Echo, Stairs, make_policy, make_ppo, masks_of


@cache
def make_served() -> LLMPolicy:
    """Returns the model of servers that are given none, which is made once."""
    return make_policy()


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(eq=False)
class FakeVllm:
    """A server in a thread of its own.

    Args:
        policy: Its model; by default the embedded one with adapters of rank 4.
        runtime_lora: Whether adapters can be loaded while it runs.
        max_lora_rank: The largest rank of adapters.
        mode: "raw_logprobs", "processed_logprobs" or "raw_logits".
        max_model_len: Its context.
        version: The version that it says it is.
        ignores_adapters: Whether it loads adapters without applying them.
        follows: Whether later versions of adapters are applied; False keeps the first one loaded.
        lora_dtype: The type that adapters are rounded to; None for none.

    Attributes:
        drift: How much less each further child of a node is preferred than by the model, and each token of a
            text, in nats; the probe, which asks for 128 tokens, does not see it.
        faults: Faults of the next requests to ``/v1/completions``: "500", "close", "half", "hang",
            "missing" or "gzip".
        requests: The bodies of all requests to ``/v1/completions``.
        loaded: Folders of adapters by name, now.
        ever_loaded: Names of all adapters that were loaded, in order.
        aborted: Requests whose client went away before they were answered.
    """

    policy: LLMPolicy = field(default_factory=make_served)
    runtime_lora: bool = True
    max_lora_rank: int = 16
    mode: str = "raw_logprobs"
    max_model_len: int = 4096
    version: str = "0.32.0"
    ignores_adapters: bool = False
    follows: bool = True
    lora_dtype: torch.dtype | None = None
    _lock: ClassVar[threading.Lock] = threading.Lock()  # servers may share a model

    def __post_init__(self) -> None:
        self.reader = LocalReader(self.policy.engine, self.policy.adapters)
        self.faults: deque[str] = deque()
        self.requests: list[dict[str, Any]] = []
        self.loaded: dict[str, str] = {}
        self.ever_loaded: list[str] = []
        self.aborted = 0
        self.drift = 0.0
        # Bound for good, and never listened on: nobody else gets the port while the server is stopped.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self._port = self._place.getsockname()[1]
        self._first: Mapping[str, Any] | None = None
        self.start()

    # -- life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts it, on the port that it had; it knows no adapters then."""
        self.loaded.clear()
        fake = self

        class Handler(_Handler):
            server_of = fake

        self._http = _Server(("127.0.0.1", self._port), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Kills it: open connections are reset."""
        self._http.shutdown()
        self._http.server_close()
        self._http.drop_connections()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    # -- answers -------------------------------------------------------------------------------------------

    def list_models(self) -> dict[str, Any]:
        base = {"id": "served", "root": "/models/served", "parent": None, "max_model_len": self.max_model_len}
        loras = [{"id": name, "root": root, "parent": "served"} for name, root in self.loaded.items()]
        return {"object": "list", "data": [base, *loras]}

    def load(self, body: Mapping[str, Any]) -> str:
        if not self.runtime_lora:
            raise Refusal(404, "Not Found")
        name, folder = body["lora_name"], Path(body["lora_path"])
        if body.get("load_inplace"):
            raise Refusal(400, "the sampler never reloads in place")
        if name in self.loaded:
            raise Refusal(400, f"The lora adapter '{name}' has already been loaded.")
        if not folder.is_dir():
            raise Refusal(404, f"Loading lora {name} failed: No adapter found for {folder}")
        settings = json.loads((folder / "adapter_config.json").read_text())
        tensors = {
            key.removesuffix(".weight") + ".default.weight": tensor
            for key, tensor in load_file(folder / "adapter_model.safetensors").items()
        }
        if settings["r"] > self.max_lora_rank:
            raise Refusal(
                500, f"LoRA rank {settings['r']} is greater than max_lora_rank {self.max_lora_rank}."
            )
        if self.lora_dtype is not None:
            tensors = {key: tensor.to(self.lora_dtype).float() for key, tensor in tensors.items()}
        if self._first is None:
            self._first = tensors
        with self._lock:
            self.policy.adapters.publish(name, tensors if self.follows else self._first)
            self.loaded[name] = str(folder)
            self.ever_loaded.append(name)
        return f"Success: LoRA adapter '{name}' added successfully."

    def unload(self, body: Mapping[str, Any]) -> str:
        name = body["lora_name"]
        if name not in self.loaded:
            raise Refusal(404, f"The lora adapter '{name}' cannot be found.")
        with self._lock:
            del self.loaded[name]
            self.policy.adapters.forget(name)
        return f"Success: LoRA adapter '{name}' removed successfully."

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.requests.append(dict(body))
        name = body["model"]
        if name != "served" and name not in self.loaded:
            raise Refusal(404, f"The model `{name}` does not exist. Valid aliases: served.")
        if name != "served":
            assert Path(self.loaded[name]).is_dir(), "a folder went while requests could name it"
        adapters = BASE if name == "served" or self.ignores_adapters else name
        prompts = [tuple(prompt) for prompt in body["prompt"]]
        if max(map(len, prompts)) + body["max_tokens"] > self.max_model_len:
            raise Refusal(400, f"This model's maximum context length is {self.max_model_len} tokens.")
        with self._lock:
            if ids := body.get("logprob_token_ids"):
                choices = self._choose(adapters, prompts, tuple(ids), body["temperature"])
            else:
                choices = [self._write(adapters, prompt, body) for prompt in prompts]
        return {"choices": [{"index": at, **choice} for at, choice in enumerate(choices)]}

    def _choose(
        self, adapters: str, prompts: list[tuple[int, ...]], ids: tuple[int, ...], temperature: float
    ) -> list[dict[str, Any]]:
        if len(ids) > 128:
            raise Refusal(400, "logprob_token_ids has more than 128 ids")
        rows = self.reader.read_nodes([NodeQuery(adapters, prompt, ids) for prompt in prompts])
        if len(ids) < 20:
            rows = [row - self.drift * np.arange(len(row)) for row in rows]
        if self.mode == "raw_logits":
            rows = [row + 7.0 for row in rows]
        if self.mode == "processed_logprobs":
            rows = [row / temperature for row in rows]  # up to a constant
            rows = [row - np.logaddexp.reduce(row) * (temperature != 1.0) for row in rows]
        tops = [
            {f"token_id:{token}": float(value) for token, value in zip(ids, row, strict=True)} for row in rows
        ]
        return [{"logprobs": {"top_logprobs": [top], "token_logprobs": [0.0]}} for top in tops]

    def _write(self, adapters: str, prompt: tuple[int, ...], body: Mapping[str, Any]) -> dict[str, Any]:
        free = FreeText(frozenset(body["stop_token_ids"]), body["max_tokens"], body["temperature"] or 1.0)
        rng = np.random.default_rng(body.get("seed", 0))
        with self.policy.adapters.use(adapters):
            written = TextSampler(self.policy.engine).write(
                [prompt], free, (lambda depth: rng.random(1)) if body["temperature"] else None
            )
        (tokens,), (values,) = written.tokens, written.log_probs
        if self.mode == "raw_logprobs":
            values = read_text(self.reader, adapters, prompt, tokens).astype(np.float32)
        return {"token_ids": list(tokens), "logprobs": {"token_logprobs": (values - self.drift).tolist()}}


@torch.no_grad()
def read_text(reader: LocalReader, adapters: str, prompt: Tokens, tokens: Tokens) -> LogProbs:
    """The log-probabilities of a written text's tokens at temperature 1, float64 (tokens,)."""
    engine, whole = reader.engine, (*prompt, *tokens[:-1])
    places = list(range(len(prompt) - 1, len(whole)))
    with reader.adapters.use(adapters):
        logits = engine.logits(engine.read([whole], [0] * len(places), places)).float()
    log_probs = logits.log_softmax(-1)[torch.arange(len(tokens)), torch.tensor(tokens)]
    values: LogProbs = log_probs.double().cpu().numpy()
    return values


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server_of: FakeVllm
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # otherwise a body waits 40 ms for the acknowledgement of its head

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        fake = self.server_of
        answers: dict[str, Any] = {
            "/health": lambda: "",
            "/version": lambda: {"version": fake.version},
            "/v1/models": fake.list_models,
        }
        self._answer(answers[self.path]())

    def do_POST(self) -> None:
        fake = self.server_of
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        paths: dict[str, Any] = {
            "/v1/completions": fake.complete,
            "/v1/load_lora_adapter": fake.load,
            "/v1/unload_lora_adapter": fake.unload,
        }
        fault = fake.faults.popleft() if fake.faults and self.path == "/v1/completions" else None
        if fault == "500":
            return self._answer({"error": {"message": "EngineCore died"}}, 500)
        if fault == "close":
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if fault == "hang":
            return self._hang()
        if fault == "gzip":
            return self._answer({"choices": []}, encoding="gzip")
        try:
            with torch.no_grad():
                answer = paths[self.path](body)
        except Refusal as refusal:
            return self._answer({"error": {"message": str(refusal)}}, refusal.status)
        if fault == "missing":
            answer = {"choices": answer["choices"][:-1]}
        self._answer(answer, half=fault == "half")

    def _hang(self) -> None:
        """Answers nothing; notes whether the client went away."""
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            if readable:
                self.server_of.aborted += 1
                break
        self.close_connection = True

    def _answer(self, answer: Any, status: int = 200, *, half: bool = False, encoding: str = "") -> None:
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)
        if half:
            self.close_connection = True


# -- policies that sample from it ----------------------------------------------------------------------------


MakeServer = Callable[..., FakeVllm]
Plug = Callable[..., VllmSampler]

PATIENCE = Patience(tries=2, first=0.01, poll=0.02, most=6, seconds=20.0)
LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (7,), (0, 1, 2, 12, 15, 120, 123)]
TEXTS = ["x", "seat 0", "y", "z"]


@contextmanager
def serving() -> Iterator[MakeServer]:
    """Yields a function that makes a server, which ends with the context."""
    servers: list[FakeVllm] = []

    def make(**settings: Any) -> FakeVllm:
        servers.append(FakeVllm(**settings))
        return servers[-1]

    yield make
    for server in servers:
        server.stop()


@contextmanager
def plugging(prompt: str, **fixed: Any) -> Iterator[Plug]:
    """Yields a function that makes a policy sample from servers, which are compared with it on a prompt."""
    samplers: list[VllmSampler] = []

    def plug(policy: LLMPolicy, *servers: Any, **settings: Any) -> VllmSampler:
        writes = policy.decode == "text"
        needs = Needs(
            policy.temperature if writes else None, policy.max_new_tokens, list_targets(policy.model)
        )
        policy.sampler = connect(
            [server.url for server in servers], policy.engine, policy.adapters, policy.lora_settings,
            policy.prompts([prompt])[0], needs, **fixed | settings,
        )  # fmt: skip
        samplers.append(policy.sampler)
        return policy.sampler

    yield plug
    for sampler in samplers:
        sampler.close()


def noises(rows: int) -> list[Address]:
    return [Address(3, Purpose.ACTIONS, 0, 0, episode) for episode in range(rows)]


def decide(policy: LLMPolicy, **more: Any) -> list[Any]:
    return policy.decide(TEXTS, masks_of(LEGAL), **({"noise": noises(len(TEXTS))} | more))


def choosing(**more: Any) -> LLMPPO:
    """Answers of one to three digits, among which 1 begins 12, and 12 begins 123."""
    return make_ppo(Stairs, batch_size=4, adapters=0.05, ppo_epochs=2, **more)


def writing(**more: Any) -> LLMPPO:
    return make_ppo(lambda: Echo(3), batch_size=4, adapters=0.02, max_new_tokens=4, temperature=0.8, **more)


def playing_itself(**more: Any) -> LLMPPO:
    """The learner's seat against members of a pool, each of which has to be published."""
    kuhn: Callable[[], Any] = lambda: gym.make("GameSpiel-v0", game="kuhn_poker", opponent="open")  # noqa: E731
    itself = SelfPlaySettings(learn="one", pool_every=1, pool_size=2)
    return make_ppo(kuhn, batch_size=4, adapters=0.05, self_play=itself, average_decay=0.5, **more)


def answers_of(model: LLMPPO) -> list[Any]:
    return [(decision.prompt, decision.tokens) for decision in model.rollout_buffer.decisions]
