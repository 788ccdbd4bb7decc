"""The constraints of answers: which tokens may be written, and what they mean.

Choosing and writing are one thing: a choice is a reply whose tokens a trie limits. Only samplers, scorers and
the constraints themselves know which of the two a constraint is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gamespiel.agents.tokens import Tokens
from task_gym.replies import ReplyText

if TYPE_CHECKING:
    from gamespiel.agents.tokens.codec import ChatCodec


class Constraint(Protocol):
    """Limits the tokens of an answer. There are two: ``ActionTrie`` and ``FreeText``."""

    def unit_sizes(self, tokens: Tokens) -> Sequence[int]:
        """Returns the decided tokens of each ratio unit of an answer, in order."""

    def is_cut(self, tokens: Tokens) -> bool:
        """Returns whether a limit came before the end of an answer."""

    def answer_tokens(self, action: Any) -> Tokens:
        """Returns the tokens of a given answer: an action's number, or tokens themselves.

        Raises:
            ValueError: the constraint does not admit it.
        """

    def read_answer(self, tokens: Tokens, codec: ChatCodec) -> int | str:
        """Returns what an environment's step takes for an answer: an action's number, or a text."""

    def measures(self, tokens: Tokens, legal_mass: float | None, cut: bool) -> Mapping[str, float]:
        """Returns what metrics report of an answer, as numbers to be averaged over turns."""


@dataclass(frozen=True)
class FreeText:
    """Any tokens, up to one that ends a reply. Each is a decision and a ratio unit of its own.

    Attributes:
        ends: Tokens that end a reply; none of them is part of its text.
        max_new_tokens: The most tokens of a reply, its end included.
        temperature: Divides the logits, in what is sampled and in what is scored.
    """

    ends: frozenset[int]
    max_new_tokens: int
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens: {self.max_new_tokens} was given; allowed: at least 1")
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: {self.temperature} was given; allowed: finite and above 0")

    def unit_sizes(self, tokens: Tokens) -> Sequence[int]:
        return (1,) * len(tokens)

    def is_cut(self, tokens: Tokens) -> bool:
        return tokens[-1] not in self.ends

    def answer_tokens(self, action: Any) -> Tokens:
        return tuple(action)

    def read_answer(self, tokens: Tokens, codec: ChatCodec) -> ReplyText:
        return ReplyText(codec.decode_reply(tokens if self.is_cut(tokens) else tokens[:-1]), tokens)

    def measures(self, tokens: Tokens, legal_mass: float | None, cut: bool) -> Mapping[str, float]:
        return {"reply_tokens": len(tokens), "cut_share": float(cut)}
