"""Texts by a server: tokens in, tokens out, never decoded and read again.

The server draws, since one request per token would be slow. Its seed is made from the request's address, so a
text depends neither on the order of requests nor on the server that wrote it. But it differs from the text
that the sampler in this process draws from the same address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gamespiel.agents.sampling.decisions import Request
from gamespiel.agents.sampling.drawing import NotFiniteError, WrittenAnswers
from gamespiel.agents.sampling.noise import Noise
from gamespiel.agents.sampling.vllm.replicas import Job, Replicas
from gamespiel.agents.sampling.vllm.server import ServerError, read_float
from gamespiel.agents.tokens import Tokens
from gamespiel.agents.tokens.constraints import FreeText


class ServedTexts:
    """Writes replies by servers.

    Args:
        replicas: The servers.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def write(self, requests: Sequence[Request]) -> WrittenAnswers:
        """Writes a reply to each request, whose constraints are ``FreeText``.

        Raises:
            NotFiniteError: a log-probability is not finite.
            ServerError: as ``Replicas.complete`` does.
        """
        jobs = [Job(request.adapters, _text_body(request)) for request in requests]
        tokens: list[Tokens] = []
        log_probs: list[npt.NDArray[np.float32]] = []
        for request, (choice,) in zip(requests, self._replicas.complete(jobs), strict=True):
            own, found = _read_text(choice, require_text(request))
            if not np.isfinite(found).all():
                raise NotFiniteError("the server's logits are not finite: its weights have overflowed")
            tokens.append(own)
            log_probs.append(found)
        return WrittenAnswers(tokens, log_probs, [None] * len(requests), torch.zeros(len(requests), 0))


def require_text(request: Request) -> FreeText:
    """Returns a request's limits.

    Raises:
        ValueError: it is a choice.
    """
    if not isinstance(request.constraint, FreeText):
        raise ValueError(f"free text is needed, got {request.constraint}")
    return request.constraint


def derive_seed(noise: Noise) -> int:
    """Returns the server's seed of a request: an integer of 53 bits, as its address's first number has."""
    return int(noise.uniforms(0)[0] * 2.0**53)


def _text_body(request: Request) -> dict[str, Any]:
    free = require_text(request)
    greedy = request.noise is None
    drawn = {} if request.noise is None else {"seed": derive_seed(request.noise)}
    # Every parameter of sampling is given, so that no default of the model's has a say.
    return drawn | {
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
