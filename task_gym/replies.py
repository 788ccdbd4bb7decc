"""Parsers that read an action out of a text reply.

A parser takes the reply, the legal action ids and their names (same order). It returns a legal id, or None
if the reply names none. Parsers never raise and never return an illegal id. Their time is linear in the
length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

Parser = Callable[[str, Sequence[int], Sequence[str]], int | None]

_TAG = re.compile(r"</?think(?:ing)?>")

_CLOSING = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""The closing tag of each opening tag."""

_DIGITS = re.compile(r"\d+")
_WORD_NUMBER = re.compile(r"\b\d+\b")
_SYMBOLS = re.compile(r"[\W_]+")

_LONGEST_ID = 18
"""Longer runs of digits name no action, and Python refuses to convert the longest of them."""


@dataclass(frozen=True, slots=True)
class NoAction:
    """A reply that names no legal action; it is given to a step in place of an action.

    Attributes:
        beginning: The first characters of the reply, for the message.
    """

    beginning: str


def strip_reasoning(reply: str) -> str:
    """Returns the reply without reasoning and without white space at its ends.

    ``<think>`` and ``<thinking>`` blocks are removed. If a closing tag is left, only the text after the last
    one counts.
    """
    return cut_reasoning(reply).strip()


def cut_reasoning(reply: str) -> str:
    """Returns the same as :func:`strip_reasoning`, with the white space at its ends."""
    rest = _without_blocks(reply)
    ends = [rest.rfind(tag) + len(tag) for tag in _CLOSING.values() if tag in rest]
    return rest[max(ends, default=0) :]


def _without_blocks(reply: str) -> str:
    """Returns the reply without its reasoning blocks, scanned from left to right.

    A block begins at an opening tag and ends at the next closing tag of the same name. An opening tag without
    such a closing tag stays, and the scan goes on after it. This is ``re.sub`` with upstream's expression
    ``<think>.*?</think>|<thinking>.*?</thinking>``, which takes quadratic time: from each opening tag that is
    never closed, it reads to the end of the reply.
    """
    last = {opening: reply.rfind(closing) for opening, closing in _CLOSING.items()}
    kept, start, awaited = [], 0, ""
    for match in _TAG.finditer(reply):
        tag = match.group()
        if not awaited and match.start() < last.get(tag, -1):
            kept.append(reply[start : match.start()])
            awaited = _CLOSING[tag]
        elif tag == awaited:
            start, awaited = match.end(), ""
    kept.append(reply[start:])
    return "".join(kept)


def first_number(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Upstream's reset/step rule: the first run of digits in the reply is the action, if legal.

    The run may be part of a name or of the reasoning: "my move is x(1,1)" is action 1.
    """
    match = _DIGITS.search(reply)
    return None if match is None else _legal_id(match.group(), legal)


def whole_reply(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Upstream's evaluate rule.

    Reasoning is stripped first. If the rest is one number, that number is the action, legal or not. Otherwise
    it is the first action, in legal order, whose id is in the reply as a whole word. If there is none, it is
    the first action whose name is in the reply. Names match with case ignored, and also with everything but
    letters and digits removed.

    A name of symbols alone becomes empty then, and is in every reply. Its action is chosen if no action
    before it is named. No game of the table has such names.
    """
    reply = strip_reasoning(reply)
    if _DIGITS.fullmatch(reply):
        return _legal_id(reply, legal)
    written = set(_WORD_NUMBER.findall(reply))
    for action in legal:
        if str(action) in written:
            return action
    # A name that is in the reply is also in it without symbols, so the second search alone is enough.
    squeezed = _SYMBOLS.sub("", reply.lower())
    for action, name in zip(legal, names, strict=True):
        if _SYMBOLS.sub("", name.lower()) in squeezed:
            return action
    return None


def last_named(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Returns the last legal id that is a whole word of the reply, else the action whose name ends last.

    Reasoning is stripped first. If two names end at the same place ("Raise" and "Big Raise"), the longer one
    is chosen.
    """
    reply = strip_reasoning(reply)
    # A long reply names many numbers: each is looked up in a set, not searched for in a list.
    ids = frozenset(legal)
    for number in reversed(_WORD_NUMBER.findall(reply)):
        action = _legal_id(number, ids)
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


def _legal_id(digits: str, legal: Container[int]) -> int | None:
    if len(digits) > _LONGEST_ID:
        digits = digits.lstrip("0") or "0"
        if len(digits) > _LONGEST_ID:
            return None
    action = int(digits)
    return action if action in legal else None
