"""Sources: files of both kinds, the hub, and errors that say what to do."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import AdmissionError, EpisodeError, SourceError
from tests.trace_gym.hub_server import Hub, served
from tests.trace_gym.play import Make
from tests.trace_gym.rows import EVERY, PATH, SIZE, rows, write_rows
from trace_gym.inject import inject
from trace_gym.programs import hub, sources
from trace_gym.programs.base import TASKS, Program
from trace_gym.programs.builtin import CELLS, split
from trace_gym.programs.hub import DATASET
from trace_gym.programs.sources import BuiltinSource, RowSource, open_source


@pytest.fixture(autouse=True)
def fresh(warm: None) -> None:
    sources._open.cache_clear()
    sources._open_hub.cache_clear()
    hub.commit_of.cache_clear()


def rows_of(source: Any, count: int) -> list[Program]:
    return [next(source.candidates(task_id)) for task_id in range(count)]


EXPECTED = [Program(row.program, row.inputs, row=number) for number, row in enumerate(rows())]


def test_jsonl(tmp_path: Path) -> None:
    source = open_source(str(PATH))
    assert isinstance(source, RowSource) and len(source) == SIZE
    assert rows_of(source, SIZE) == EXPECTED
    assert open_source(str(PATH)) is source
    file = tmp_path / "rows.jsonl"  # it may begin with a byte order mark
    file.write_text('{"program": "print(1)", "inputs": "\u00e9"}\r\n', encoding="utf-8-sig", newline="")
    assert rows_of(open_source(str(file)), 1) == [Program("print(1)", "\u00e9", row=0)]


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "programs.parquet"
    records = [{"program": row.program, "inputs": row.inputs, "more": 1} for row in rows()]
    parquet.write_table(pyarrow.Table.from_pylist(records), file)
    assert rows_of(open_source(str(file)), SIZE) == EXPECTED
    parquet.write_table(pyarrow.Table.from_pylist([{"program": "print(1)"}]), tmp_path / "half.parquet")
    with pytest.raises(SourceError, match=r"half.parquet has no column 'inputs'; it has: program"):
        open_source(str(tmp_path / "half.parquet"))
    (tmp_path / "no.parquet").write_text("nothing of the kind")
    with pytest.raises(SourceError, match=r"no.parquet cannot be read as Parquet"):
        open_source(str(tmp_path / "no.parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SourceError, match=r"needs pyarrow: pip install 'gamespiel\[hub\]'"):
        open_source(str(tmp_path / "no.parquet"))


def test_a_task_id_is_a_row_and_the_next_ones_stand_in() -> None:
    source = RowSource([{"program": str(n), "inputs": None} for n in range(5)], "five")
    candidates = list(source.candidates(13))  # 13 mod 5 = 3
    assert [(program.row, program.code) for program in candidates] == [(n, str(n)) for n in (3, 4, 0, 1, 2)]


def test_builtin_programs_stand_in_for_their_own_kind() -> None:
    task_id = TASKS - 1
    programs = list(islice(BuiltinSource().candidates(task_id), 3))
    assert {(program.family, program.level) for program in programs} == {split(task_id)}
    assert TASKS % CELLS == 0  # so that ids go round without a change of kind
    assert len({program.code for program in programs}) > 1


def test_inputs_are_texts_or_lists_of_lines() -> None:
    for inputs, stdin in (("a\nb\n", "a\nb\n"), (["a", "b"], "a\nb"), ([], ""), (None, "")):
        [program] = rows_of(RowSource([{"program": "print(1)", "inputs": inputs}], "one"), 1)
        assert program.stdin == stdin
    for code, wrong in ((None, ""), ("x", 5), ("x", [1])):
        with pytest.raises(SourceError, match=r"row 0 of one was given with program .* allowed: texts"):
            rows_of(RowSource([{"program": code, "inputs": wrong}], "one"), 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "which has no rows"),
        ("\n", "which has no rows"),
        ('{"program": "x"}\n', "line 1 of .* has no column 'inputs'; it has: program"),
        ('{"program": "x", "inputs": ""}\n[1]\n', "line 2 of .* has no column 'program'; it has: none"),
        ("{'program'\n", "line 1 of .* is no JSON"),
        ('{"program": "x", "inputs": ""}\n{"program": "\xe9"}\n', "line 2 of .* is no JSON: 'utf-8'"),
        ("[" * 100_000 + "\n", "line 1 of .* is no JSON"),
    ],
)
def test_files_that_are_not_as_they_should_be(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(SourceError, match=message):
        open_source(str(file))


class Rows(list[Any]):
    """A stand-in for a data set of ``datasets``, with the members in use."""

    column_names = ("program", "inputs", "output")


COMMIT = "0123456789" * 4


@pytest.mark.launch
@pytest.mark.sample
def test_the_hub(monkeypatch: pytest.MonkeyPatch, make_env: Make) -> None:
    loaded = []

    def load(commit: str) -> Any:
        loaded.append(commit)
        return Rows({"program": row.program, "inputs": row.inputs, "output": ""} for row in rows())

    monkeypatch.setattr(hub, "commit_of", lambda revision: revision or COMMIT)
    monkeypatch.setattr(hub, "rows_at", load)
    env = make_env(source="hub", task_ids=[(0, 10**6)])
    _, info = env.reset(seed=0, options={"task_id": 1000 * SIZE + EVERY - 1})  # an unsound one
    assert (info["row"], info["replaced"], info["family"], info["level"]) == (EVERY, 1, None, None)
    assert info["source"] == env.source == f"hub@{COMMIT}"
    copy = pickle.loads(pickle.dumps(env))
    assert copy._arguments["source"] == env.source  # whatever "hub" means where it is made
    assert copy._backend is env._backend
    assert loaded == [COMMIT]


def test_the_hub_without_its_libraries_or_with_other_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(SourceError, match=r"which needs huggingface_hub: pip install 'gamespiel\[hub\]'"):
            gym.make("CodeTrace-v0", source=f"hub@{COMMIT}")
    monkeypatch.setattr(hub, "rows_at", lambda commit: SimpleNamespace(column_names=["text"]))
    message = f"source: the hub's {hub.DATASET} at {COMMIT} has no column 'program'; it has: text"
    with pytest.raises(SourceError, match=message):
        gym.make("CodeTrace-v0", source=f"hub@{COMMIT}")


def test_the_hub_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    for state in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", state)
        with pytest.raises(SourceError, match=r"no home folder .* set XDG_STATE_HOME, or name the commit"):
            gym.make("CodeTrace-v0", source="hub")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert hub.note_path() == tmp_path / "gamespiel" / "hub-commit"


def test_upstreams_injection_takes_the_row_or_says_why_not(make_env: Make) -> None:
    env = make_env(source=str(PATH), task_ids=[(0, 20)], injector="affine")
    _, info = env.reset(seed=0, options={"task_id": 0})
    assert (info["row"], info["replaced"]) == (0, 0)
    with pytest.raises(AdmissionError, match=r"task id: 4 \(row 4\) was given, .*unsound: .*Zero"):
        env.reset(seed=0, options={"task_id": 4})
    for one in (env, pickle.loads(pickle.dumps(env))):
        assert one.trace is None  # nothing of the episode before is left
        with pytest.raises(EpisodeError):
            one.step("")
        assert one.reset(seed=0, options={"task_id": 0})[1]["row"] == 0


@pytest.mark.launch
@pytest.mark.sample
def test_a_program_that_its_prints_disturb_gives_way(tmp_path: Path, make_env: Make) -> None:
    # An int of 5001 digits has no repr: with a print after x the program writes "caught", and soundly so.
    code = "try:\n    x = 10 ** 5000\n    print('fine')\nexcept ValueError:\n    print('caught')\n"
    source = write_rows(tmp_path / "rows.jsonl", code, "print(2)\n")
    printed = [inject(code, task_id) != code for task_id in range(0, 8, 2)]
    assert True in printed and False in printed
    env = make_env(source=source, task_ids=[(0, 20)])
    for number, disturbed in enumerate(printed):
        _, info = env.reset(seed=0, options={"task_id": 2 * number})
        assert (info["row"], info["replaced"]) == ((1, 1) if disturbed else (0, 0))
        assert env.trace.truth == ("2\n" if disturbed else "fine\n")


def test_inputs_that_nobody_could_show_give_way(tmp_path: Path, make_env: Make) -> None:
    file = tmp_path / "rows.jsonl"
    rows_of_both = ({"program": "print(1)", "inputs": text} for text in ("\ud800", ""))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows_of_both))
    env = make_env(source=str(file), task_id=0)
    text, info = env.reset(seed=0)
    assert (info["row"], info["replaced"]) == (1, 1) and text.encode()


def test_a_path_is_the_file_that_it_names_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_env: Make
) -> None:
    def truth() -> str:
        env = make_env(source="rows.jsonl", task_id=0)
        env.reset(seed=0)
        return env.trace.truth

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "rows.jsonl", f"print('{name}')")
        monkeypatch.chdir(tmp_path / name)
        assert truth() == f"{name}\n"
    write_rows(Path("rows.jsonl"), "print('three')")
    assert truth() == "three\n" == truth()


def test_nothing_but_unsound_rows(tmp_path: Path, make_env: Make) -> None:
    source = write_rows(tmp_path / "rows.jsonl", *(f"len(str({n}))\n" for n in range(3)))
    env = make_env(source=source, task_id=1)
    with pytest.raises(AdmissionError, match=r"row 1.*prints nothing; so are those that could stand in"):
        env.reset(seed=0)


# -- the hub with its real libraries, from our own server, each access in its own process ------------------

LOOK = """
import json, sys, gymnasium as gym, trace_gym
from trace_gym.programs.sources import open_source
from task_gym.errors import TaskGymError
for source in sys.argv[1:]:
    try:
        found = open_source(source)
        program = next(found.candidates(len(found)))
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


