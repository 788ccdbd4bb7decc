"""Runs against opponents that search: the same bits on any number of threads, and after a resume."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gamespiel import assembly, training
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.manifest import replace_file
from gamespiel.config import Config, saved_config
from gamespiel.environments import make_envs
from tests.gamespiel.runs import assert_same_run, quiet, small, train_quietly

SHORT = {
    "env__opponent": "mcts:5x1", "ppo__num_train_steps": "2", "run__eval_games": "2", "run__eval_steps": "1",
    "run__eval_episodes": "2", "run__exact_every": "0",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def parts_everywhere() -> Iterator[None]:
    """Searches that are this short would have one part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.0)
        yield


def search_config(folder: Path, threads: int | None, **more: str) -> Config:
    """Returns the small configuration against a small search, of two steps."""
    return small(folder, run__env_threads="null" if threads is None else str(threads), **SHORT | more)


@pytest.mark.families
def test_searches_in_python_change_no_bit_either(tmp_path: Path) -> None:
    runs = [
        train_quietly(search_config(tmp_path / str(threads), threads, env__opponent="mcts-python:6x2"))
        for threads in (1, 2)
    ]
    assert_same_run(*runs)


@pytest.mark.trains
@pytest.mark.parametrize(("game", "dtype"), [("leduc_poker", "float32"), ("kuhn_poker", "bfloat16")])
def test_threads_change_no_bit(game: str, dtype: str, tmp_path: Path) -> None:
    runs = [
        train_quietly(search_config(tmp_path / str(threads), threads, env__game=game, model__dtype=dtype))
        for threads in (1, 4, None)
    ]
    for run in runs[1:]:
        assert_same_run(run, runs[0])
    assert torch.get_num_threads() == 1  # run.num_threads, whatever the searches use


def parts_of(config: Config) -> int | None:
    return assembly.make_algorithm(config).parts


def test_parts_where_a_search_may_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [{"name": "easy", "opponent": "first"}, {"name": "hard", "opponent": {"first": 1, "NAME": 1}}]
    for name, parts in (("mcts:5", 2), ("random", 1), ("ismcts:5", 2)):
        assert parts_of(small(tmp_path, env__opponent=name)) == parts
        staged = json.dumps(stages).replace("NAME", name)
        assert parts_of(small(tmp_path, curriculum__stages=staged)) == parts
    # There, all move at once, and "random" plays in place of a search.
    assert parts_of(small(tmp_path, env__game="matching_pennies_3p", env__opponent="mcts:5")) == 1
    mixed = small(tmp_path, env__opponent=json.dumps({"self": 1, "mcts:5": 1}))
    assert parts_of(mixed) == 2
    # The dearest stage decides: six episodes of 1.9 s and of 0.02 s in othello.
    monkeypatch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.6)
    for budget, parts in (("mcts:500x20", 2), ("mcts:50x2", 1)):
        staged = json.dumps(stages).replace("NAME", budget)
        assert parts_of(small(tmp_path, env__game="othello", curriculum__stages=staged)) == parts


@pytest.mark.parametrize(
    ("game", "opponent", "episodes", "parts"),
    [
        ("liars_dice", "mcts", 32, 1),  # upstream's budget, at most 3.2 ms per move: 0.1 s in a round of 32
        ("othello", "mcts", 1, 2),  # 3.8 s
        ("othello", "mcts:40x3", 32, 2),  # 120 of 20,000 rollouts: 23 ms, 0.73 s in a round
        ("othello", "mcts:40x3", 16, 1),
        ("othello", "mcts:5x1", 512, 1),  # 1 ms, 0.49 s in a round
        ("othello", '{"random": 3, "mcts:40x3": 1}', 32, 1),  # a quarter of 0.73 s
        ("hex", "mcts:50x2", 32, 1),  # 11x11 by default: 100 of 50,000 rollouts of 2.15 s, 4 ms
    ],
)
def test_parts_follow_from_the_budget(
    game: str, opponent: str, episodes: int, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.6)
    config = small(tmp_path, env__game=game, env__opponent=opponent)
    assert make_envs(config.env, episodes).parts == parts


@pytest.fixture(scope="module")
def search_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_quietly(search_config(tmp_path_factory.mktemp("searched") / "run", 2))


def go_back(search_run: Path, run: Path) -> Path:
    """Copies a run without its last checkpoint; returns the one before."""
    shutil.copytree(search_run, run)
    shutil.rmtree(checkpoint.checkpoints(run)[-1])
    return checkpoint.find(run)


def test_a_resumed_run_may_have_other_threads(search_run: Path, tmp_path: Path) -> None:
    go_back(search_run, tmp_path / "run")
    config, console = saved_config(search_run), quiet()
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, env_threads=4, output_dir=None))
    run = training.train(config, tmp_path / "run", console)
    assert_same_run(run, search_run)
    assert "not bit for bit" not in console.file.getvalue()  # type: ignore[attr-defined]


def change_parts(start: Path, parts: object) -> None:
    """Writes other parts into a checkpoint; None for none, as earlier versions."""
    state = json.loads((start / "state.json").read_text())
    assert state.pop("parts") == 2
    replace_file(start, "state.json", json.dumps(state if parts is None else state | {"parts": parts}))


def test_a_run_of_an_earlier_version_goes_on_and_says_so(search_run: Path, tmp_path: Path) -> None:
    start, console = go_back(search_run, tmp_path / "run"), quiet()
    change_parts(start, None)
    run = training.train(saved_config(search_run), tmp_path / "run", console)
    said = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "its episodes now take their turns in 2 parts, so it goes on, but not bit for bit" in said
    assert checkpoint.records_parts(checkpoint.find(run))


def test_a_run_keeps_its_parts(search_run: Path, tmp_path: Path) -> None:
    """Even if the rule that decides them is another one by then."""
    start = go_back(search_run, tmp_path / "run")
    change_parts(start, 1)
    model = assembly.make_algorithm(saved_config(search_run))
    assert model.parts == 2
    checkpoint.load(model, start)
    assert model.parts == 1
    state = json.loads((start / "state.json").read_text())
    replace_file(start, "state.json", json.dumps(state | {"parts": "2"}))
    with pytest.raises(CheckpointError, match="parts is '2': Input should be a valid integer"):
        checkpoint.load(model, start)


def test_a_saved_learner_keeps_its_parts(tmp_path: Path) -> None:
    model = assembly.make_algorithm(search_config(tmp_path, 1))
    model.save(tmp_path / "model")
    assert LLMPPO.load(tmp_path / "model").parts == 2
    plain = assembly.make_algorithm(small(tmp_path))
    assert LLMPPO.load(tmp_path / "model", env=plain.env).parts == 2
