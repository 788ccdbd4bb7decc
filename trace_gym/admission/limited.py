"""Programs that count their own lines, for the sandbox."""

from __future__ import annotations

import marshal

from trace_gym.admission.counting import TICK, count_lines
from trace_gym.syntax import parse, too_deep_is_an_error

LIMITED = "line limit"
"""The end of the standard error of a program from ``limited`` that was stopped."""

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
