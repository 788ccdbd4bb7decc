"""Names of columns that the board games share."""

from __future__ import annotations


def column_letter(column: int) -> str:
    """Returns a column's letter; 0 is "a", as in chess."""
    return chr(ord("a") + column)
