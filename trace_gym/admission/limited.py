"""Programs that count their own lines, for the sandbox, and that guards watch."""

from __future__ import annotations

import marshal
from typing import Any

from task_gym.errors import LONGEST
from task_gym.visible import show_controls
from trace_gym.admission import allowlist
from trace_gym.admission.counting import TICK, count_lines
from trace_gym.admission.inside.guards import MARK
from trace_gym.admission.reading import compares_ids
from trace_gym.admission.worlds import load_inside
from trace_gym.syntax import parse, too_deep_is_an_error

LIMITED = "line limit"
"""The end of the standard error of a program from ``limited`` that was stopped."""

MOST_SLEEP = 1.0
"""Seconds that a guarded program may sleep in all."""

# write and _exit are bound before the program runs, because the program may replace them. The counted program
# has the main module to itself, so code that inspects this module finds the program.
_HARNESS = """\
def {tick}():
    import os
    left, write, leave = {limit}, os.write, os._exit
    def tick():
        nonlocal left
        left -= 1
        if left < 0:
            write(2, b"{mark}")
            leave(1)
    return tick
{tick} = {tick}()
exec(__import__("marshal").loads({compiled!r}))
"""

_GUARDS = """\
def {tick}():
    scope = {{"__name__": "guards"}}
    exec(__import__("marshal").loads({guards!r}), scope)
    scope["Guards"](globals(), **{settings!r}).install({random!r}, {ids!r})
{tick}()
"""


def limited(code: str, line_limit: int) -> str:
    """Returns a program that does what ``code`` does, but stops after ``line_limit`` lines.

    ``trace_gym.admission.counting`` defines the lines. Code that a program makes while it runs (``exec``,
    ``import``) is not counted.

    The result is for untrusted programs in the sandbox. A program can remove its own counter, but gains
    nothing: it then fails or runs uncounted. When a program is stopped, its standard error ends in
    ``LIMITED`` and its standard output may be incomplete. The result runs only on this release of Python.

    Raises:
        SyntaxError: the program is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read it.
    """
    tree = parse(code)
    with too_deep_is_an_error():
        count_lines(tree)
        compiled = compile(tree, "<program>", "exec", dont_inherit=True)
    return _HARNESS.format(tick=TICK, limit=line_limit, mark=LIMITED, compiled=marshal.dumps(compiled))


def guarded(code: str, line_limit: int) -> str:
    """Returns a program as ``limited`` does, which also stops where a guard ends it.

    The guards (``trace_gym.admission.inside.guards``) are for a program that ``reading.refuse`` lets pass:
    ``refusal_of`` finds why one has stopped the program.

    Raises:
        SyntaxError: the program is not Python.
        ProgramError: the program is nested too deeply, or Python cannot read it.
    """
    return _GUARDS.format(
        tick=TICK,
        guards=load_inside("guards"),
        settings=_settings(),
        random="random" in code or "statistics" in code,
        ids=not compares_ids(parse(code)),
    ) + limited(code, line_limit)


def refusal_of(stderr: str) -> str:
    """Returns why a guard has stopped a program, from its standard error; "" if none has."""
    return show_controls(stderr.rpartition(MARK)[2][:LONGEST]) if MARK in stderr else ""


def _settings() -> dict[str, Any]:
    return {
        "members": set(allowlist.SPECIAL_MEMBERS),
        "frames": set(allowlist.FRAME_MEMBERS),
        "refused": set(allowlist.BUILTINS),
        "passed_on": set(allowlist.PASSED_ON),
        "clocks": dict(allowlist.MEMBERS_BY_MODULE["datetime"]),
        "sleep": MOST_SLEEP,
    }
