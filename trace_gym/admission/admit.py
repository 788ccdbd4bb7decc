"""Admission: the check that a sound question can be asked about a program.

A program is admitted if all of this is true:

- Runs under two different hash seeds print the same, write nothing to standard error and exit with code 0.
- The output is not empty, has at most ``MOST_OUTPUT`` bytes, and scores 1 if it is the reply.
- The program executes at most ``MOST_LINES`` lines.

Admission does not depend on the speed of a machine. Time only ends a run that would not end by itself, such
as one that sleeps or loops for ever inside one line.
"""

from __future__ import annotations

from dataclasses import dataclass

from task_gym.errors import ProgramError
from trace_gym.admission.limited import LIMITED, limited
from trace_gym.admission.measure import OUTPUT_LIMIT, execute
from trace_gym.sandbox import Job, Limits, Result, Sandbox
from trace_gym.score import is_scorable

MOST_OUTPUT = 4096
"""Bytes that a program may print, at most."""

TOO_LONG = f"it writes more than {MOST_OUTPUT} bytes"
"""``Verdict.reason`` of a program that prints more than that."""

MOST_LINES = 1_000_000
"""Lines that a program may execute, as ``trace_gym.admission.counting`` counts them."""

HASH_SEEDS = (0, 1)
"""Two hash seeds under which sets of strings have different orders."""

IN_PROCESS = "in-process"
"""``Verdict.sandbox`` of a program that ran in this process."""

# Wall time is generous: it only ends programs that do not end by themselves.
LIMITS = Limits(cpu_seconds=20, wall_seconds=60.0, output=2 * MOST_OUTPUT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a program's admission.

    Attributes:
        truth: The program's output; "" if the program is not admitted.
        reason: Why the program is not admitted; "" if it is.
        sandbox: The protection in force, one of ``trace_gym.sandbox.LEVELS`` or ``IN_PROCESS``.
    """

    truth: str
    reason: str
    sandbox: str


def judge_own(code: str, stdin: str) -> Verdict:
    """Returns the verdict on a program of the builtin generator, run in this process.

    The program runs once. Tests check that no hash seed changes the output of these programs.
    """
    measured = execute(code, stdin, line_limit=MOST_LINES, output_limit=MOST_OUTPUT)
    if measured.error is None:
        reason = unfit(measured.stdout)
    else:
        reason = TOO_LONG if measured.error.startswith(OUTPUT_LIMIT) else f"it ends with {measured.error}"
    return Verdict("" if reason else measured.stdout, reason, IN_PROCESS)


def judge(code: str, stdin: str, sandbox: Sandbox) -> Verdict:
    """Returns the verdict on an untrusted program, run up to three times in the sandbox.

    The first run counts the lines, so a program that loops for ever runs only once.

    Args:
        code: The program's text.
        stdin: Its standard input.
        sandbox: A sandbox with ``HASH_SEEDS`` and ``LIMITS``.
    """
    first, second = HASH_SEEDS
    try:
        counting = limited(code, MOST_LINES)
    except (SyntaxError, ProgramError) as error:
        return Verdict("", f"it does not parse: {error}", sandbox.level)
    counted = sandbox.run(counting, stdin, hash_seed=first)
    if counted.stderr.endswith(LIMITED):
        return Verdict("", f"it executes more than {MOST_LINES} lines", sandbox.level)
    if counted.status == "timeout":
        return Verdict("", "it does not end", sandbox.level)
    one, other = sandbox.run_many([Job(code, stdin, first), Job(code, stdin, second)])
    reason = _failed(one) or unfit(one.stdout) or _failed(other)
    if not reason and other.stdout != one.stdout:
        reason = "its output depends on the hash seed or on something else that varies between runs"
    if not reason and (counted.status, counted.stderr, counted.stdout) != ("ok", "", one.stdout):
        # Needed although two runs agreed: run together, both can read the same time from a coarse clock.
        reason = "its lines cannot be counted: its output varies, or it behaves otherwise when they are"
    return Verdict("" if reason else one.stdout, reason, sandbox.level)


def _failed(result: Result) -> str:
    """Returns why a run is unsound, or ""."""
    if result.status == "output_limit":
        return TOO_LONG
    if result.status != "ok":
        last = (result.stderr.strip().splitlines() or ["nothing on its standard error"])[-1]
        return f"it ends with status {result.status!r}: {last[:200]}"
    return f"it writes to its standard error: {result.stderr[:200]!r}" if result.stderr else ""


def unfit(stdout: str) -> str:
    """Returns why an output is unfit as a truth, or ""."""
    if not stdout.strip():
        return "it prints nothing"
    if len(stdout.encode("utf-8", "surrogatepass")) > MOST_OUTPUT:
        return TOO_LONG
    if "\ufffd" in stdout:  # the sandbox decodes bytes that are not UTF-8 to this
        return "its output is not all text"
    return "" if is_scorable(stdout) else "its output holds what cleaning takes out of a reply"
