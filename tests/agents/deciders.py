"""Samplers and scorers of one kind, asked with legal sets and replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gamespiel.agents.models.names import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.choices import ChoiceSampler
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.drawing import WrittenAnswers
from gamespiel.agents.sampling.noise import Uniforms
from gamespiel.agents.sampling.texts import TextSampler
from gamespiel.agents.scoring.choices import ChoiceScorer, ChoiceScores
from gamespiel.agents.scoring.scorer import Scorer
from gamespiel.agents.scoring.texts import TextScorer, TextScores
from gamespiel.agents.tokens.answers import LegalAnswers
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.tokens.trie import ActionTrie

Tokens = tuple[int, ...]


@contextmanager
def as_reference(policy: LLMPolicy) -> Iterator[None]:
    """Makes a policy's engine the reference's within the context, without gradients."""
    with torch.no_grad(), policy.adapters.use(BASE):
        yield


class Chosen(NamedTuple):
    """Chosen actions, n of them: int64 (n,), float32 (n,) twice, and hidden states (n, hidden)."""

    actions: npt.NDArray[np.int64]
    log_probs: Tensor
    legal_mass: Tensor
    hidden: Tensor


@dataclass(frozen=True)
class ChoiceSums:
    """The scores of n choices, summed over their paths."""

    scores: ChoiceScores

    def sum(self, per_node: Tensor) -> Tensor:
        return torch.zeros(len(self.scores.hidden)).index_add(0, self.scores.owners, per_node)

    @property
    def log_probs(self) -> Tensor:
        return self.sum(self.scores.log_probs)

    @property
    def entropy(self) -> Tensor:
        return self.sum(self.scores.entropy)

    @property
    def nodes(self) -> Tensor:
        return self.scores.child_log_probs

    def kl_to(self, other: ChoiceSums | Tensor) -> Tensor:
        rows = other if isinstance(other, Tensor) else other.nodes
        return self.sum(self.scores.divergence(rows, "exact"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scores, name)


class Choices:
    """The distribution over legal actions of a policy, or of a codec and an engine."""

    def __init__(self, policy: LLMPolicy | None = None, codec: Any = None, engine: Any = None) -> None:
        self.codec = policy.codec if policy is not None else codec
        self.engine = policy.engine if policy is not None else engine
        self.answers = LegalAnswers(self.codec, 0)
        self.sampler, self.scorer = ChoiceSampler(self.engine), ChoiceScorer(self.engine)

    def tries(self, legal: Sequence[Tokens]) -> list[ActionTrie]:
        return [self.answers.trie_of_numbers(actions) for actions in legal]

    def sample(self, prompts: Sequence[Tokens], legal: Sequence[Tokens], uniforms: Uniforms) -> Chosen:
        tries = self.tries(legal)
        written = self.sampler.sample(prompts, tries, uniforms)
        actions = [trie.action_of(tokens) for trie, tokens in zip(tries, written.tokens, strict=True)]
        return Chosen(
            np.array(actions, dtype=np.int64),
            torch.tensor([float(own.sum()) for own in written.log_probs]),
            torch.tensor(written.legal_mass),
            written.hidden,
        )

    def distribution(self, prompts: Sequence[Tokens], legal: Sequence[Tokens]) -> list[Any]:
        return self.sampler.distribution(prompts, self.tries(legal))

    def evaluate(
        self,
        prompts: Sequence[Tokens],
        legal: Sequence[Tokens],
        actions: Sequence[int],
        *,
        mass: bool = False,
    ) -> ChoiceSums:
        rows = zip(prompts, self.tries(legal), actions, strict=True)
        decisions = [
            Decision.from_answer(prompt, trie, trie.answer_tokens(action)) for prompt, trie, action in rows
        ]
        return ChoiceSums(self.scorer.score(decisions, mass=mass))


class Reply(NamedTuple):
    """A reply that was written."""

    text: str
    tokens: Tokens
    cut: bool


class Replies(NamedTuple):
    """Replies, n of them, with log-probabilities of their tokens, and hidden states (n, hidden)."""

    replies: list[Reply]
    log_probs: list[npt.NDArray[np.float32]]
    hidden: Tensor


@dataclass(frozen=True)
class ReplySums:
    """The scores of n replies, token by token."""

    scores: TextScores

    @property
    def nodes(self) -> Tensor:
        return self.scores.states

    @property
    def predicting(self) -> Tensor:
        """Returns the hidden states that predict the tokens, (k, hidden)."""
        return self.scores.keep("exact")

    def kl_to(self, other: ReplySums | Tensor) -> Tensor:
        rows = other if isinstance(other, Tensor) else other.predicting
        return self.scores.divergence(rows, "exact")

    def kl_estimate(self, other: ReplySums | Tensor) -> Tensor:
        rows = other[:, None] if isinstance(other, Tensor) else other.scores.keep("k3")
        return self.scores.divergence(rows, "k3")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scores, name)


class Texts:
    """The distribution over replies of a codec and an engine."""

    def __init__(
        self, codec: ChatCodec, engine: Any, max_new_tokens: int = 256, temperature: float = 1.0
    ) -> None:
        self.codec, self.engine = codec, engine
        self.free = FreeText(codec.end_tokens(engine.end_tokens), max_new_tokens, temperature)
        self.sampler, self.scorer = TextSampler(engine), TextScorer(engine)

    def sample(self, prompts: Sequence[Tokens], uniforms: Uniforms) -> Replies:
        return self._replies(self.sampler.write(prompts, self.free, uniforms))

    def best(self, prompts: Sequence[Tokens]) -> Replies:
        return self._replies(self.sampler.write(prompts, self.free, None))

    def _replies(self, written: WrittenAnswers) -> Replies:
        replies = [
            Reply(self.free.read_answer(tokens, self.codec), tokens, self.free.is_cut(tokens))
            for tokens in written.tokens
        ]
        return Replies(replies, written.log_probs, written.hidden)

    def decisions(self, prompts: Sequence[Tokens], replies: Sequence[Tokens]) -> list[Decision]:
        rows = zip(prompts, replies, strict=True)
        return [
            Decision(prompt, self.free, tokens, np.zeros(len(tokens), dtype=np.float32))
            for prompt, tokens in rows
        ]

    def evaluate(self, prompts: Sequence[Tokens], replies: Sequence[Tokens]) -> ReplySums:
        return ReplySums(self.scorer.score(self.decisions(prompts, replies)))

    def split(self, prompts: Sequence[Tokens], replies: Sequence[Tokens], tokens: int) -> Any:
        scorer = Scorer(self.engine, None, None)  # type: ignore[arg-type]
        return scorer.split(self.decisions(prompts, replies), budget=tokens)