def letter_rows(letter: str, count: int) -> list[dict[str, Any]]:
    return [{"program": f"print({letter!r}, {n})", "inputs": f"{letter}\n"} for n in range(count)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, Hub(DATASET))


def opened(letter: str, count: int, commit: str) -> list[Any]:
    return [f"hub@{commit}", count, f"print({letter!r}, 0)", f"{letter}\n"]


@pytest.mark.launch
def test_the_first_use_settles_the_commit(machine: Machine, tmp_path: Path) -> None:
    hub = machine.hub
    first = hub.put(letter_rows("a", 3))
    with served(hub):
        assert machine.look("hub", "hub@main") == [opened("a", 3, first)] * 2
        assert machine.note.read_text() == f"{first}\n"
        second = hub.put(letter_rows("b", 5))
        reports = machine.look("hub", "hub@main", f"hub@{second}", f"hub@{NEVER}")
        assert reports[:3] == [opened("a", 3, first), opened("b", 5, second), opened("b", 5, second)]
        assert reports[3] == ["SourceError", f"source: {DATASET} has no revision {NEVER}"]
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


@pytest.mark.launch
def test_a_cache_that_lacks_the_list_of_files_is_no_commit(machine: Machine) -> None:
    """Other tools fetch single files of a commit, and do not cache the list of its files."""
    commit = machine.hub.put(letter_rows("a", 3))
    fetch = "from huggingface_hub import hf_hub_download\n"
    fetch += f"hf_hub_download({DATASET!r}, 'data/train.jsonl', repo_type='dataset')"
    with served(machine.hub):
        machine.run(fetch)
    for kind, message in machine.look("hub", f"hub@{commit}", HF_HUB_OFFLINE="1"):
        assert kind == "SourceError" and "cannot be had" in message
    assert not machine.note.exists()


@pytest.mark.launch
def test_notes_that_cannot_be_followed(machine: Machine) -> None:
    hub, note = machine.hub, machine.note
    first = hub.put(letter_rows("a", 3))
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
