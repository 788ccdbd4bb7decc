"""Tests of affinetes' data set with the real ``huggingface_hub`` and ``datasets``, from our own hub.

Each access is in its own process, because the libraries read their settings at import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trace_gym.hub_server import Hub, served
from trace_gym.programs.hub import DATASET

pytestmark = pytest.mark.launch

LOOK = """
import json, sys, gymnasium as gym, trace_gym
from trace_gym.programs.sources import open_source
from task_gym.errors import TaskGymError
for source in sys.argv[1:]:
    try:
        found = open_source(source)
        program = next(found.candidates(len(found))).program
        print(json.dumps([found.name, len(found), program.code, program.stdin]))
    except TaskGymError as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""

NEVER = "0" * 40


class Machine:
    """A home folder, and the programs that a process there gets from its sources."""

    def __init__(self, home: Path, hub: Hub) -> None:
        self.home, self.hub = home, hub

    @property
    def note(self) -> Path:
        return self.home / "state" / "gamespiel" / "hub-commit"

    def look(self, *sources: str, **settings: str) -> Any:
        return [json.loads(line) for line in self.run(LOOK, *sources, **settings).splitlines()]

    def run(self, script: str, *arguments: str, **settings: str) -> str:
        """Returns the output of a script in a process of this machine."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        environment |= {
            "HOME": str(self.home),
            "HF_HOME": str(self.home / ".cache" / "huggingface"),
            "HF_ENDPOINT": self.hub.url,
            "XDG_STATE_HOME": str(self.home / "state"),
            **settings,
        }
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def rows(letter: str, count: int) -> list[dict[str, Any]]:
    return [{"program": f"print({letter!r}, {n})", "inputs": f"{letter}\n"} for n in range(count)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, Hub(DATASET))


def opened(letter: str, count: int, commit: str) -> list[Any]:
    return [f"hub@{commit}", count, f"print({letter!r}, 0)", f"{letter}\n"]


def test_the_first_use_settles_the_commit(machine: Machine, tmp_path: Path) -> None:
    hub = machine.hub
    first = hub.put(rows("a", 3))
    with served(hub):
        assert machine.look("hub", "hub@main") == [opened("a", 3, first)] * 2
        assert machine.note.read_text() == f"{first}\n"
        second = hub.put(rows("b", 5))
        found = machine.look("hub", "hub@main", f"hub@{second}", f"hub@{NEVER}")
        assert found[:3] == [opened("a", 3, first), opened("b", 5, second), opened("b", 5, second)]
        assert found[3] == ["SourceError", f"source: {DATASET} has no revision {NEVER}"]
    # Out of reach: exactly the commits asked for, even if another was cached later, or an error.
    assert machine.look("hub", f"hub@{second}") == [opened("a", 3, first), opened("b", 5, second)]
    # In offline mode the library does not try for half a minute before it gives up on a commit.
    [known, [kind, message]] = machine.look("hub", f"hub@{NEVER}", HF_HUB_OFFLINE="1")
    assert known == opened("a", 3, first) and kind == "SourceError"
    assert f"{DATASET} at revision {NEVER} cannot be had (LocalEntryNotFoundError: " in message
    assert "connect to it once" in message
    [[kind, message]] = Machine(tmp_path / "another", hub).look("hub")
    assert kind == "SourceError" and f"{DATASET} at revision main cannot be had" in message
    machine.note.unlink()
    with served(hub):
        assert machine.look("hub") == [opened("b", 5, second)]
    assert machine.note.read_text() == f"{second}\n"


def test_a_cache_that_lacks_the_list_of_files_is_no_commit(machine: Machine) -> None:
    """Other tools fetch single files of a commit, and do not cache the list of its files."""
    commit = machine.hub.put(rows("a", 3))
    fetch = "from huggingface_hub import hf_hub_download\n"
    fetch += f"hf_hub_download({DATASET!r}, 'data/train.jsonl', repo_type='dataset')"
    with served(machine.hub):
        machine.run(fetch)
    for kind, message in machine.look("hub", f"hub@{commit}", HF_HUB_OFFLINE="1"):
        assert kind == "SourceError" and "cannot be had" in message
    assert not machine.note.exists()


def test_notes_that_cannot_be_followed(machine: Machine) -> None:
    hub, note = machine.hub, machine.note
    first = hub.put(rows("a", 3))
    note.parent.mkdir(parents=True)
    with served(hub):
        note.write_text(NEVER)
        [[kind, message]] = machine.look("hub")
        assert kind == "SourceError" and f"no revision {NEVER}, which {note} holds" in message
        note.write_text("main")
        assert machine.look(f"hub@{NEVER}") == [["SourceError", f"source: {DATASET} has no revision {NEVER}"]]
        [[kind, message]] = machine.look("hub")
        assert kind == "SourceError" and "holds 'main'; allowed: a commit" in message
        note.unlink()
        note.symlink_to(note.parent / "nowhere")
        [[kind, message], named] = machine.look("hub", f"hub@{first}")
        assert kind == "SourceError" and message.endswith(f"name it: source='hub@{first}'")
        assert named == opened("a", 3, first)
        note.unlink()
        note.mkdir()
        [[kind, message]] = machine.look("hub")
        assert kind == "SourceError" and f"{note}, which says what 'hub' means, cannot be" in message
