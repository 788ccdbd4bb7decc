"""How board games name their columns."""

from __future__ import annotations


def column_letter(column: int) -> str:
    """0 is "a", as in chess."""
    return chr(ord("a") + column)
