"""A small sampler in another process, which knows tokens and tensors and nothing of policies or games.

``python -m tests.agents.remote ALPHA_OVER_R`` is the process. It reads pickled calls from its standard input
and writes their results to its standard output. The model is the embedded one, read by transformers alone;
adapters are added to its weights. Every node and every token is a forward of its own.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.models.adapter_sets import Adapters
from gamespiel.agents.models.names import BASE
from gamespiel.agents.models.weights import TINY
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.tokens.trie import ActionTrie

Tokens = tuple[int, ...]


class Order(NamedTuple):
    """A request in plain data: possible answers, or the ends and limits of free text; uniforms by depth."""

    prompt: Tokens
    answers: Sequence[Tokens]
    ends: frozenset[int]
    longest: int
    temperature: float
    uniforms: Sequence[float] | None
    adapters: str


Told = tuple[Tokens, Sequence[float], float | None]
"""An answer: its tokens, log-probabilities of the decided ones, and the legal mass, None for text."""


class RemoteSampler:
    """A ``Sampler`` whose decisions come from a process; it gives no values.

    Args:
        scale: ``lora_alpha / r`` of the adapters.
    """

    tokens_read = 0

    def __init__(self, scale: float) -> None:
        command = [sys.executable, "-m", "tests.agents.remote", str(scale)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _call(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump((name, arguments), self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def publish(self, name: str, adapters: Adapters) -> None:
        self._call("publish", name, {key: tensor.cpu().numpy().copy() for key, tensor in adapters.items()})

    def forget(self, name: str) -> None:
        self._call("forget", name)

    def end_episodes(self) -> None:
        pass

    def take_metrics(self) -> dict[str, float]:
        return {}

    def sample(self, requests: Sequence[Request]) -> list[Decision]:
        told = self._call("sample", [_order(request) for request in requests])
        return [
            Decision(
                request.prompt,
                request.constraint,
                tokens,
                np.array(log_probs, dtype=np.float32),
                mass,
                request.constraint.is_cut(tokens),
                request.adapters,
            )
            for request, (tokens, log_probs, mass) in zip(requests, told, strict=True)
        ]

    def distribution(self, requests: Sequence[Request]) -> list[npt.NDArray[np.float64]]:
        odds: list[npt.NDArray[np.float64]] = self._call("distribution", [_order(r) for r in requests])
        return odds


def _order(request: Request) -> Order:
    constraint = request.constraint
    if isinstance(constraint, FreeText):
        answers: list[Tokens] = []
        ends, longest, temperature = constraint.ends, constraint.max_new_tokens, constraint.temperature
    else:
        assert isinstance(constraint, ActionTrie)
        answers = [constraint.tokens[action] for action in constraint.paths]
        ends, longest, temperature = frozenset(), max(map(len, answers)), 1.0
    noise = request.noise
    uniforms = None if noise is None else [float(noise.uniforms(depth)[0]) for depth in range(longest)]
    return Order(request.prompt, answers, ends, longest, temperature, uniforms, request.adapters)


class Worker:
    """The process's side."""

    def __init__(self, scale: float) -> None:
        from transformers import AutoModelForCausalLM

        torch.set_num_threads(1)
        self.scale = scale
        self.model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
        self.base = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.sets: dict[str, Mapping[str, Any]] = {BASE: {}}

    def publish(self, name: str, adapters: Mapping[str, Any]) -> None:
        self.sets[name] = adapters

    def forget(self, name: str) -> None:
        self.sets.pop(name, None)

    def use(self, name: str) -> None:
        """Makes the weights those of the base and W + s B A where there is an adapter."""
        weights = {key: tensor.clone() for key, tensor in self.base.items()}
        for key, a in self.sets[name].items():
            if ".lora_A." in key:
                b = self.sets[name][key.replace("lora_A", "lora_B")]
                own = key.removeprefix("base_model.model.").replace(".lora_A.default", "")
                weights[own] += self.scale * torch.from_numpy(b) @ torch.from_numpy(a)
        self.model.load_state_dict(weights)

    def logits(self, text: Tokens) -> Tensor:
        with torch.no_grad():
            found: Tensor = self.model(input_ids=torch.tensor([text])).logits[0, -1]
        return found

    def sample(self, orders: Sequence[Order]) -> list[Told]:
        told = []
        for order in orders:
            self.use(order.adapters)
            told.append(self.choose(order) if order.answers else self.write(order))
        return told

    def choose(self, order: Order) -> Told:
        left, log_probs, mass, depth = list(order.answers), list[float](), 0.0, 0
        while len({answer[depth:] for answer in left}) > 1 or depth < len(left[0]):
            children = sorted({answer[depth] for answer in left})
            token = children[0]
            if len(children) > 1:
                logits = self.logits((*order.prompt, *left[0][:depth]))
                chosen = logits[children].log_softmax(-1)
                place = pick(chosen, order.uniforms, len(log_probs))
                token = children[place]
                log_probs.append(float(chosen[place]))
                mass += float(logits[children].logsumexp(-1) - logits.logsumexp(-1))
            left = [answer for answer in left if answer[depth] == token]
            depth += 1
        return left[0], log_probs, float(np.exp(mass))

    def write(self, order: Order) -> Told:
        tokens, log_probs = list[int](), list[float]()
        while len(tokens) < order.longest and not (tokens and tokens[-1] in order.ends):
            chosen = (self.logits((*order.prompt, *tokens)) / order.temperature).log_softmax(-1)
            tokens.append(pick(chosen, order.uniforms, len(log_probs)))
            log_probs.append(float(chosen[tokens[-1]]))
        return tuple(tokens), log_probs, None

    def distribution(self, orders: Sequence[Order]) -> list[npt.NDArray[np.float64]]:
        found = []
        for order in orders:
            self.use(order.adapters)
            found.append(np.exp([self.chance(order, answer) for answer in order.answers]))
        return found

    def chance(self, order: Order, answer: Tokens) -> float:
        """Returns the log-probability of one of the answers."""
        total = 0.0
        for depth, token in enumerate(answer):
            children = sorted({a[depth] for a in order.answers if a[:depth] == answer[:depth]})
            if len(children) > 1:
                logits = self.logits((*order.prompt, *answer[:depth]))[children].double()
                total += float(logits.log_softmax(-1)[children.index(token)])
        return total


def pick(log_probs: Tensor, uniforms: Sequence[float] | None, depth: int) -> int:
    """Returns the first place whose cumulative probability exceeds the uniform, or the most probable one."""
    if uniforms is None:
        return int(log_probs.argmax())
    sums = log_probs.double().exp().numpy().cumsum()
    return int(np.searchsorted(sums, uniforms[depth] * sums[-1], side="right"))


def serve(calls: BinaryIO, results: BinaryIO, worker: Worker) -> None:
    """Answers calls until there are no more."""
    while True:
        try:
            name, arguments = pickle.load(calls)
        except EOFError:
            return
        pickle.dump(getattr(worker, name)(*arguments), results)
        results.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, Worker(float(sys.argv[1])))
