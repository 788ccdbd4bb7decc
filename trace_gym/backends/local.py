"""The backend that makes traces on this machine: it draws programs, inserts debug prints and runs them."""

from __future__ import annotations

import re
import time
from collections import OrderedDict

from task_gym.errors import AdmissionError, ProgramError
from trace_gym.admission import admit, worlds
from trace_gym.backends.base import Trace
from trace_gym.inject import MOST, inject, strip_debug
from trace_gym.mutants.versions import LEAST, Version, versions
from trace_gym.programs.base import Program
from trace_gym.programs.sources import BuiltinSource, Source
from trace_gym.sandbox import Sandbox

# JSON can contain lone surrogates, but UTF-8 cannot.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_KEPT = 8192
"""Number of traces kept. A trace takes a few kilobytes, and up to a good part of a second to make."""


RESET_SECONDS = 60.0
"""Seconds in which ``load`` goes on to the next program. After that it raises an error. Another program would
make what a task id names depend on the speed of a machine."""


class LocalBackend:
    """A backend that makes traces and keeps the latest; the same task id gives the same trace.

    Args:
        source: The source of the programs.
        injector: "safe": the next program replaces one that is not admitted. "affine": upstream's own program
            or an error.
        options: Whether to make false outputs too. Then one of several versions is shown, and a program with
            fewer than four versions is not admitted.
        require: The weakest level of the sandbox for untrusted programs. Mutants of builtin programs cannot
            do harm, so they run on machines without protection too.
    """

    def __init__(self, source: Source, injector: str, options: bool, require: str = "namespaces") -> None:
        self._source, self._injector, self._options = source, injector, options
        self._trusted = isinstance(self._source, BuiltinSource)
        self._require = "limits" if self._trusted else require
        self._traces: OrderedDict[int, Trace] = OrderedDict()
        self._sandbox: Sandbox | None = None

    @property
    def source(self) -> str:
        """The source's name, which means the same programs everywhere."""
        return self._source.name

    def load(self, task_id: int) -> Trace:
        """Returns the trace of a task id.

        Raises:
            AdmissionError: the program is unsound and may not be replaced, all programs are unsound, or none
                that is sound is found in time.
            SourceError: a row has values of the wrong type.
            SandboxError: this machine does not have the level that untrusted programs need.
        """
        known = self._traces.pop(task_id, None)
        if known is None:
            known = self._make(task_id)
            if len(self._traces) >= _KEPT:
                self._traces.popitem(last=False)
        self._traces[task_id] = known
        return known

    def _make(self, task_id: int) -> Trace:
        first, begun = "", time.monotonic()
        for replaced, program in enumerate(self._source.candidates(task_id)):
            outcome = self._admit(task_id, program, replaced)
            if isinstance(outcome, Trace):
                return outcome
            where = f"task id: {task_id}" + ("" if program.row is None else f" (row {program.row})")
            if self._injector == "affine":
                raise AdmissionError(
                    f"{where} was given, whose program is unsound: {outcome}; allowed: other task ids, or "
                    "injector='safe', which takes the next sound program"
                )
            first = first or f"{where} was given, whose program is unsound: {outcome}"
            if time.monotonic() - begun > RESET_SECONDS:
                raise AdmissionError(
                    f"{first}; {replaced + 1} programs were checked for more than {RESET_SECONDS:g} s, and "
                    "none was sound; allowed: other task ids, or rows without programs that wait"
                )
        raise AdmissionError(f"{first}; so are those that could stand in for it")

    def _admit(self, task_id: int, program: Program, replaced: int) -> Trace | str:
        """Returns the trace of a program, or the reason why it is not admitted."""
        if _LONE_SURROGATE.search(program.stdin):
            return "what it reads is not all text"
        if not self._trusted and (reason := admit.refuse_row(program.code, program.stdin)):
            return reason
        try:
            shown, verdict = self._show(task_id, program)
        except ProgramError as error:
            return f"no prints can be put into it: {error}"
        if verdict.reason:
            return verdict.reason
        if self._is_disturbed(program, shown, verdict.truth):
            return "it behaves otherwise with the debug prints"
        choices = [Version(shown, verdict.truth, "")]
        if self._options:
            try:
                choices = versions(
                    shown, program.stdin, verdict.truth, task_id, self._get_sandbox(), trusted=self._trusted
                )
            except ProgramError as error:
                return f"no mutants can be made of it: {error}"
            if len(choices) < LEAST:
                return f"its mutants print {len(choices) - 1} plausible false outputs; {LEAST - 1} are needed"
        return Trace(
            code=choices[0].code,
            stdin=program.stdin,
            truth=choices[0].output,
            family=program.family,
            level=program.level,
            row=program.row,
            replaced=replaced,
            sandbox="in-process" if self._sandbox is None else self._sandbox.level,
            false=tuple(version.output for version in choices[1:]),
            mutation=choices[0].mutation,
        )

    def _show(self, task_id: int, program: Program) -> tuple[str, admit.Verdict]:
        """Returns the program with debug prints, and the verdict on it.

        If the output is too long, the injector "safe" keeps only the first of the drawn prints: as many as
        the output has room for, and at least one.
        """
        shown = inject(program.code, task_id, self._injector)
        verdict = self._judge(shown, program.stdin)
        if self._injector == "safe":
            for most in range(MOST - 1, 0, -1):
                if verdict.reason != admit.TOO_LONG:
                    break
                fewer = inject(program.code, task_id, self._injector, most)
                if fewer != shown:
                    shown, verdict = fewer, self._judge(fewer, program.stdin)
        return shown, verdict

    def _judge(self, code: str, stdin: str) -> admit.Verdict:
        if self._trusted:
            return admit.judge_own(code, stdin)
        return admit.judge(code, stdin, self._get_sandbox())

    def _is_disturbed(self, program: Program, shown: str, truth: str) -> bool:
        """Returns whether an untrusted program behaves differently without the prints of style "safe"."""
        if self._trusted or self._injector != "safe" or shown == program.code:
            return False
        bare = self._get_sandbox().run(program.code, program.stdin)
        return (bare.status, bare.stderr) != ("ok", "") or bare.stdout != strip_debug(truth)

    def _get_sandbox(self) -> Sandbox:
        """Returns the sandbox, made at first use."""
        if self._sandbox is None:
            seeds = admit.OWN_HASH_SEEDS if self._trusted else worlds.HASH_SEEDS
            self._sandbox = Sandbox(seeds, limits=admit.LIMITS, require=self._require)
        return self._sandbox

    def close(self) -> None:
        """Ends the sandbox's workers; they start again when needed."""
        if self._sandbox is not None:
            self._sandbox.close()
