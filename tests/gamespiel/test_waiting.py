"""How threads wait: they spin on a quiet machine, sleep on a busy one, or do what the user says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gamespiel import cli, waiting


def prepare(given: dict[str, str]) -> dict[str, str]:
    waiting.prepare_threads(given)
    return given


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """A list whose last number is that of other running threads, on a machine of 2 cores that are ours."""
    found: list[float | None] = []
    monkeypatch.setattr(waiting, "count_running", lambda: found[-1])
    monkeypatch.setattr(waiting, "count_cores", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return found


@pytest.mark.parametrize(
    ("cores", "others", "spins"),
    [
        (2, 0, True),
        (2, 0.2, True),
        (2, 0.6, False),
        (2, None, False),
        # A container has 2 of 16 cores: 14 threads beside it leave them free, and 15 do not.
        (16, 14, True),
        (16, 15, False),
    ],
)
def test_threads_spin_if_cores_are_free(
    cores: int,
    others: float | None,
    spins: bool,
    running: list[float | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    running.append(others)
    expected = {"OMP_WAIT_POLICY": "PASSIVE"} | ({"GOMP_SPINCOUNT": "20000"} if spins else {})
    assert prepare({}) == expected


@pytest.mark.parametrize("given", [{"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_the_users_own_setting_stays(given: dict[str, str], running: list[float | None]) -> None:
    running.append(0)
    assert prepare(dict(given)) == given


def test_running_threads_are_counted_if_the_system_tells(tmp_path: Path) -> None:
    """The file's fourth field counts the reader too."""
    file = tmp_path / "loadavg"
    assert waiting.count_running(file) is None
    file.write_text("0.50 0.40 0.30 3/210 4711\n")
    assert waiting.count_running(file) == 2
    for text in ("", "0.50 0.40", "0.5 0.4 0.3 many/210 4711"):
        file.write_text(text)
        assert waiting.count_running(file) is None


def test_a_command_decides(running: list[float | None], monkeypatch: pytest.MonkeyPatch) -> None:
    running.append(0)
    environment: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environment)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert environment == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "20000"}
