"""Prompts that a policy's model reads, and replies of a codec and an engine without a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.scoring.text_scores import TextScorer, TextScores
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import FreeText

Tokens = tuple[int, ...]
Rows = Sequence[Tokens]


@contextmanager
def as_reference(policy: LLMPolicy) -> Iterator[None]:
    """Makes a policy's engine the reference's within the context, without gradients."""
    with torch.no_grad(), policy.adapters.use(BASE):
        yield


@contextmanager
def forwards(policy: LLMPolicy) -> Iterator[list[tuple[int, ...]]]:
    """Yields the list of shapes of the token arrays that the model reads within the context."""
    shapes: list[tuple[int, ...]] = []

    def hook(module: Any, args: Any, kwargs: Any) -> None:
        shapes.append(tuple(kwargs["input_ids"].shape))

    with policy.engine.transformer.register_forward_pre_hook(hook, with_kwargs=True):
        yield shapes


def kl(scores: Any, other: Any, estimator: str = "exact") -> Tensor:
    """Returns the divergence from other scores, or from what they keep, at each node or token."""
    return scores.divergence(other if isinstance(other, Tensor) else other.keep(estimator), estimator)


class Texts:
    """The distribution over replies of a codec and an engine."""

    def __init__(
        self, codec: ChatCodec, engine: Any, max_new_tokens: int = 256, temperature: float = 1.0
    ) -> None:
        self.codec, self.engine = codec, engine
        self.free = FreeText(codec.end_tokens(engine.end_tokens), max_new_tokens, temperature)
        self.sampler, self.scorer = TextSampler(engine), TextScorer(engine)

    def sample(self, prompts: Rows, uniforms: Uniforms) -> WrittenAnswers:
        return self.sampler.write(prompts, self.free, uniforms)

    def best(self, prompts: Rows) -> WrittenAnswers:
        return self.sampler.write(prompts, self.free, None)

    def read(self, tokens: Tokens) -> tuple[str, bool]:
        """Returns a reply's text, and whether it was cut."""
        return self.free.read_answer(tokens, self.codec), self.free.is_cut(tokens)

    def evaluate(self, prompts: Rows, replies: Rows) -> TextScores:
        decisions = [
            Decision(prompt, self.free, tokens, np.zeros(len(tokens), dtype=np.float32))
            for prompt, tokens in zip(prompts, replies, strict=True)
        ]
        return self.scorer.score(decisions)
