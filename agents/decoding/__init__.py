"""The decoders, which turn a language model's tokens into actions."""

from gamespiel.agents.decoding.choice import (
    AmbiguousNamesError,
    ChoiceDecoder,
    ChoiceEvaluation,
    ChoiceSample,
    Legal,
    NamedLegal,
)
from gamespiel.agents.decoding.text import TextDecoder, TextEvaluation, TextSample
from gamespiel.agents.tokens.codec import (
    ChatCodec,
    ChatTemplateError,
    PromptLengthError,
    TokenBoundaryError,
)
from gamespiel.agents.tokens.trie import ActionTrie

__all__ = [
    "ActionTrie",
    "AmbiguousNamesError",
    "ChatCodec",
    "ChatTemplateError",
    "ChoiceDecoder",
    "ChoiceEvaluation",
    "ChoiceSample",
    "Legal",
    "NamedLegal",
    "PromptLengthError",
    "TextDecoder",
    "TextEvaluation",
    "TextSample",
    "TokenBoundaryError",
]
