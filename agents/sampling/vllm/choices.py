"""Choices by a server: each branching node is a question, whose answer is masked and drawn from here.

A question gives the log-probabilities of the node's children over the whole vocabulary. So the mask, the
legal mass and the draw are those of the sampler in this process, with the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents.sampling.decisions import Request
from gamespiel.agents.sampling.descent import TrieDescent, action_probabilities, require_trie, write_best
from gamespiel.agents.sampling.drawing import NotFiniteError, WrittenAnswers, inverse_cdf
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.sampling.vllm.reader import LogProbs, NodeQuery
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError, read_float
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.index import Index

IDS = 128
"""Most tokens that one request asks about: vLLM's own limit."""


class Draw(NamedTuple):
    """A drawn child of a branching node.

    Attributes:
        query: The node.
        log_probs: The server's log-probabilities of the children, float64 (c,).
        uniform: The noise.
        child: The place of the drawn child.
    """

    query: NodeQuery
    log_probs: LogProbs
    uniform: float
    child: int


class ServedChoices:
    """Draws legal actions by a server's log-probabilities.

    Args:
        replicas: The servers.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def read_nodes(self, queries: Sequence[NodeQuery]) -> list[LogProbs]:
        """Returns the unmasked log-probabilities of each query's children, float64 (c,).

        Queries with the same children share one request per replica.

        Raises:
            NotFiniteError: a log-probability is not finite.
            ServerError: as ``Replicas.complete`` does.
        """
        groups: dict[tuple[str, Tokens], list[int]] = {}
        for at, query in enumerate(queries):
            groups.setdefault((query.adapters, query.children), []).append(at)
        plans: list[tuple[list[int], Tokens, int]] = []
        jobs: list[Job] = []
        for (name, children), rows in groups.items():
            size = math.ceil(len(rows) / len(self._replicas.servers))
            for first in range(0, len(children), IDS):
                asked = children[first : first + IDS]
                for start in range(0, len(rows), size):
                    part = rows[start : start + size]
                    plans.append((part, asked, first))
                    jobs.append(Job(name, node_body([queries[at].text for at in part], asked)))
        found = [np.empty(len(query.children)) for query in queries]
        for (part, asked, first), choices in zip(plans, self._replicas.complete(jobs), strict=True):
            for at, choice in zip(part, choices, strict=True):
                found[at][first : first + len(asked)] = read_children(choice, asked)
        if not all(np.isfinite(row).all() for row in found):
            raise NotFiniteError(
                "the server's logits are not finite: its weights or activations have overflowed"
            )
        return found

    def sample(
        self, requests: Sequence[Request], uniforms: Uniforms, on_draws: Callable[[Sequence[Draw]], None]
    ) -> WrittenAnswers:
        """Draws one legal action per request.

        Args:
            requests: The requests, n of them, whose constraints are tries.
            uniforms: Returns the noise of the depth-th decision, float64 (n,).
            on_draws: Called with the draws of each depth.
        """
        descent = TrieDescent([require_trie(request) for request in requests])
        at, depth = descent.begin(range(len(requests))), 0
        while at:
            queries = Index[NodeQuery]()
            rows = list(at)
            where = [
                queries(_query_of(requests[row], descent.tries[row].nodes[at[row]].prefix,
                                  descent.tries[row].nodes[at[row]].children))
                for row in rows
            ]  # fmt: skip
            unmasked = self.read_nodes(queries.items)
            log_probs, mass = mask(unmasked)
            noise = uniforms(depth)[rows]
            chosen = inverse_cdf(log_probs, where, noise)
            on_draws([
                Draw(queries.items[w], unmasked[w], float(u), int(c))
                for w, u, c in zip(where, noise, chosen, strict=True)
            ])  # fmt: skip
            at = descent.take(at, where, chosen, log_probs, mass)
            depth += 1
        return descent.finish(torch.zeros(len(requests), 0))

    def best(self, requests: Sequence[Request]) -> WrittenAnswers:
        """Returns the most probable legal action of each request, the first of equals."""
        log_probs, log_mass, where = self._read_all(requests)
        tries = [require_trie(request) for request in requests]
        return write_best(tries, where, log_probs, log_mass, torch.zeros(len(requests), 0))

    def distribution(self, requests: Sequence[Request]) -> list[LogProbs]:
        """Returns every legal action's probability, a float64 array per request in the order of its trie."""
        log_probs, _, where = self._read_all(requests)
        return [
            action_probabilities(log_probs, at, require_trie(request))
            for at, request in zip(where, requests, strict=True)
        ]

    def _read_all(self, requests: Sequence[Request]) -> tuple[LogProbs, LogProbs, list[list[int]]]:
        """Reads every branching node; returns log-probabilities (k, c), log-masses (k,), rows per request."""
        queries = Index[NodeQuery]()
        where = [
            [queries(_query_of(request, node.prefix, node.children)) for node in require_trie(request).nodes]
            for request in requests
        ]
        if not queries.items:
            nothing = np.zeros((0, 1))
            return nothing, nothing[:, 0], where
        log_probs, mass = mask(self.read_nodes(queries.items))
        return log_probs.double().numpy(), mass.log().double().numpy(), where


def mask(unmasked: Sequence[LogProbs]) -> tuple[Tensor, Tensor]:
    """Returns renormalised log-probabilities, float32 (k, c), -inf beyond a row's own, and masses (k,)."""
    width = max(map(len, unmasked))
    table = np.full((len(unmasked), width), -np.inf)
    for row, own in zip(table, unmasked, strict=True):
        row[: len(own)] = own
    whole = torch.from_numpy(table)
    log_mass = whole.logsumexp(-1)
    return (whole - log_mass[:, None]).float(), log_mass.clamp(max=0.0).exp().float()


def _query_of(request: Request, prefix: Tokens, children: Tokens) -> NodeQuery:
    return NodeQuery(request.adapters, (*request.prompt, *prefix), children)


def node_body(texts: Sequence[Tokens], children: Tokens) -> dict[str, Any]:
    return {
        "prompt": [list(text) for text in texts],
        "max_tokens": 1,
        "temperature": 1.0,
        "logprobs": 1,
        "logprob_token_ids": list(children),
        "return_tokens_as_token_ids": True,
    }


def read_children(choice: dict[str, Any], children: Tokens) -> list[float]:
    """Returns the log-probabilities of the children.

    Raises:
        ServerError: the server did not give them.
    """
    try:
        (given,) = choice["logprobs"]["top_logprobs"]
        return [read_float(given[f"token_id:{child}"]) for child in children]
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(
            "the vLLM server did not give the log-probabilities of the tokens that it was asked for "
            "(logprob_token_ids); vLLM 0.32.0 does"
        ) from error
