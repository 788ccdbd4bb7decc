"""Checkpoints are whole or known not to be: kills, torn and changed files, other versions."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import catalog, checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.loggers import find_gaps
from gamespiel.agents.runs.manifest import is_whole, write_manifest
from tests.agents.test_checkpoint import trained

__all__ = ["trained"]

OPERATIONS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")
"""Operations that Python reports before it does them. A kill before each is a kill between any two."""


@pytest.fixture(scope="module")
def saved(trained: LLMPPO, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a checkpoint of step 2."""
    run = tmp_path_factory.mktemp("run")
    checkpoint.save(trained, run)
    return run


def kill_before(number: int, do: Callable[[], object]) -> bool:
    """Does something in a child that is killed before an operation, by number; returns whether it was."""
    child = os.fork()
    if child == 0:
        done = 0

        def count(event: str, arguments: object) -> None:
            nonlocal done
            if event in OPERATIONS:
                done += 1
                if done == number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        do()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize(
    ("again", "stride"),
    [
        pytest.param(False, 1, marks=pytest.mark.launch, id="the next step"),
        pytest.param(True, 1, marks=pytest.mark.launch, id="the same step"),
        pytest.param(True, 11, marks=[pytest.mark.launch, pytest.mark.sample], id="some moments"),
    ],
)
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(
    again: bool, stride: int, trained: LLMPPO, saved: Path, tmp_path: Path
) -> None:
    step = trained.step
    for number in range(1, 1000, stride):
        run = tmp_path / str(number)
        shutil.copytree(saved, run)

        def save(run: Path = run) -> None:
            trained.step = step if again else step + 1
            checkpoint.save(trained, run)
            catalog.prune(run, 1)

        killed = kill_before(number, save)
        folder = checkpoint.find(run)
        assert is_whole(folder) and catalog.find_whole(run) == folder
        checkpoint.load(trained, folder)
        assert trained.step in ((step,) if again else (step, step + 1))
        checkpoint.save(trained, run)  # what a kill has left is no obstacle
        trained.step = step
        if not killed:
            break
        shutil.rmtree(run)
    assert 20 < number < 900  # files, folders and moves of one checkpoint


@pytest.mark.launch
@pytest.mark.sample
def test_a_kill_while_a_state_is_written_anew_leaves_it_whole(
    trained: LLMPPO, saved: Path, tmp_path: Path
) -> None:
    for number in range(1, 100):
        run = tmp_path / str(number)
        shutil.copytree(saved, run)
        folder = checkpoint.find(run)

        def change(folder: Path = folder) -> None:
            trained.backoff = trained.backoff.after(5)
            checkpoint.save_state(trained, folder)

        killed = kill_before(number, change)
        assert is_whole(folder)
        if not killed:
            break
    state = json.loads((folder / "state.json").read_text())
    assert 5 < number < 90 and state["backoff"]["halvings"] == 1


FILES = (
    "manifest.json", "state.json", "optimizer.safetensors", "value_head.safetensors",
    "adapter/adapter_model.safetensors",
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), cut=st.booleans(), seed=st.integers(0, 2**32))
def test_torn_and_flipped_files_are_named(
    name: str, cut: bool, seed: int, trained: LLMPPO, saved: Path, tmp_path: Path
) -> None:
    """Cut at any byte, or with any one bit changed; the learner stays as it was."""
    run = tmp_path / str(seed)
    shutil.copytree(saved, run, dirs_exist_ok=True)
    path = checkpoint.find(run) / name
    content = bytearray(path.read_bytes())
    place = random.Random(seed).randrange(len(content))
    if cut:
        del content[place:]
    else:
        content[place] ^= 1 << seed % 8
    path.write_bytes(content)
    before = {key: value.clone() for key, value in trained.policy.state_dict().items()}
    if name == "manifest.json" and json_equal(path, saved):
        return  # a changed space, or a key's own digest that no longer fits, which is named below
    with pytest.raises(CheckpointError, match=r"step-000002': .*the run has no whole one before it"):
        checkpoint.load(trained, checkpoint.find(run))
    assert all(torch.equal(value, before[key]) for key, value in trained.policy.state_dict().items())
    shutil.rmtree(run)


def json_equal(path: Path, run: Path) -> bool:
    try:
        return bool(
            json.loads(path.read_bytes()) == json.loads((checkpoint.find(run) / "manifest.json").read_bytes())
        )
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", r"has \[\], needed: an object"),
        (b"{}", "step is missing"),
        ({"step": 10**30}, "step is 1000000+: "),
        ({"step": True}, "step is True: "),
        ({"num_timesteps": -1}, "num_timesteps is -1: "),
        ({"seconds": float("inf")}, r"seconds\S* is inf: "),
        ({"tokens": {}}, "tokens.tokens_per_forward is missing"),
        ({"backoff": {"rate_factor": -1}}, r"backoff.rate_factor\S* is -1: "),
        ({"parts": ...}, "parts is missing"),
        ({"pool": [{"step": 1}]}, "pool.0.games is missing"),
    ],
    ids=["a list", "empty", *["a field"] * 8],
)
def test_a_state_that_none_has_is_named(
    content: bytes | dict[str, object], message: str, trained: LLMPPO, saved: Path, tmp_path: Path
) -> None:
    """The manifest agrees with the state. A manifest of the same content is named too."""
    shutil.copytree(saved, tmp_path / "run")
    folder = checkpoint.find(tmp_path / "run")
    if isinstance(content, dict):
        state = json.loads((folder / "state.json").read_text()) | content
        content = json.dumps({key: value for key, value in state.items() if value is not ...}).encode()
    (folder / "state.json").write_bytes(content)
    write_manifest(folder)
    for read in (
        lambda: checkpoint.load(trained, folder),
        lambda: checkpoint.load_policy(trained.policy, folder),
    ):
        with pytest.raises(CheckpointError, match=f"state.json.*{message}"):
            read()
    assert trained.step == 2
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"manifest\.json cannot be read"):
        checkpoint.load(trained, folder)


def test_a_checkpoint_that_is_not_whole_and_the_one_before(
    trained: LLMPPO, saved: Path, tmp_path: Path
) -> None:
    """A card may be changed, and a format may not; a checkpoint needs its manifest."""
    run = tmp_path / "run"
    shutil.copytree(saved, run)
    folder = checkpoint.find(run)
    (folder / "adapter" / "README.md").write_text("mine")
    (folder / "adapter" / "adapter_config.json").unlink()
    checkpoint.load(trained, folder)
    for step in (3, 4):
        trained.step = step
        (checkpoint.save(trained, run) / "optimizer.safetensors").write_bytes(b"")
    trained.step = 2
    with pytest.raises(CheckpointError, match=rf"optimizer.safetensors has .* before it is {run}@2"):
        checkpoint.load(trained, checkpoint.find(run))
    assert catalog.find_whole(run) == folder
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
    with pytest.raises(CheckpointError, match=r"it has format 2, .* up to 1"):
        checkpoint.load(trained, folder)
    (folder / "manifest.json").unlink()
    message = r"step-000002': manifest\.json is missing; the run has no whole one before it"
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(trained, folder)
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load_policy(trained.policy, folder)
    with pytest.raises(CheckpointError, match="holds none that is whole"):
        catalog.find_whole(run)


def test_gaps_of_a_metrics_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert find_gaps(path, 2) == [(1, 2)] and find_gaps(path, 0) == []
    path.write_text("".join(f'{{"step": {step}}}\n' for step in (1, 2, 4, 8)))
    assert find_gaps(path, 9) == [(3, 3), (5, 7), (9, 9)]
