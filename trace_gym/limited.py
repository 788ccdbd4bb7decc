"""Programs that count their own lines, for the sandbox."""

from __future__ import annotations

import ast

from trace_gym.measure import _POP, _PUSH, _TICK, _counted

#: What a program made by :func:`limited` writes to its standard error where it is stopped.
LIMITED = "line limit"

_LIMITER = """\
def _run():
    import os
    left = {limit}
    def tick():
        nonlocal left
        left -= 1
        if left < 0:
            os.write(2, b"{mark}")
            os._exit(1)
    def nothing(*arguments):
        pass
    own = {{"__name__": "__main__", "{tick}": tick, "{push}": nothing, "{pop}": nothing}}
    exec(compile({text!r}, "<program>", "exec", dont_inherit=True), own)
_run()
"""


def limited(source: str, line_limit: int) -> str:
    """A program that does what ``source`` does, and stops itself where it executes more lines than these.

    Lines are counted as by :func:`execute`. For programs that nobody vouches for: it is run in the sandbox,
    where it can hide from the count as little as it gains by that. Where it is stopped, its standard error is
    :data:`LIMITED` and its standard output may be incomplete.

    Raises:
        SyntaxError, ValueError, RecursionError: the source does not parse.
    """
    text = ast.unparse(_counted(ast.parse(source)))
    return _LIMITER.format(limit=line_limit, mark=LIMITED, tick=_TICK, push=_PUSH, pop=_POP, text=text)
