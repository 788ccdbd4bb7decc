"""Samplers and scorers of one kind, asked with legal sets and replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.models import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.choices import ChoiceSampler
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.scoring.choice_scores import ChoiceScorer, ChoiceScores
from gamespiel.agents.scoring.scorer import Scorer
from gamespiel.agents.scoring.text_scores import TextScorer, TextScores
from gamespiel.agents.tokens.answers import LegalAnswers
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import ActionTrie, FreeText

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

    handle = policy.engine.transformer.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield shapes
    finally:
        handle.remove()


class Chosen(NamedTuple):
    """Chosen actions, n of them: int64 (n,), float32 (n,) twice, and hidden states (n, hidden)."""

    actions: npt.NDArray[np.int64]
    log_probs: Tensor
    legal_mass: Tensor
    hidden: Tensor


def kl(scores: Any, other: Any, estimator: str = "exact") -> Tensor:
    """Returns the divergence from other scores, or from what they keep, at each node or token."""
    return scores.divergence(other if isinstance(other, Tensor) else other.keep(estimator), estimator)


class ChoiceSums:
    """The scores of n choices, summed over their paths."""

    def __init__(self, scores: ChoiceScores) -> None:
        self.scores, self.nodes = scores, scores.child_log_probs
        self.log_probs, self.entropy = self.sum(scores.log_probs), self.sum(scores.entropy)

    def sum(self, per_node: Tensor) -> Tensor:
        return torch.zeros(len(self.scores.hidden)).index_add(0, self.scores.owners, per_node)

    def kl_to(self, other: ChoiceSums | Tensor) -> Tensor:
        return self.sum(kl(self.scores, other if isinstance(other, Tensor) else other.nodes))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scores, name)


class Choices:
    """The distribution over legal actions of a policy, or of a codec and an engine."""

    def __init__(self, policy: LLMPolicy | None = None, codec: Any = None, engine: Any = None) -> None:
        self.codec = policy.codec if policy is not None else codec
        self.engine = policy.engine if policy is not None else engine
        self.answers = LegalAnswers(self.codec, 0)
        self.sampler, self.scorer = ChoiceSampler(self.engine), ChoiceScorer(self.engine)

    def tries(self, legal: Rows) -> list[ActionTrie]:
        return [self.answers.trie_of_numbers(actions) for actions in legal]

    def sample(self, prompts: Rows, legal: Rows, uniforms: Uniforms) -> Chosen:
        tries = self.tries(legal)
        written = self.sampler.sample(prompts, tries, uniforms)
        actions = [trie.action_of(tokens) for trie, tokens in zip(tries, written.tokens, strict=True)]
        return Chosen(
            np.array(actions, dtype=np.int64),
            torch.tensor([float(own.sum()) for own in written.log_probs]),
            torch.tensor(written.legal_mass),
            written.hidden,
        )

    def distribution(self, prompts: Rows, legal: Rows) -> list[Any]:
        return self.sampler.distribution(prompts, self.tries(legal))

    def evaluate(
        self, prompts: Rows, legal: Rows, actions: Sequence[int], *, mass: bool = False
    ) -> ChoiceSums:
        rows = zip(prompts, self.tries(legal), actions, strict=True)
        decisions = [
            Decision.from_answer(prompt, trie, trie.answer_tokens(action)) for prompt, trie, action in rows
        ]
        return ChoiceSums(self.scorer.score(decisions, mass=mass))


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

    def decisions(self, prompts: Rows, replies: Rows) -> list[Decision]:
        return [
            Decision(prompt, self.free, tokens, np.zeros(len(tokens), dtype=np.float32))
            for prompt, tokens in zip(prompts, replies, strict=True)
        ]

    def evaluate(self, prompts: Rows, replies: Rows) -> TextScores:
        return self.scorer.score(self.decisions(prompts, replies))

    def split(self, prompts: Rows, replies: Rows, tokens: int) -> Any:
        scorer = Scorer(self.engine, None, None)  # type: ignore[arg-type]
        return scorer.split(self.decisions(prompts, replies), budget=tokens)
