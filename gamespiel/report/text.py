"""Text for a terminal: durations, the end of a long text, and text without control characters."""

import math
import re

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)", re.DOTALL)


def duration(seconds: float | None) -> str:
    """`4:05`, `1:02:03`, or `-` when unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shorten(text: str, lines: int) -> str:
    """At most `lines` lines of `text`, its last ones (how a game ended), with `…` where some are left out."""
    rows = clean(text).strip("\n").split("\n")
    return "\n".join(rows if len(rows) <= lines else ["…", *rows[-(lines - 1) :]])


def clean(text: str) -> str:
    """`text` without what could move the cursor or change colours; a model may have written it."""
    plain = _ESCAPE.sub("", text).expandtabs(4)
    return "".join(c if c == "\n" or c.isprintable() else " " for c in plain)
