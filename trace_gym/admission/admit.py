"""Which programs a sound question can be asked about.

A program is admitted if, run under two different hash seeds, it gave the same output both times, wrote
nothing to its standard error, and ended with exit code 0; if its output is something, at most
:data:`MOST_OUTPUT` bytes and such that it scores 1 as a reply; and if it executes at most :data:`MOST_LINES`
lines, which are counted. Time decides nothing, except that a run which does not end is given up (one that
sleeps, or counts for ever inside one line): so what is admitted does not depend on how fast a machine is.
"""

from __future__ import annotations

from dataclasses import dataclass

from task_gym.errors import ProgramError
from trace_gym.limited import LIMITED, limited
from trace_gym.measure import OUTPUT_LIMIT, execute
from trace_gym.sandbox import Job, Limits, Result, Sandbox
from trace_gym.score import is_scorable

#: Bytes that a program may write.
MOST_OUTPUT = 4096

#: The reason against a program that writes more.
TOO_LONG = f"it writes more than {MOST_OUTPUT} bytes"

#: Lines that it may execute, as :mod:`trace_gym.counting` counts them.
MOST_LINES = 1_000_000

#: Two seeds under which sets of texts have different orders.
HASH_SEEDS = (0, 1)

#: What stands for the sandbox's level where a program ran in this process.
IN_PROCESS = "in-process"

# Time by the clock is generous: it ends what does not end by itself, and judges nothing else.
LIMITS = Limits(cpu_seconds=20, wall_seconds=60.0, output=2 * MOST_OUTPUT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What running a program showed.

    Attributes:
        truth: Its output; "" where it is not admitted.
        reason: "" where it is admitted, else why not.
        sandbox: The protection in force, one of ``trace_gym.sandbox.LEVELS`` or :data:`IN_PROCESS`.
    """

    truth: str
    reason: str
    sandbox: str


def judge_own(source: str, stdin: str) -> Verdict:
    """The verdict on a program of the builtin generator, run in this process.

    It runs once: these programs hold nothing that a hash seed could change, which is tested.
    """
    measured = execute(source, stdin, line_limit=MOST_LINES, output_limit=MOST_OUTPUT)
    if measured.error is None:
        reason = unfit(measured.stdout)
    else:
        reason = TOO_LONG if measured.error.startswith(OUTPUT_LIMIT) else f"it ends with {measured.error}"
    return Verdict("" if reason else measured.stdout, reason, IN_PROCESS)


def judge(source: str, stdin: str, sandbox: Sandbox) -> Verdict:
    """The verdict on a program that nobody vouches for, run three times in the sandbox.

    The first run counts the lines, so that what loops for ever is not run a second time.

    Args:
        sandbox: One with :data:`HASH_SEEDS` and :data:`LIMITS`.
    """
    first, second = HASH_SEEDS
    try:
        counting = limited(source, MOST_LINES)
    except (SyntaxError, ProgramError) as error:
        return Verdict("", f"it does not parse: {error}", sandbox.level)
    counted = sandbox.run(counting, stdin, hash_seed=first)
    if counted.stderr.endswith(LIMITED):
        return Verdict("", f"it executes more than {MOST_LINES} lines", sandbox.level)
    if counted.status == "timeout":
        return Verdict("", "it does not end", sandbox.level)
    one, other = sandbox.run_many([Job(source, stdin, first), Job(source, stdin, second)])
    reason = _failed(one) or unfit(one.stdout) or _failed(other)
    if not reason and other.stdout != one.stdout:
        reason = "its output depends on the hash seed or on something else that varies between runs"
    if not reason and (counted.status, counted.stderr, counted.stdout) != ("ok", "", one.stdout):
        # Two runs at the same moment can read the same time from a coarse clock.
        reason = "its lines cannot be counted: its output varies, or it behaves otherwise when they are"
    return Verdict("" if reason else one.stdout, reason, sandbox.level)


def _failed(result: Result) -> str:
    """Why a run is no sound one, or ""."""
    if result.status == "output_limit":
        return TOO_LONG
    if result.status != "ok":
        last = (result.stderr.strip().splitlines() or ["nothing on its standard error"])[-1]
        return f"it ends with status {result.status!r}: {last[:200]}"
    return f"it writes to its standard error: {result.stderr[:200]!r}" if result.stderr else ""


def unfit(stdout: str) -> str:
    """Why an output is no good as a truth, or ""."""
    if not stdout.strip():
        return "it prints nothing"
    if len(stdout.encode("utf-8", "surrogatepass")) > MOST_OUTPUT:
        return TOO_LONG
    if "\ufffd" in stdout:  # what the sandbox reads where there is no UTF-8
        return "its output is not all text"
    return "" if is_scorable(stdout) else "its output holds what cleaning takes out of a reply"
