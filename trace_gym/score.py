"""Scores of a reply: three comparisons of a predicted output with the true output.

All three ignore the wrapping of a reply. Reasoning is cut out. If the reply has a code fence, only the text
inside the first fence counts.

- ``affine``: affinetes' score. It is 1 if both agree in lower case with all white space removed, else 0. So
  "1 23" equals "12 3". A fence may be on one line. Only letters are taken for the name of its language, so
  "```python3" leaves a "3".
- ``exact``: 1 if both have the same lines, else 0. Line endings, white space at the end of a line, and empty
  lines before the first and after the last line do not count: models can hardly avoid them.
- ``lines``: p / max(n, m), the share of lines that are right from the first on. p lines agree before the
  first difference; the truth has n lines and the reply m. If the truth has debug lines, the score is the mean
  of this share and of r / max(d, e), the share of right debug lines. The truth has d debug lines and the
  reply e. r counts the truth's debug lines that are also in the reply: the k-th line with a tag must equal
  the reply's k-th line with that tag. ``lines`` is 1 exactly when ``exact`` is 1.

If the truth is empty, ``exact`` and ``lines`` are 0 for every reply. Admission leaves out programs without
output; see ``is_scorable``.
"""

from __future__ import annotations

import re
from collections import Counter

from task_gym.replies import cut_reasoning
from trace_gym.inject.prints import tag_in

SCORINGS = ("affine", "exact", "lines")
"""The names of the scores."""

_FENCE = "```"

_LANGUAGE = re.compile(r"[a-zA-Z]*")


def clean(reply: str) -> str:
    """Returns the answer in a reply, as affinetes does: without reasoning and code fence, stripped.

    Of the first fence it takes what is between its language, letters only, and the next fence, as upstream's
    regular expression does; here in linear time.
    """
    reply = cut_reasoning(reply).strip()
    fence = reply.find(_FENCE)
    if fence < 0:
        return reply
    match = _LANGUAGE.match(reply, fence + len(_FENCE))
    assert match is not None  # it may be empty
    # If no fence closes this one, none closes a later one either.
    closing = reply.find(_FENCE, match.end())
    return reply if closing < 0 else reply[match.end() : closing].strip()


def scores(truth: str, reply: str) -> dict[str, float]:
    """Returns all scores of a reply, each in [0, 1], by name.

    Args:
        truth: The program's output.
        reply: The unchanged reply.
    """
    true, answer = _lines(truth), _lines(_said(reply))
    return {
        "affine": float(squeeze(truth) == squeeze(clean(reply))),
        "exact": float(bool(true) and true == answer),
        "lines": _lines_score(true, answer),
    }


def is_scorable(truth: str) -> bool:
    """Returns whether a truth, given as a reply, gets 1 in every score. An empty truth does not.

    Nor does a truth with a code fence or a reasoning tag: cleaning takes these for the reply's wrapping.
    """
    return all(score == 1.0 for score in scores(truth, truth).values())


def line_is_right(line: str, reply: str) -> bool:
    """Returns whether a reply is this line of an output. White space at its end does not count."""
    return clean_line(reply).rstrip() == line.strip("\r\n").rstrip()


def clean_line(reply: str) -> str:
    """Returns the answer in a reply for one line, as ``clean`` does, with the line's white space."""
    return _said(reply).strip("\r\n")


def _said(reply: str) -> str:
    """Returns the answer in a reply, not stripped: an output may begin with white space.

    Unlike in ``clean``, the whole first line of a fence is dropped, so "```c++" names a language too.
    """
    reply = cut_reasoning(reply)
    # If the first fence has no line end or no closing fence after it, no later fence has one either.
    fence = reply.find(_FENCE)
    line_end = reply.find("\n", fence + len(_FENCE)) if fence >= 0 else -1
    closing = reply.find(_FENCE, line_end) if line_end >= 0 else -1
    return reply if closing < 0 else reply[line_end + 1 : closing]


def squeeze(text: str) -> str:
    """Returns a text without white space, in lower case: ``affine`` compares these."""
    return "".join(text.split()).lower()


def _lines(text: str) -> list[str]:
    """Returns the lines that ``exact`` compares."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((index for index, line in enumerate(lines) if line), 0)
    return lines[first:]


def _lines_score(true: list[str], answer: list[str]) -> float:
    if not true:
        return 0.0
    pairs = zip(true, answer, strict=False)
    agree = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(true), len(answer)))
    prefix = agree / max(len(true), len(answer))
    debug, said = _debug_lines(true), _debug_lines(answer)
    if not debug:
        return prefix
    right = sum(said.get(key) == line for key, line in debug.items())
    return (prefix + right / max(len(debug), len(said))) / 2


def _debug_lines(lines: list[str]) -> dict[tuple[str, int], str]:
    """Returns the lines with a debug tag, by tag and number of earlier lines with that tag."""
    seen: Counter[str] = Counter()
    debug_lines = {}
    for line in lines:
        tag = tag_in(line)
        if tag is not None:
            debug_lines[tag, seen[tag]] = line
            seen[tag] += 1
    return debug_lines
