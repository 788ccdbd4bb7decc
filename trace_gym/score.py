"""From a reply to its scores: three ways to compare a predicted output with the true one.

All three look at what a reply says, not at how it is wrapped: reasoning is cut out, and of a reply with a
code fence in it only what stands inside the first one counts.

- ``affine``: affinetes' own, 1 where both agree with all white space removed and in lower case, else 0. So
  "1 23" is "12 3", and nothing at all is right about an empty output.
- ``exact``: 1 where both have the same lines, else 0. Line endings do not count, nor white space at the end
  of a line, nor empty lines before the first and after the last one: a reply can hardly be had without them.
- ``lines``: the share of lines that are right from the first on, p / max(n, m): p is how many lines agree
  before one does not, n and m are how many lines the truth and the reply have. Where the truth has debug
  lines, the mean of that and the share of debug lines that are right, r / max(d, e): d and e are how many the
  truth and the reply have, and r counts the debug lines of the truth that stand in the reply too, a k-th line
  with some tag as the k-th with that tag. It is 1 where ``exact`` is, and only there.

An empty truth is not a question: ``exact`` and ``lines`` are 0 for it whatever the reply. Programs without
output are for admission to leave out; see :func:`is_scorable`.
"""

from __future__ import annotations

from collections import Counter

from task_gym.replies import cut_reasoning
from trace_gym.inject.prints import tag_in

#: The names of the scores.
SCORINGS = ("affine", "exact", "lines")

_FENCE = "```"


def clean(reply: str) -> str:
    """What affinetes takes a reply to say: reasoning cut out, out of its first code fence, stripped."""
    return _said(reply).strip()


def scores(truth: str, reply: str) -> dict[str, float]:
    """All the scores of a reply, each in [0, 1], by name.

    Args:
        truth: What the program wrote.
        reply: The reply as it came.
    """
    true, given = _lines(truth), _lines(_said(reply))
    return {
        "affine": float(squeeze(truth) == squeeze(clean(reply))),
        "exact": float(bool(true) and true == given),
        "lines": _lines_score(true, given),
    }


def is_scorable(truth: str) -> bool:
    """Whether a truth can be told from others: it is not empty, and as a reply it scores 1 in everything.

    One that holds a code fence or a reasoning tag does not, since cleaning takes it for a wrapping.
    """
    return all(score == 1.0 for score in scores(truth, truth).values())


def line_is_right(line: str, reply: str) -> bool:
    """Whether a reply is this line of an output; white space at its end does not count."""
    return clean_line(reply).rstrip() == line.strip("\r\n").rstrip()


def clean_line(reply: str) -> str:
    """What a reply for one line says: as :func:`clean`, but white space on the line itself stays."""
    return _said(reply).strip("\r\n")


def _said(reply: str) -> str:
    """Returns the same as :func:`clean`, with the white space at its ends: an output may begin with some."""
    reply = cut_reasoning(reply)
    # If the first fence has no line end or no closing fence after it, no later fence has one either.
    fence = reply.find(_FENCE)
    line_end = reply.find("\n", fence + len(_FENCE)) if fence >= 0 else -1
    closing = reply.find(_FENCE, line_end) if line_end >= 0 else -1
    return reply if closing < 0 else reply[line_end + 1 : closing]


def squeeze(text: str) -> str:
    """What ``affine`` compares: a text without white space, in lower case."""
    return "".join(text.split()).lower()


def _lines(text: str) -> list[str]:
    """The lines that ``exact`` compares."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((index for index, line in enumerate(lines) if line), 0)
    return lines[first:]


def _lines_score(true: list[str], given: list[str]) -> float:
    if not true:
        return 0.0
    pairs = zip(true, given, strict=False)
    agree = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(true), len(given)))
    prefix = agree / max(len(true), len(given))
    debug, said = _debug_lines(true), _debug_lines(given)
    if not debug:
        return prefix
    right = sum(said.get(key) == line for key, line in debug.items())
    return (prefix + right / max(len(debug), len(said))) / 2


def _debug_lines(lines: list[str]) -> dict[tuple[str, int], str]:
    """The lines with a debug tag in them, by the tag and how many lines with that tag came before."""
    seen: Counter[str] = Counter()
    found = {}
    for line in lines:
        tag = tag_in(line)
        if tag is not None:
            found[tag, seen[tag]] = line
            seen[tag] += 1
    return found
