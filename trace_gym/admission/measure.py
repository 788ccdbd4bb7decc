"""Measured runs, in this process, of programs from the builtin generator."""

from __future__ import annotations

import ast
import builtins
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trace_gym.admission.counting import TICK, count_lines, opening, statement_at

_PUSH, _POP = "__push__", "__pop__"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

OUTPUT_LIMIT = "output limit"
"""The beginning of the error of a program that printed too much."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a run.

    Attributes:
        stdout: The output, up to an error.
        lines: Executed lines, as ``trace_gym.admission.counting`` counts them.
        output_lines: Lines of ``stdout``.
        live: The most variables in scope at once: those of the module, of every function being called and of
            every generator that has begun and not ended.
        depth: The most function calls inside each other, without lambdas and generators; 0 without calls.
        error: The exception that ended the program, as "ValueError: message"; None if there was none.
    """

    stdout: str
    lines: int
    output_lines: int
    live: int
    depth: int
    error: str | None


def execute(code: str, stdin: str = "", *, line_limit: int = 1_000_000, output_limit: int = 4096) -> Measured:
    """Runs a program in this process and measures it.

    This is only for harmless programs, such as the builtin generator's: only the process's standard streams
    are kept from the program. The program gets its own ``print`` and ``input``. The run changes nothing in
    the process, and threads may run programs at the same time.

    Args:
        code: The program's text.
        stdin: Its standard input.
        line_limit: Executed lines, at most. The next line stops the program with an error.
        output_limit: Bytes of output (UTF-8), at most. The print beyond the limit stops the program, and is
            not kept.
    """
    run = _Run(stdin, line_limit, output_limit)
    error = None
    try:
        compiled = compile(_insert_counters(ast.parse(code)), "<program>", "exec", dont_inherit=True)
        exec(compiled, run.namespace())
    except _StopError as stop:
        error = str(stop)
    except (Exception, SystemExit) as raised:
        error = f"{type(raised).__name__}: {raised}"
    stdout = "".join(run.written)
    output_lines = stdout.count("\n") + (not stdout.endswith("\n") and stdout != "")
    return Measured(stdout, run.lines, output_lines, run.most_live, run.most_deep, error)


class _StopError(BaseException):
    """The error of a reached limit. No ``except Exception`` of the program catches it."""


class _Run:
    """The counters, output and input of one run."""

    def __init__(self, stdin: str, line_limit: int, output_limit: int) -> None:
        self.written: list[str] = []
        self.lines = 0
        self.most_live = self.most_deep = 0
        self._live = self._deep = 0
        self._line_limit = line_limit
        self._bytes_left = self._output_limit = output_limit
        self._stdin = io.StringIO(stdin)

    def namespace(self) -> dict[str, Any]:
        """Returns the program's globals."""
        replacements = {"print": self._print, "input": self._input}
        return {
            "__name__": "__main__",
            "__builtins__": {**vars(builtins), **replacements},
            TICK: self._tick,
            _PUSH: self._push,
            _POP: self._pop,
        }

    def write(self, text: str) -> None:
        self._bytes_left -= len(text.encode("utf-8", "surrogatepass"))
        if self._bytes_left < 0:
            raise _StopError(f"{OUTPUT_LIMIT}: more than {self._output_limit} bytes were printed")
        self.written.append(text)

    def flush(self) -> None:
        """Does nothing; ``print(flush=True)`` calls it."""

    def _tick(self) -> None:
        self.lines += 1
        if self.lines > self._line_limit:
            raise _StopError(f"line limit: more than {self._line_limit} lines were executed")

    def _push(self, variables: int, calls: int) -> None:
        self._live += variables
        self._deep += calls
        self.most_live = max(self.most_live, self._live)
        self.most_deep = max(self.most_deep, self._deep)

    def _pop(self, variables: int, calls: int) -> None:
        self._live -= variables
        self._deep -= calls

    def _print(self, *values: object, sep: str | None = " ", end: str | None = "\n", **rest: Any) -> None:
        print(*values, sep=sep, end=end, **{"file": self, **rest})

    def _input(self, prompt: object = "") -> str:
        self.write(str(prompt))
        line = self._stdin.readline()
        if not line:
            raise EOFError("EOF when reading a line")
        return line.removesuffix("\n")


def _insert_counters(tree: ast.Module) -> ast.Module:
    """Returns the program with calls that count its lines, variables and function calls."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    scopes = [(node, _variables(node.body, node.args)) for node in functions]
    variables = _variables(tree.body)
    count_lines(tree)
    for node, bound in scopes:
        generator = any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in _nodes_of_scope(node.body))
        push, pop = (statement_at(node, name, bound, 0 if generator else 1) for name in (_PUSH, _POP))
        first = opening(node.body)
        tried = ast.Try([push, *node.body[first:]], [], [], [pop])
        node.body[first:] = [ast.copy_location(tried, node)]
    if tree.body:
        tree.body.insert(opening(tree.body), statement_at(tree.body[0], _PUSH, variables, 0))
    return tree


def _nodes_of_scope(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields every node of a body that is not inside another scope."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            waiting.extend(ast.iter_child_nodes(node))


def _variables(body: list[ast.stmt], arguments: ast.arguments | None = None) -> int:
    """Returns how many names a scope binds, without functions, classes and global or nonlocal names."""
    bound: set[str] = set()
    borrowed: set[str] = set()
    if arguments is not None:
        bound |= {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}
    for node in _nodes_of_scope(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            borrowed |= set(node.names)
    return len(bound - borrowed)
