"""Texts that strangers wrote, as a person may see them: a terminal obeys control characters."""

from __future__ import annotations

import unicodedata

INVISIBLE = frozenset(["Cc", "Cf", "Cs", "Zl", "Zp"])
"""Categories of characters that are escaped: controls, formats (as the reversal of a line), surrogates, and
line ends that terminals and editors do not agree about."""


def show_controls(text: str) -> str:
    r"""Returns a text with its control characters as escapes; line ends and tabs stay.

    >>> show_controls("a\x1b[2J\r\n")
    'a\\x1b[2J\\r\n'
    """
    if text.isprintable():
        return text
    return "".join(map(_show, text))


def _show(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in INVISIBLE:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
