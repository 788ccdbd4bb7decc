"""Programs that count their own lines, for the sandbox."""

from __future__ import annotations

import marshal

from trace_gym.counting import TICK, count_lines
from trace_gym.source import parse, too_deep_is_an_error

#: What a program made by :func:`limited` writes to its standard error where it is stopped.
LIMITED = "line limit"

# What it ends with is bound before the program runs, which may put something else in its place. The counted
# program has the main module to itself, as it would have without, so that what looks into that finds it.
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
exec(__import__("marshal").loads({code!r}))
"""


def limited(source: str, line_limit: int) -> str:
    """A program that does what ``source`` does, and stops itself where it executes more lines than these.

    Lines are those of :mod:`trace_gym.counting`. What a program makes into code while it runs (``exec``,
    ``import``) is not counted.

    For programs that nobody vouches for, in the sandbox: one can take its count away from itself, which fails
    or goes on uncounted, and cannot do more than without. Where it is stopped, its standard error ends in
    :data:`LIMITED` and its standard output may be incomplete. The text is for this release of Python.

    Raises:
        SyntaxError: the source is not Python.
        ProgramError: it is nested too deeply, or not text that Python can read.
    """
    tree = parse(source)
    with too_deep_is_an_error():
        count_lines(tree)
        code = compile(tree, "<program>", "exec", dont_inherit=True)
    return _HARNESS.format(tick=TICK, limit=line_limit, mark=LIMITED, code=marshal.dumps(code))
