"""Admission: the check that a sound question can be asked about a program.

It promises that an honest program's output does not depend on place, time and machine. It is no protection
against programs that are written to evade it; ``trace_gym.sandbox`` protects the machine from these.

An untrusted program is admitted if all of this is true:

- Its text and input have at most the sizes below. This is checked before anything is compiled.
- Its text names nothing that follows from a machine and that no world changes
  (``trace_gym.admission.reading``).
- It looks at no file outside its folder, and asks ``time.sleep`` for at most a second in all.
- Its runs in eight or sixteen varied worlds (``trace_gym.admission.worlds``) print the same, write nothing to
  standard error and exit with code 0.
- The output is not empty, has at most ``MOST_OUTPUT`` bytes, and scores 1 if it is the reply.
- The program executes at most ``MOST_LINES`` lines.

A program of the builtin generator runs once, and only the last two are checked: tests check the others.

Admission does not depend on the speed of a machine. Time only ends a run that would not end by itself, such
as one that sleeps or loops for ever inside one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from task_gym.errors import ProgramError
from task_gym.visible import show_controls
from trace_gym.admission import worlds
from trace_gym.admission.counting import LIMITED
from trace_gym.admission.measure import OUTPUT_LIMIT, execute
from trace_gym.admission.reading import refuse
from trace_gym.sandbox import Limits, Result, Sandbox
from trace_gym.score import is_scorable
from trace_gym.syntax import parse

MOST_OUTPUT = 4096
"""Bytes that a program may print, at most."""

TOO_LONG = f"it writes more than {MOST_OUTPUT} bytes"
"""``Verdict.reason`` of a program that prints more than that."""

MOST_LINES = 1_000_000
"""Lines that a program may execute, as ``trace_gym.admission.counting`` counts them."""

VARIES = "its output varies with hash seed, addresses, process, folder, environment, time or something else"
"""``Verdict.reason`` of a program that prints something else in one of its worlds."""

MOST_TEXT, MOST_TEXT_LINES = 32_768, 2_000
"""Bytes and lines of a row's program, at most."""

MOST_INPUT = 65_536
"""Bytes of a row's standard input, at most."""

MOST_SHOWN = 4 * MOST_TEXT
"""Bytes of a program with its debug prints, at most: a print repeats the names that it shows."""

OWN_HASH_SEEDS = (0, 1)
"""The hash seeds under which mutants of the builtin generator's programs run."""

