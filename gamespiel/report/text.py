"""Text functions for a terminal: durations, the end of a long text, control characters made visible."""

import json
import math
import sys
from typing import Any

from task_gym.visible import show_controls


def format_duration(seconds: float | None) -> str:
    """Returns ``4:05``, ``1:02:03``, or ``-`` if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def keep_last_lines(text: str, lines: int) -> str:
    """Returns at most ``lines`` last lines of ``text``, the first of them ``…`` if it has more lines."""
    rows = make_harmless(text).strip("\n").split("\n")
    return "\n".join(rows if len(rows) <= lines else ["…", *rows[-(lines - 1) :]])


def make_harmless(text: str) -> str:
    """Returns ``text`` with control characters as escapes, and without tabs; a model may have written it."""
    return show_controls(text).expandtabs(4)


def print_json(data: Any) -> None:
    """Prints plain data as JSON, with escapes if the standard output cannot show every character."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(json.dumps(data, indent=2, ensure_ascii=not encoding.lower().startswith("utf")))
