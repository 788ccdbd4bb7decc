"""Helpers to run programs with and without debug prints, and to remove the prints from the text."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from trace_gym.inject import inject, unchanged
from trace_gym.inject.prints import is_debug_print
from trace_gym.syntax import parse

_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*print\('__DBG_\d+__', [^\r\n]*")


def run(code: str, folder: Path, stdin: str = "") -> tuple[int, str, str]:
    """Returns exit code, stdout and stderr of our own program in a fresh interpreter."""
    file = folder / "program.py"
    file.write_bytes(code.encode())
    # Not -E: the hash seed must be the same in every run.
    done = subprocess.run(
        [sys.executable, "-S", "-X", "utf8", "-W", "ignore", str(file)],
        input=stdin.encode(),
        capture_output=True,
        env={"PYTHONHASHSEED": "0"},
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


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
    programs: Iterable[tuple[str, str]], folder: Path, seeds: Iterable[int] = (0, 1, 2), most: int = 6
) -> int:
    """Asserts that safe injection keeps (code, stdin) programs unchanged. Returns the number of prints.

    Without the prints the text is the same to the byte. The program ends as before, and its output without
    the prints' lines is the same.
    """
    prints = 0
    for code, stdin in programs:
        exit_1, out, error = run(code, folder, stdin)
        for seed in seeds:
            injected = inject(code, seed, most=most)
            assert without_prints(injected) == code
            assert same_tree(injected, code)
            prints += injected.count("__DBG_")
            if injected != code:
                exit_2, out_2, error_2 = run(injected, folder, stdin)
                assert exit_2 == exit_1, error_2
                assert unchanged(out, out_2)
                assert bool(error) == bool(error_2)
    return prints
