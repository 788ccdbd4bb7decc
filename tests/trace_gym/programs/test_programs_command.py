"""Tests of ``python -m trace_gym.programs``."""

import pytest

from trace_gym.programs.__main__ import main
from trace_gym.programs.builtin import NAMES, ids_of, make


def test_a_program_is_shown_with_what_it_reads_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    task_id = ids_of(2, "stdin")[3]
    assert main(["--show", str(task_id)]) == 0
    made = make(task_id)
    shown = capsys.readouterr().out
    assert shown.startswith(f"task {task_id}: stdin, level 2, ")
    assert shown.endswith(
        f"{made.program.code}\ninput:\n{made.program.stdin}\noutput:\n{made.measured.stdout}"
    )


def test_a_level_is_a_row_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--level", "2", "--samples", "3"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row[:1] and row[0] in NAMES] == list(NAMES)
    by_family = {row[0]: row for row in rows if row}
    costs = sorted(int(cost) for cost in by_family["lists"][3].split("/"))
    # Level 2 is 18 to 21 points; three samples: the first, the second and the third of them in order.
    assert by_family["lists"][1:3] == ["2", "18–21"]
    assert len(costs) == 3 and 18 <= costs[0] <= costs[-1] <= 21


def test_a_family_is_a_row_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--family", "bits", "--samples", "1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[1] for row in rows if row[:1] == ["bits"]] == [str(level) for level in range(1, 11)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--level", "11"], "level: 11 was given, allowed: 1, 2"),
        (["--family", "bit"], "did you mean 'bits'"),
        (["--show", "-1"], "task id: -1 was given, allowed: whole numbers 0 … 99999999999"),
        (["--samples", "0"], "--samples: 0 was given, allowed: 1 and more"),
    ],
)
def test_errors_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
