"""The interpreters that ``make pythons`` finds. What it runs there takes minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.check_pythons import interpreter, others

OWN = f"3.{sys.version_info.minor}"


def test_the_others_are_those_that_the_package_is_for() -> None:
    assert {*others(), OWN} == {"3.11", "3.12", "3.13"} and OWN not in others()


def test_an_interpreter_has_the_version_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what it says, not by its name: a pyenv shim has the name of a version that it may not run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for name in (f"python{OWN}", "python3.1"):
        (tmp_path / name).symlink_to(sys.executable)
    assert interpreter(OWN) == str(tmp_path / f"python{OWN}")
    assert interpreter("3.1") is None and interpreter("3.2") is None
