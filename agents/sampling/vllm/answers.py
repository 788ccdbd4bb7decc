"""Answers by servers: choices that are drawn here, and texts that are drawn there.

Of a choice each branching node is a question: it gives the log-probabilities of the node's children over the
whole vocabulary. So the mask, the legal mass and the draw are those of the sampler in this process, with the
same noise.

A text is drawn by the server, since one request per token would be slow: tokens in, tokens out, never
decoded and read again. Its seed is made from the request's address, so a text depends neither on the order of
requests nor on the server that wrote it. But it differs from the text that the sampler in this process draws
from the same address.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.sampling.decisions import Request
from gamespiel.agents.sampling.drawing import (
    NotFiniteError,
    TrieDescent,
    WrittenAnswers,
    action_probabilities,
    require_trie,
    write_best,
)
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError, read_float
from gamespiel.agents.tokens import Index, Tokens
from gamespiel.agents.tokens.constraints import FreeText, Node

IDS = 128
"""Most tokens that one request asks about: vLLM's own limit."""


LogProbs = npt.NDArray[np.float64]
"""Log-probabilities over the whole vocabulary, unmasked, float64."""


class NodeQuery(NamedTuple):
    """A question about the next token of a text.

    Attributes:
        adapters: Name of the adapters.
        text: The tokens so far, prompt and answer.
        children: The tokens whose log-probabilities are asked for.
    """

    adapters: str
    text: Tokens
    children: Tokens


class ServedAnswers:
    """Draws legal actions by servers' log-probabilities, and has servers write texts.

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
                ids = children[first : first + IDS]
                for start in range(0, len(rows), size):
                    part = rows[start : start + size]
                    plans.append((part, ids, first))
                    jobs.append(Job(name, node_body([queries[at].text for at in part], ids)))
        log_probs = [np.empty(len(query.children)) for query in queries]
        for (part, ids, first), choices in zip(plans, self._replicas.complete(jobs), strict=True):
            for at, choice in zip(part, choices, strict=True):
                log_probs[at][first : first + len(ids)] = read_children(choice, ids)
        if not all(np.isfinite(row).all() for row in log_probs):
            raise NotFiniteError(
                "the server's logits are not finite: its weights or activations have overflowed"
            )
        return log_probs

    def sample(self, requests: Sequence[Request], uniforms: Uniforms) -> WrittenAnswers:
        """Draws one legal action per request.

        Args:
            requests: The requests, n of them, whose constraints are tries.
            uniforms: Returns the noise of the depth-th decision, float64 (n,).
        """
        descent = TrieDescent([require_trie(request) for request in requests])

        def read(at: dict[int, int]) -> tuple[list[int], Tensor, Tensor]:
            queries = Index[NodeQuery]()
            where = [
                queries(_query_of(requests[row], descent.tries[row].nodes[node])) for row, node in at.items()
            ]
            return where, *_mask(self.read_nodes(queries.items))

        descent.lead(range(len(requests)), uniforms, read)
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

    def write(self, requests: Sequence[Request]) -> WrittenAnswers:
        """Writes a reply to each request, whose constraints are ``FreeText``.

        Raises:
            NotFiniteError: a log-probability is not finite.
            ServerError: as ``Replicas.complete`` does.
        """
        limits = [request.constraint for request in requests if isinstance(request.constraint, FreeText)]
        pairs = list(zip(requests, limits, strict=True))
        jobs = [Job(request.adapters, _text_body(request, free)) for request, free in pairs]
        answers = zip(limits, self._replicas.complete(jobs), strict=True)
        texts = [_read_text(choice, free) for free, (choice,) in answers]
        if not all(np.isfinite(log_probs).all() for _, log_probs in texts):
            raise NotFiniteError("the server's logits are not finite: its weights have overflowed")
        return WrittenAnswers(
            [tokens for tokens, _ in texts],
            [log_probs for _, log_probs in texts],
            [None] * len(requests),
            torch.zeros(len(requests), 0),
        )

    def _read_all(self, requests: Sequence[Request]) -> tuple[LogProbs, LogProbs, list[list[int]]]:
        """Reads every branching node; returns log-probabilities (k, c), log-masses (k,), rows per request."""
        queries = Index[NodeQuery]()
        where = [
            [queries(_query_of(request, node)) for node in require_trie(request).nodes]
            for request in requests
        ]
        if not queries.items:
            nothing = np.zeros((0, 1))
            return nothing, nothing[:, 0], where
        log_probs, mass = _mask(self.read_nodes(queries.items))
        return log_probs.double().numpy(), mass.log().double().numpy(), where


def _mask(unmasked: Sequence[LogProbs]) -> tuple[Tensor, Tensor]:
    """Returns renormalised log-probabilities, float32 (k, c), -inf beyond a row's own, and masses (k,)."""
    width = max(map(len, unmasked))
    table = np.full((len(unmasked), width), -np.inf)
    for row, log_probs in zip(table, unmasked, strict=True):
        row[: len(log_probs)] = log_probs
    whole = torch.from_numpy(table)
    log_mass = whole.logsumexp(-1)
    return (whole - log_mass[:, None]).float(), log_mass.clamp(max=0.0).exp().float()


def _query_of(request: Request, node: Node) -> NodeQuery:
    return NodeQuery(request.adapters, (*request.prompt, *node.prefix), node.children)


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
        (by_token,) = choice["logprobs"]["top_logprobs"]
        return [read_float(by_token[f"token_id:{child}"]) for child in children]
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(
            "the vLLM server did not give the log-probabilities of the tokens that it was asked for "
            "(logprob_token_ids); vLLM 0.32.0 does"
        ) from error


def _text_body(request: Request, free: FreeText) -> dict[str, Any]:
    greedy = request.noise is None
    # An integer of 53 bits, as the first number of the request's address has.
    seed = {} if request.noise is None else {"seed": int(request.noise.uniforms(0)[0] * 2.0**53)}
    # Every parameter of sampling is given, so that no default of the model's has a say.
    return seed | {
        "prompt": [list(request.prompt)],
        "max_tokens": free.max_new_tokens,
        "temperature": 0.0 if greedy else free.temperature,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "stop_token_ids": sorted(free.ends),
        "ignore_eos": True,
        "logprobs": 1,
        "return_tokens_as_token_ids": True,
        "return_token_ids": True,
    }


def _read_text(choice: dict[str, Any], free: FreeText) -> tuple[Tokens, npt.NDArray[np.float32]]:
    """Returns the tokens of a reply, its end included, and their log-probabilities.

    Raises:
        ServerError: the server did not give them.
    """
    try:
        tokens = tuple(int(token) for token in choice["token_ids"])
        values = [read_float(value) for value in choice["logprobs"]["token_logprobs"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(
            "the vLLM server did not give the tokens of a text (return_token_ids); vLLM 0.32.0 does"
        ) from error
    whole = bool(tokens) and (len(tokens) == free.max_new_tokens or tokens[-1] in free.ends)
    if len(values) != len(tokens) or not whole:
        raise ServerError(
            f"the vLLM server ended a text after {len(tokens)} of {free.max_new_tokens} tokens, and no "
            f"end of turn: reason {choice.get('finish_reason')!r}; its context may be too short "
            "(--max-model-len)"
        )
    return tokens, np.array(values, dtype=np.float32)
