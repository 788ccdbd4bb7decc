"""Tests that a program whose debug prints make its output too long gets fewer, before it is replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from task_gym.errors import AdmissionError
from trace_gym.admission.admit import MOST_OUTPUT
from trace_gym.admission.measure import execute
from trace_gym.backends.local import LocalBackend
from trace_gym.inject import MOST, inject
from trace_gym.programs.builtin import generate, ids_of
from trace_gym.programs.sources import open_source


def prints(code: str) -> int:
    return code.count("print('__DBG_")


def fits(code: str, stdin: str) -> bool:
    return execute(code, stdin, output_limit=MOST_OUTPUT).error is None


def test_as_many_prints_as_there_is_room_for() -> None:
    backend = LocalBackend(open_source("builtin"), "safe", options=False)
    shortened = 0
    for task_id in (ids_of(level=10)[position] for position in range(16)):  # one of each family
        own, trace = generate(task_id), backend.load(task_id)
        if trace.replaced:  # no room for even one print
            assert not fits(inject(own.code, task_id, most=1), own.stdin)
            continue
        assert trace.code == inject(own.code, task_id, most=prints(trace.code))
        assert trace.truth == execute(trace.code, trace.stdin).stdout
        more = inject(own.code, task_id, most=prints(trace.code) + 1)
        if prints(trace.code) < MOST and more != trace.code:
            assert not fits(more, own.stdin)
            shortened += 1
    assert shortened > 0


# A line "__DBG_0__ i" takes 11 bytes and i's digits, in 200 passes 10 * 12 + 90 * 13 + 100 * 14 = 2690; with
# three numbers in it, 10 * 16 + 90 * 19 + 100 * 22 = 4070. So there is room for one print, and not for two.
LOOP = "for i in range(200):\n    a = i\n    b = a\n    c = b\nprint(c)\n"
LONG = "print('x' * 4096)\n"


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"program": p, "inputs": None}) + "\n" for p in (LOOP, LONG)))
    return str(path)


def test_rows_too(rows: str) -> None:
    backend = LocalBackend(open_source(rows), "safe", options=False)
    task_id = next(i for i in range(0, 100, 2) if prints(inject(LOOP, i)) > 1)
    trace = backend.load(task_id)
    assert (trace.row, trace.replaced, prints(trace.code)) == (0, 0, 1)
    # A program that is too long by itself is replaced by the next row, which is the first one again.
    assert (backend.load(1).row, backend.load(1).replaced) == (0, 1)
    backend.close()


def test_affinetes_own_prints_stay(rows: str) -> None:
    backend = LocalBackend(open_source(rows), "affine", options=False)
    task_id = next(i for i in range(0, 100, 2) if not fits(inject(LOOP, i, "affine"), ""))
    with pytest.raises(AdmissionError, match="it writes more than 4096 bytes; allowed"):
        backend.load(task_id)
    backend.close()
