"""Tests of sources: files of both kinds, the hub through a stand-in, and errors that say what to do."""

from __future__ import annotations

import json
import pickle
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import AdmissionError, EpisodeError, SourceError
from tests.trace_gym.rows import EVERY, PATH, SIZE, rows
from trace_gym.inject import inject
from trace_gym.programs import hub, sources
from trace_gym.programs.base import TASKS, Program
from trace_gym.programs.builtin.tasks import CELLS, split
from trace_gym.programs.sources import BuiltinSource, RowSource, open_source


@pytest.fixture(autouse=True)
def fresh() -> None:
    sources._open.cache_clear()
    sources._open_hub.cache_clear()
    hub.commit_of.cache_clear()


def write(folder: Path, *programs: str, inputs: str = "") -> str:
    """Returns a file's path, with a row for each program."""
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps({"program": text, "inputs": inputs}) + "\n" for text in programs))
    return str(file)


def rows_of(source: Any, count: int) -> list[Program]:
    return [next(source.candidates(task_id)).program for task_id in range(count)]


EXPECTED = [Program(row.program, row.inputs, "", 0) for row in rows()]


def test_jsonl() -> None:
    source = open_source(str(PATH))
    assert isinstance(source, RowSource) and len(source) == SIZE
    assert rows_of(source, SIZE) == EXPECTED
    assert open_source(str(PATH)) is source


def test_parquet(tmp_path: Path) -> None:
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


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SourceError, match=r"needs pyarrow: pip install 'gamespiel\[hub\]'"):
        open_source(str(tmp_path / "rows.parquet"))


def test_a_task_id_is_a_row_and_the_next_ones_stand_in() -> None:
    source = RowSource([{"program": str(n), "inputs": None} for n in range(5)], "five")
    found = list(source.candidates(13))  # 13 mod 5 = 3
    assert [candidate.row for candidate in found] == [3, 4, 0, 1, 2]
    assert [candidate.program.code for candidate in found] == ["3", "4", "0", "1", "2"]


def test_builtin_programs_stand_in_for_their_own_kind() -> None:
    task_id = TASKS - 1
    found = [candidate.program for candidate in islice(BuiltinSource().candidates(task_id), 3)]
    assert {(program.family, program.level) for program in found} == {split(task_id)}
    assert TASKS % CELLS == 0  # so that ids go round without a change of kind
    assert len({program.code for program in found}) > 1


@pytest.mark.parametrize(
    ("inputs", "stdin"), [("a\nb\n", "a\nb\n"), (["a", "b"], "a\nb"), ([], ""), (None, ""), ("", "")]
)
def test_kinds_of_inputs(inputs: Any, stdin: str) -> None:
    [program] = rows_of(RowSource([{"program": "print(1)", "inputs": inputs}], "one"), 1)
    assert program.stdin == stdin


@pytest.mark.parametrize(
    "row", [{"program": None, "inputs": ""}, {"program": "x", "inputs": 5}, {"program": "x", "inputs": [1]}]
)
def test_rows_that_are_no_texts(row: Any) -> None:
    with pytest.raises(SourceError, match=r"row 0 of one was given with program .* allowed: texts"):
        rows_of(RowSource([row], "one"), 1)


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


@pytest.mark.parametrize("source", ["hub", f"hub@{COMMIT}"])
def test_the_hub(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(commit: str) -> Any:
        loaded.append(commit)
        return Rows({"program": row.program, "inputs": row.inputs, "output": ""} for row in rows())

    monkeypatch.setattr(
        hub, "commit_of", lambda revision: {None: COMMIT, "main": COMMIT}.get(revision, revision)
    )
    monkeypatch.setattr(hub, "rows_at", load)
    env: Any = gym.make("CodeTrace-v0", source=source, task_ids=[(0, 10**6)]).unwrapped
    _, info = env.reset(seed=0, options={"task_id": 1000 * SIZE + EVERY - 1})  # an unsound one
    assert (info["row"], info["replaced"], info["family"], info["level"]) == (EVERY, 1, None, None)
    assert info["source"] == env.source == f"hub@{COMMIT}"
    copy = pickle.loads(pickle.dumps(env))
    assert copy._arguments["source"] == env.source  # whatever "hub" means where it is made
    assert copy._backend is env._backend
    env.close()
    assert loaded == [COMMIT]


def test_the_hub_with_other_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "rows_at", lambda commit: SimpleNamespace(column_names=["text"]))
    message = f"source: the hub's {hub.DATASET} at {COMMIT} has no column 'program'; it has: text"
    with pytest.raises(SourceError, match=message):
        gym.make("CodeTrace-v0", source=f"hub@{COMMIT}")


