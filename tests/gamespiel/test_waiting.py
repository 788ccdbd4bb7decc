"""How threads wait: they spin on a quiet machine, sleep on a busy one, or do what the user says."""

from __future__ import annotations

import os
import subprocess
import sys
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
    ("others", "spins"), [(0, True), (0.2, True), (0.6, False), (2, False), (None, False)]
)
def test_threads_spin_if_cores_are_free(
    others: float | None, spins: bool, running: list[float | None]
) -> None:
    running.append(others)
    expected = {"OMP_WAIT_POLICY": "PASSIVE"} | ({"GOMP_SPINCOUNT": "20000"} if spins else {})
    assert prepare({}) == expected


def test_cores_of_a_larger_machine(running: list[float | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A container has 2 of 16 cores: 14 threads beside it leave them free, and 15 do not."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    running.append(14)
    assert "GOMP_SPINCOUNT" in prepare({})
    running.append(15)
    assert "GOMP_SPINCOUNT" not in prepare({})


@pytest.mark.parametrize("given", [{"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_the_users_own_setting_stays(given: dict[str, str], running: list[float | None]) -> None:
    running.append(0)
    assert prepare(dict(given)) == given


def test_running_threads_are_counted(tmp_path: Path) -> None:
    """The file's fourth field counts the reader too."""
    file = tmp_path / "loadavg"
    file.write_text("0.50 0.40 0.30 3/210 4711\n")
    assert waiting.count_running(file) == 2


@pytest.mark.parametrize("text", ["", "0.50 0.40", "0.5 0.4 0.3 many/210 4711"])
def test_systems_that_do_not_tell(text: str, tmp_path: Path) -> None:
    file = tmp_path / "loadavg"
    assert waiting.count_running(file) is None
    file.write_text(text)
    assert waiting.count_running(file) is None


def test_a_command_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []
    monkeypatch.setattr(cli, "prepare_threads", found.append)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert found == [os.environ]


def test_it_is_said_before_torch_is_imported() -> None:
    """The modules that the decision needs do not bring PyTorch, which reads the variables once."""
    code = "import sys, gamespiel.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
