"""How a language model's tokens become actions."""

from agents.decoding.choice import (
    AmbiguousNamesError,
    ChoiceDecoder,
    ChoiceEvaluation,
    ChoiceSample,
    Legal,
    NamedLegal,
)
from agents.decoding.codec import ChatCodec, TokenBoundaryError
from agents.decoding.trie import ActionTrie

__all__ = [
    "ActionTrie",
    "AmbiguousNamesError",
    "ChatCodec",
    "ChoiceDecoder",
    "ChoiceEvaluation",
    "ChoiceSample",
    "Legal",
    "NamedLegal",
    "TokenBoundaryError",
]
