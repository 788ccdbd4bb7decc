"""Parsers that read an action out of a text reply.

A parser takes the reply, the legal action ids and their names (same order). It returns a legal id, or None
if the reply names none. Parsers never raise and never return an illegal id. Their time is linear in the
length of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Self

Parser = Callable[[str, Sequence[int], Sequence[str]], int | None]

_TAGS = (re.compile(r"</?think>"), re.compile(r"</?thinking>"))
"""The tags of reasoning by name, in the order in which upstream removes them."""

_ANY_CASE = tuple(re.compile(tag.pattern, re.IGNORECASE) for tag in _TAGS)
_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSING = ("</think>", "</thinking>")
_SPACE = re.compile(r"\s+")

_DIGITS = re.compile(r"\d+")
_WORD_NUMBER = re.compile(r"\b\d+\b")
_SYMBOLS = re.compile(r"[^a-z0-9]+")


class ReplyText(str):
    """A reply that carries the tokens in which a policy wrote it, so that nobody need tokenise it again.

    It is equal to the same text without tokens, and pickles and copies with them.

    Args:
        text: The reply.
        tokens: The tokens, the one that ended it included. They may spell more than the text: reasoning, or
            white space at its ends.
    """

    tokens: tuple[int, ...]

    def __new__(cls, text: str, tokens: Sequence[int] = ()) -> Self:
        self = super().__new__(cls, text)
        self.tokens = tuple(tokens)
        return self


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
    """Returns the same as ``strip_reasoning``, with the white space at its ends."""
    for tag in _TAGS:
        reply = _without_blocks(reply, tag)
    return _after_closing(reply)


def visible(reply: str) -> str:
    """Returns a reply as upstream's ``evaluate`` keeps it in the conversation, and parses it.

    ``<think>`` blocks are removed, then ``<thinking>`` blocks, in capitals or not. If a closing tag is left,
    only the text after the last one counts; one in capitals is text. Reasoning that was never closed is cut
    off: its reply was cut before the answer. Three or more line ends in a row become two.
    """
    for tag in _ANY_CASE:
        reply = _without_blocks(reply, tag)
    text = _after_closing(reply)
    opening = _OPENING.search(text)
    text = text if opening is None else text[: opening.start()]
    return _SPACE.sub(_fewer_lines, text).strip()


def _without_blocks(reply: str, tag: re.Pattern[str]) -> str:
    """Returns the reply without the blocks of one tag, scanned from left to right.

    A block begins at an opening tag and ends at the next closing tag. An opening tag without a closing tag
    stays. This is ``re.sub`` with upstream's expression ``<think>.*?</think>``, which takes quadratic time:
    from each opening tag that is never closed, it reads to the end of the reply.
    """
    tags = list(tag.finditer(reply))
    last = max((match.start() for match in tags if _closes(match)), default=-1)
    pieces, start, inside = [], 0, False
    for match in tags:
        if inside and _closes(match):
            start, inside = match.end(), False
        elif not inside and not _closes(match) and match.start() < last:
            pieces.append(reply[start : match.start()])
            inside = True
    pieces.append(reply[start:])
    return "".join(pieces)


def _closes(tag: re.Match[str]) -> bool:
    return tag.group().startswith("</")


def _after_closing(reply: str) -> str:
    ends = [reply.rfind(tag) + len(tag) for tag in _CLOSING if tag in reply]
    return reply[max(ends, default=0) :]


def _fewer_lines(match: re.Match[str]) -> str:
    run = match.group()
    if run.count("\n") < 3:
        return run
    return f"{run[: run.index(chr(10))]}\n\n{run[run.rindex(chr(10)) + 1 :]}"


def first_number(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Returns the action by upstream's reset/step rule: the first run of digits in the reply, if legal.

    The run may be part of a name or of the reasoning: "my move is x(1,1)" is action 1.
    """
    match = _DIGITS.search(reply)
    return None if match is None else _legal_id(match.group(), legal)


def whole_reply(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Returns the action by upstream's evaluate rule, from the part of the reply that is ``visible``.

    If it is one number, that number is the action, legal or not. Otherwise it is the first action, in legal
    order, whose id is in the reply as a whole word. If there is none, it is the first action whose name is in
    the reply. Names match with case ignored, and also with everything but letters and digits removed. If
    names are the same then, as chess has them ("bxc3" and "Bxc3"), the last one's action is chosen.
    """
    reply = visible(reply)
    if _DIGITS.fullmatch(reply):
        return _legal_id(reply, legal)
    written = set(_WORD_NUMBER.findall(reply))
    for action in legal:
        if str(action) in written:
            return action
    named: dict[str, int] = {}
    for action, name in zip(legal, names, strict=True):
        named[name.lower()] = action
        if squeezed := _SYMBOLS.sub("", name.lower()):
            named[squeezed] = action
    lowered = reply.lower()
    short = _SYMBOLS.sub("", lowered)
    for name, action in named.items():
        # A name that is in the reply is also in it without symbols, unless it has nothing else.
        squeezed = _SYMBOLS.sub("", name)
        if squeezed in short if squeezed else name in lowered:
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


def read_name(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Returns the action that a reply names, where ids were never shown and so mean nothing.

    Reasoning is stripped first. A reply that is a name is that action. So is one that differs from a single
    name in case, spaces and symbols alone: chess's "Qh5" for "Qh5+". In a longer reply the name counts that
    ends last and stands alone: "e4" is not in "Nxe4". If two end at the same place the longer one is chosen.
    Case is ignored only if no name is there with its own. Of actions with the same name the first is meant.
    """
    reply = strip_reasoning(reply)
    known: dict[str, int] = {}
    for action, name in zip(legal, names, strict=True):
        known.setdefault(name, action)
    if reply in known:
        return known[reply]
    squeezed = _SYMBOLS.sub("", reply.lower())
    alike = [action for name, action in known.items() if _SYMBOLS.sub("", name.lower()) == squeezed]
    if squeezed and len(alike) == 1:
        return alike[0]
    actions = _last_alone(reply, list(known.items()))
    if not actions:
        actions = _last_alone(reply.lower(), [(name.lower(), action) for name, action in known.items()])
    return actions[0] if len(actions) == 1 else None


def _last_alone(reply: str, known: Sequence[tuple[str, int]]) -> list[int]:
    """Returns the actions of the longest name that ends last in a reply, and is no part of a word there."""
    best, chosen = (0, 0), list[int]()
    for name, action in known:
        end = _end_alone(reply, name)
        if end and (end, len(name)) >= best:
            chosen = [*(chosen if (end, len(name)) == best else ()), action]
            best = end, len(name)
    return chosen


def _end_alone(reply: str, name: str) -> int:
    """Returns where a name ends that stands alone in a reply, the last time; 0 if it does not."""
    start = reply.rfind(name) if name else -1
    while start >= 0:
        end = start + len(name)
        before, after = reply[start - 1 : start], reply[end : end + 1]
        if not (before.isalnum() and name[0].isalnum()) and not (after.isalnum() and name[-1].isalnum()):
            return end
        start = reply.rfind(name, 0, end - 1)
    return 0


def _legal_id(digits: str, legal: Container[int]) -> int | None:
    try:
        action = int(digits)  # of any script
    except ValueError:  # Python refuses thousands of digits
        return None
    return action if action in legal else None
