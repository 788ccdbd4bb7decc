"""Helpers to compare programs with and without debug prints, and to remove the prints from the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from trace_gym.inject import inject, strip_debug
from trace_gym.inject.prints import is_debug_print
from trace_gym.sandbox import Sandbox
from trace_gym.syntax import parse

_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*print\('__DBG_\d+__', [^\r\n]*")


def without_prints(code: str) -> str:
    """Returns an injected text without the lines of its debug prints."""
    return _LINE.sub("", code)


def same_tree(injected: str, code: str) -> bool:
    """Returns whether two programs have the same syntax tree, without the debug prints of the first."""

    class Remove(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            return None if is_debug_print(node) else node

    return ast.dump(Remove().visit(parse(injected))) == ast.dump(parse(code))


def check_injections(
    programs: Iterable[tuple[str, str]], sandbox: Sandbox, seeds: Iterable[int] = (0, 1, 2), most: int = 6
) -> int:
    """Asserts that safe injection keeps (code, stdin) programs unchanged. Returns the number of prints.

    Without the prints the text is the same to the byte. The program ends as before, and its output without
    the prints' lines is the same.
    """
    prints = 0
    for code, stdin in programs:
        bare = sandbox.run(code, stdin)
        for seed in seeds:
            injected = inject(code, seed, most=most)
            assert without_prints(injected) == code
            assert same_tree(injected, code)
            prints += injected.count("__DBG_")
            if injected != code:
                printing = sandbox.run(injected, stdin)
                assert printing.status == bare.status, printing.stderr
                assert strip_debug(printing.stdout) == bare.stdout
                assert bool(printing.stderr) == bool(bare.stderr)
    return prints
