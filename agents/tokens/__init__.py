"""The type of token sequences."""

Tokens = tuple[int, ...]
