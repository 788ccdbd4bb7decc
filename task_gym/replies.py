"""Reading an action out of a text reply.

A parser takes the reply, the legal action ids and their names (same order), and returns a legal id, or
None where the reply names none. Parsers never raise and never return an illegal id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Parser = Callable[[str, Sequence[int], Sequence[str]], int | None]

_THINKING = re.compile(r"<think>.*?</think>|<thinking>.*?</thinking>", re.DOTALL)
_CLOSING = re.compile(r"</think>|</thinking>")
_DIGITS = re.compile(r"\d+")
_WORD_NUMBER = re.compile(r"\b\d+\b")
_SYMBOLS = re.compile(r"[\W_]+")

#: Longer runs of digits name no action, and Python refuses to convert the longest of them.
_LONGEST_ID = 18


def strip_reasoning(reply: str) -> str:
    """Remove ``<think>`` and ``<thinking>`` blocks; after a lone closing tag keep what follows it."""
    return cut_reasoning(reply).strip()


def cut_reasoning(reply: str) -> str:
    """:func:`strip_reasoning` that leaves the white space around the rest: a text in which it counts."""
    return _CLOSING.split(_THINKING.sub("", reply))[-1]


def first_number(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Upstream's reset/step rule: the first run of digits in the reply is the action, if legal."""
    match = _DIGITS.search(reply)
    return None if match is None else _legal_id(match.group(), legal)


def whole_reply(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Upstream's evaluate rule.

    Reasoning stripped; a reply that is one number is that action, legal or not; else the first action, in
    legal order, whose id stands in the reply as a whole word; else the first whose name stands in it with
    case ignored, or does so with everything but letters and digits removed. Of a name of symbols alone
    nothing is left then, which stands in every reply: such an action is taken for any reply that names none
    before it. No game of the table has such names.
    """
    reply = strip_reasoning(reply)
    if _DIGITS.fullmatch(reply):
        return _legal_id(reply, legal)
    written = set(_WORD_NUMBER.findall(reply))
    for action in legal:
        if str(action) in written:
            return action
    lowered = reply.lower()
    squeezed = _SYMBOLS.sub("", lowered)
    for action, name in zip(legal, names, strict=True):
        if name.lower() in lowered or _SYMBOLS.sub("", name.lower()) in squeezed:
            return action
    return None


def last_named(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Reasoning stripped; the last legal id that stands as a whole word, else the legal name that ends last.

    Where two names end at the same place ("Raise" and "Big Raise"), the longer is meant.
    """
    reply = strip_reasoning(reply)
    for number in reversed(_WORD_NUMBER.findall(reply)):
        action = _legal_id(number, legal)
        if action is not None:
            return action
    lowered = reply.lower()
    best: tuple[int, int] = (0, 0)
    chosen = None
    for action, name in zip(legal, names, strict=True):
        start = lowered.rfind(name.lower()) if name else -1
        if start >= 0 and (start + len(name), len(name)) > best:
            best, chosen = (start + len(name), len(name)), action
    return chosen


def _legal_id(digits: str, legal: Sequence[int]) -> int | None:
    if len(digits) > _LONGEST_ID:
        digits = digits.lstrip("0") or "0"
        if len(digits) > _LONGEST_ID:
            return None
    action = int(digits)
    return action if action in legal else None
