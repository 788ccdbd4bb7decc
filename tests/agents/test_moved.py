"""Names that modules had before the rooms: they still import, and say where the module is now."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from gamespiel.agents.moved import MOVED, PACKAGE, RENAMED, find_new_name


@pytest.mark.parametrize("old", [*MOVED, *RENAMED])
def test_an_old_name_imports_and_warns(old: str) -> None:
    sys.modules.pop(f"{PACKAGE}.{old}", None)
    new = find_new_name(f"{PACKAGE}.{old}")
    assert new is not None
    with pytest.warns(DeprecationWarning, match=rf"{PACKAGE}\.{old} is {new} now"):
        module = importlib.import_module(f"{PACKAGE}.{old}")
    target = importlib.import_module(new)
    public = [name for name in vars(target) if not name.startswith("_")]
    assert public and all(getattr(module, name) is getattr(target, name) for name in public)


def test_names_that_never_were_are_not_found() -> None:
    for name in (f"{PACKAGE}.checkpoints", "gamespiel.checkpoint", "checkpoint"):
        assert find_new_name(name) is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{PACKAGE}.checkpoints")


@pytest.mark.launch
def test_what_users_have_written_runs() -> None:
    """In a process of its own, where nothing was imported by its new name."""
    code = (
        "from gamespiel.agents.checkpoint import find; from gamespiel.agents import evaluation; "
        "from gamespiel.agents.decoding import ChatCodec; "
        "from gamespiel.agents.adapters import LoraSettings; "
        "import gamespiel.agents.runs.checkpoint as new; assert find is new.find; print(LoraSettings().r)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "16\n"
