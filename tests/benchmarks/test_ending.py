"""The place of a benchmark's results: a new file, or the one that `--keep` or `--out` names."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import ending

TRACKED = ending.RESULTS
NEW = Path("runs", "benchmarks")

SMALLEST: dict[str, str] = {
    "matches": "leduc_poker mcts:2x1 mcts:3x1 --games 4",
    "gpu.check": "--small --stages facts",
    "coverage": "--families 1",
    "env_speed": "--games leduc_poker goofspiel --seconds 0.01",
    "promotion": "--runs 2",
    "scores": "--games goofspiel --agents random --episodes 1",
    "trace_learning": "--traces 3 --threads 1 --ppo.num_train_steps=2 --ppo.batch_size=4 --ppo.ppo_epochs=1 "
    "--env.task_ids=[[0,319]]",
    "trace_scores": "--families sorting --tasks 2",
    "train_speed": "--model tiny --repetitions 1",
}
"""Benchmarks that are quick with their smallest settings."""
OTHERS = {"advantages", "curricula", "learning_speed", "scale"}
"""Benchmarks that draw a picture or take long. Other files test them or their parts."""


def sample(argv: Sequence[str], number: float = 1, draw: ending.Draw | None = None) -> dict[str, Any]:
    """Runs a benchmark that measures nothing."""
    arguments = ending.parse(argparse.ArgumentParser(), argv)
    return ending.end({"benchmark": "sample", "number": number}, arguments.out, draw)


def picture(results: dict[str, Any], path: Path) -> None:
    path.write_text(f"a picture of {results['number']}")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(autouse=True)
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes an empty folder the current directory."""
    here = tmp_path / "cwd"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def results_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that takes the place of `benchmarks/results`."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(ending, "RESULTS", folder)
    return folder


# -- the common ending -------------------------------------------------------------------------------------


def test_keep_overwrites_the_kept_files_from_any_directory(
    results_dir: Path, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results_dir / "sample.json").write_text("an old and much longer line that must be gone altogether\n")
    (results_dir / "sample.png").write_text("old")
    (results_dir / "another.json").write_text("untouched")
    sample(["--keep"], 7, picture)
    *where, line = capsys.readouterr().out.splitlines()
    assert where == [f"written to {results_dir / 'sample.json'}", f"written to {results_dir / 'sample.png'}"]
    assert contents(results_dir) == {
        "sample.json": f"{line}\n".encode(), "sample.png": b"a picture of 7", "another.json": b"untouched"
    }  # fmt: skip
    assert list(cwd.iterdir()) == []


def test_a_place_of_ones_own(cwd: Path) -> None:
    (cwd / "old.json").mkdir()  # a folder, whatever it is called
    for option, value, path in (
        ("--out", "new/folder", "new/folder/sample.json"),
        ("--output", "new/mine.json", "new/mine.json"),
        ("--out", "old.json", "old.json/sample.json"),
    ):
        for number in range(2):
            sample([option, value], number, picture)
            assert json.loads((cwd / path).read_text())["number"] == number
            assert (cwd / path).with_suffix(".png").read_text() == f"a picture of {number}"
    assert not (cwd / "runs").exists()


def test_results_have_the_command_without_folders(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv", ["/srv/me/benchmarks/sample.py", "--out", f"{cwd}/x.json", "--games", "a b"]
    )
    results = sample(["--out", "x.json"])
    assert results["command"] == "python -m benchmarks.sample --out x.json --games 'a b'"
    rows = [{"machine": 1, "game": "go"}]
    for games in ("go", "hex"):  # a row that is there already keeps its command
        monkeypatch.setattr("sys.argv", ["benchmarks/sample.py", games])
        rows = ending.end({"benchmark": "sample", "rows": [*rows, {"game": games}]}, Path("y.json"))["rows"]
    assert [row.get("command", "").split()[-1] for row in rows] == ["go", "go", "hex"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--keep", "--out", "x"], "argument --out/--output: not allowed with argument --keep"),
        (["--out", "a_file"], "cannot make the folder 'a_file' for the results: File exists; "),
        (["--out", "a_file/x.json"], "cannot make the folder 'a_file' for the results: File exists; "),
        (["--out", "a_file/x"], "--out takes a folder, or a file that ends in .json"),
    ],
)
def test_a_place_that_cannot_be_is_an_error_before_the_run(
    argv: list[str], message: str, cwd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cwd / "a_file").touch()
    with pytest.raises(SystemExit):
        ending.parse(argparse.ArgumentParser(), argv)
    assert message in capsys.readouterr().err


# -- the benchmarks ----------------------------------------------------------------------------------------


def test_every_benchmark_is_here() -> None:
    assert set(SMALLEST) | OTHERS == {
        ".".join(path.relative_to(TRACKED.parent).with_suffix("").parts)
        for path in TRACKED.parent.rglob("*.py")
        if "def main(" in path.read_text(encoding="utf-8")
    }


@pytest.mark.trains
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.sample if name == "promotion" else ()) for name in SMALLEST]
)
def test_a_benchmark_leaves_what_is_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(TRACKED)
    main = importlib.import_module(f"benchmarks.{name}").main
    NEW.mkdir(parents=True)
    seen = {f"{name}-20261122-101112.json": b"of an earlier run"}
    (NEW / f"{name}-20261122-101112.json").write_bytes(b"of an earlier run")
    results = main(SMALLEST[name].split())
    written = contents(NEW)
    (fresh,) = set(written) - set(seen)
    assert fresh.partition("-")[0] == name and seen.items() <= written.items()
    *_, place, line = capsys.readouterr().out.splitlines()
    assert place == f"written to {NEW / fresh}"
    assert json.loads(line) == results == json.loads(written[fresh])
    assert contents(TRACKED) == before