# Wall time is generous: it only ends programs that do not end by themselves.
LIMITS = Limits(cpu_seconds=20, wall_seconds=60.0, output=2 * MOST_OUTPUT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a program's admission.

    Attributes:
        truth: The program's output; "" if the program is not admitted.
        reason: Why the program is not admitted; "" if it is.
    """

    truth: str
    reason: str


def judge_own(code: str, stdin: str) -> Verdict:
    """Returns the verdict on a program of the builtin generator, run in this process.

    The program runs once. Tests check that no hash seed changes the output of these programs.
    """
    measured = execute(code, stdin, line_limit=MOST_LINES, output_limit=MOST_OUTPUT)
    if measured.error is None:
        reason = unfit(measured.stdout)
    else:
        reason = TOO_LONG if measured.error.startswith(OUTPUT_LIMIT) else f"it ends with {measured.error}"
    return Verdict("" if reason else measured.stdout, reason)


def judge(code: str, stdin: str, sandbox: Sandbox) -> Verdict:
    """Returns the verdict on an untrusted program: its text is read, and it runs in the sandbox.

    The first run counts the lines and is guarded, so a program that loops for ever runs only once.

    Args:
        code: The program's text.
        stdin: Its standard input.
        sandbox: A sandbox with ``worlds.HASH_SEEDS`` and ``LIMITS``.
    """
    if len(code.encode("utf-8", "surrogatepass")) > MOST_SHOWN:
        return Verdict("", f"it has more than {MOST_SHOWN:,} bytes with its debug prints")
    try:
        refusal = refuse(parse(code))
        counting = worlds.guard_program(code, MOST_LINES)
    except (SyntaxError, ProgramError) as error:
        return Verdict("", f"it does not parse: {error}")
    if refusal:
        return Verdict("", refusal)
    counted = sandbox.run(counting, stdin, hash_seed=worlds.hash_seeds(code)[0])
    if refusal := worlds.refusal_of(counted.stderr):
        return Verdict("", refusal)
    if counted.stderr.endswith(LIMITED):
        return Verdict("", f"it executes more than {MOST_LINES} lines")
    if counted.status == "timeout":
        return Verdict("", "it does not end")
    truth, reason = _compare(code, stdin, sandbox)
    if not reason and (counted.status, counted.stderr, counted.stdout) != ("ok", "", truth):
        # Needed although the runs agreed: run together, they can read the same time from a coarse clock.
        reason = "its lines cannot be counted: its output varies, or it behaves otherwise when they are"
    return Verdict("" if reason else truth, reason)


def refuse_row(code: str, stdin: str) -> str:
    """Returns why a row is too large to be read, or its text not allowed; "" also if it does not parse."""
    # A text has at most as many characters as bytes, so a huge one is not encoded.
    if len(code) > MOST_TEXT or len(code.encode("utf-8", "surrogatepass")) > MOST_TEXT:
        return f"it has {len(code):,} characters; allowed: {MOST_TEXT:,} bytes"
    if (lines := 1 + code.count("\n") + code.count("\r")) > MOST_TEXT_LINES:
        return f"it has {lines:,} lines; allowed: {MOST_TEXT_LINES:,}"
    if len(stdin) > MOST_INPUT or len(stdin.encode("utf-8", "surrogatepass")) > MOST_INPUT:
        return f"its input has {len(stdin):,} characters; allowed: {MOST_INPUT:,} bytes"
    try:
        return refuse(parse(code))
    except (SyntaxError, ProgramError):
        return ""


def _compare(code: str, stdin: str, sandbox: Sandbox) -> tuple[str, str]:
    """Returns a program's output in world 0, and why it is unsound: it runs in every world."""
    seen: list[Result] = []
    reason = ""

    def done(result: Result) -> bool:
        nonlocal reason
        seen.append(result)
        reason = _explain_end(result)
        if len(seen) == 1:
            reason = reason or unfit(result.stdout)
        elif reason or result.stdout != seen[0].stdout:
            reason = f"{VARIES}: {reason or _difference(seen[0].stdout, result.stdout)}"
        return bool(reason)

    sandbox.run_until(worlds.jobs(code, stdin), done)
    return seen[0].stdout, reason


def _explain_end(result: Result) -> str:
    """Returns why a run is unsound, or ""."""
    if result.status == "output_limit":
        return TOO_LONG
    if result.status != "ok":
        last = (result.stderr.strip().splitlines() or ["nothing on its standard error"])[-1]
        return f"it ends with status {result.status!r}: {show_controls(last[:200])}"
    return f"it writes to its standard error: {result.stderr[:200]!r}" if result.stderr else ""


def _difference(here: str, there: str) -> str:
    """Returns the first line in which two outputs differ, as they have it."""
    for number, (line, other) in enumerate(zip_longest(here.split("\n"), there.split("\n")), start=1):
        if line != other:
            return f"its line {number} is {line!a:.80} or {other!a:.80}"
    return "their ends"


def unfit(stdout: str) -> str:
    """Returns why an output is unfit as a truth, or ""."""
    if not stdout.strip():
        return "it prints nothing"
    if len(stdout.encode("utf-8", "surrogatepass")) > MOST_OUTPUT:
        return TOO_LONG
    if "\ufffd" in stdout:  # the sandbox decodes bytes that are not UTF-8 to this
        return "its output is not all text"
    return "" if is_scorable(stdout) else "its output holds what cleaning takes out of a reply"