def test_the_hub_without_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SourceError, match=r"which needs huggingface_hub: pip install 'gamespiel\[hub\]'"):
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


# Rows 4, 9, … are unsound, and the next one after each is sound.
@pytest.mark.parametrize("row", [0, 199])
def test_unsound_rows_give_way_to_the_next(row: int) -> None:
    env: Any = gym.make("CodeTrace-v0", source=str(PATH), task_id=row + 7 * SIZE).unwrapped
    text, info = env.reset(seed=0)
    unsound = row % EVERY == EVERY - 1
    assert (info["row"], info["replaced"]) == ((row + unsound) % SIZE, int(unsound))
    assert rows()[info["row"]].inputs in text
    env.close()


def test_upstreams_injection_takes_the_row_or_says_why_not() -> None:
    env: Any = gym.make("CodeTrace-v0", source=str(PATH), task_ids=[(0, 20)], injector="affine").unwrapped
    _, info = env.reset(seed=0, options={"task_id": 0})
    assert (info["row"], info["replaced"]) == (0, 0)
    with pytest.raises(
        AdmissionError, match=r"task id: 4 \(row 4\) was given, whose program is unsound: .*Zero"
    ):
        env.reset(seed=0, options={"task_id": 4})
    assert env.trace is None  # nothing of the episode before is left
    with pytest.raises(EpisodeError):
        env.step("")
    env.close()


def test_a_program_that_its_prints_disturb_gives_way(tmp_path: Path) -> None:
    # An int of 5001 digits has no repr: with a print after x the program writes "caught", and soundly so.
    code = "try:\n    x = 10 ** 5000\n    print('fine')\nexcept ValueError:\n    print('caught')\n"
    source = write(tmp_path, code, "print(2)\n")
    printed = [inject(code, task_id) != code for task_id in range(0, 8, 2)]
    assert True in printed and False in printed
    env: Any = gym.make("CodeTrace-v0", source=source, task_ids=[(0, 20)]).unwrapped
    for number, disturbed in enumerate(printed):
        _, info = env.reset(seed=0, options={"task_id": 2 * number})
        assert (info["row"], info["replaced"]) == ((1, 1) if disturbed else (0, 0))
        assert env.trace.truth == ("2\n" if disturbed else "fine\n")
    env.close()


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"program": "print(1)", "inputs": "\u00e9"}\r\n', encoding="utf-8-sig", newline="")
    assert rows_of(open_source(str(file)), 1) == [Program("print(1)", "\u00e9", "", 0)]


def test_inputs_that_nobody_could_show_give_way(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(json.dumps({"program": "print(1)", "inputs": text}) + "\n" for text in ("\ud800", ""))
    )
    env: Any = gym.make("CodeTrace-v0", source=str(file), task_id=0).unwrapped
    text, info = env.reset(seed=0)
    assert (info["row"], info["replaced"]) == (1, 1) and text.encode()
    env.close()


def test_a_path_is_the_file_that_it_names_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def truth() -> str:
        env: Any = gym.make("CodeTrace-v0", source="rows.jsonl", task_id=0).unwrapped
        env.reset(seed=0)
        made.append(env)
        return env.trace.truth

    made: list[Any] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f"print('{name}')")
        monkeypatch.chdir(tmp_path / name)
        assert truth() == f"{name}\n"
    write(Path(), "print('three')")
    assert truth() == "three\n" == truth()
    for env in made:
        env.close()


def test_nothing_but_unsound_rows(tmp_path: Path) -> None:
    source = write(tmp_path, *(f"len(str({n}))\n" for n in range(3)))
    env: Any = gym.make("CodeTrace-v0", source=source, task_id=1).unwrapped
    with pytest.raises(
        AdmissionError, match=r"row 1.*prints nothing; so are those that could stand in for it"
    ):
        env.reset(seed=0)
    env.close()
