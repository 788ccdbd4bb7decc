"""Two ranks under ``torchrun`` learn what one process learns; see ``tests/gamespiel/ranks.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from gamespiel.agents.ranks import ALONE
from gamespiel.agents.runs import checkpoint
from tests.agents.fake_vllm import FakeVllm
from tests.agents.toys import make_policy
from tests.gamespiel import ranks
from tests.gamespiel.ranks import PLAIN, SCENARIOS, SHORT, config_of, describe_weights, stairs
from tests.gamespiel.runs import (
    ROOT,
    ROUNDED,
    SMALL,
    adapter_distance,
    assert_same_run,
    distance,
    fork,
    options_of,
    rows_of,
    steps_of,
    train_quietly,
)

pytestmark = pytest.mark.launch
SAMPLES = ("exchange", "kuhn")
"""Scenarios of ``make test``, for one test, because each process of pytest-xdist plays its own."""
LONGEST = 900
"""Seconds that a launch may take on a machine that does much else."""


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    """Returns the command that starts two ranks."""
    ranks = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    return [sys.executable, "-m", "torch.distributed.run", *ranks, *arguments]


def environment() -> dict[str, str]:
    """Returns an environment in which each rank has one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def launch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Launches two ranks that play scenarios of ``tests/gamespiel/ranks.py``."""
    return subprocess.run(
        torchrun("-m", "tests.gamespiel.ranks", str(folder), *arguments),
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip


def read_results(scenarios: Path, name: str) -> list[Any]:
    """Returns what the two ranks found in a scenario."""
    return [json.loads((scenarios / f"{name}.{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def fake_server() -> Iterator[FakeVllm]:
    fake = FakeVllm(make_policy(lora={"r": 16}))
    yield fake
    fake.stop()


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the scenarios of ``make test``.

    Two forks of this process played them, which has imported everything; it has the launcher's part.
    """
    folder = tmp_path_factory.mktemp("ranks")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    told |= {"LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    told |= {"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_RUN_ID": "none"}

    def play(rank: str) -> None:
        os.environ.update(told | {"RANK": rank, "LOCAL_RANK": rank})
        ranks.main([str(folder), "", *SAMPLES])

    children = [fork(partial(play, rank)) for rank in ("0", "1")]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    return folder


@pytest.fixture(scope="module")
def scenarios(samples: Path, fake_server: FakeVllm) -> Path:
    """The folder of all scenarios, of which another launch played the others."""
    ended = launch(samples, fake_server.url, *(name for name in SCENARIOS if name not in (*SAMPLES, "dead")))
    assert ended.returncode == 0, ended.stderr[-4000:]
    return samples


def is_close(metric: Any, value: Any, rounding: float) -> bool:
    """Returns whether metrics are equal but for rounding; lists by their parts."""
    if isinstance(value, list):
        return all(is_close(one, other, rounding) for one, other in zip(metric, value, strict=True))
    if isinstance(value, float):
        return bool(metric == pytest.approx(value, rel=1e-3, abs=rounding))
    return bool(metric == value)


def assert_learned_alike(run: Path, name: str, folder: Path) -> None:
    """Compares a run of two ranks with that of one process, which it makes in a folder.

    Only the order of float sums differs. What was read for it is another number of tokens.
    """
    one = train_quietly(config_of(name, folder))
    rows, expected = rows_of(run), rows_of(one)
    assert len(rows) == len(expected) == 3
    for entry, row in zip(rows, expected, strict=True):
        assert entry.keys() == row.keys()
        for key, value in row.items():
            if "tokens_per" not in key:
                assert is_close(entry[key], value, 2e-5 if "sampler_gap" in key else 2e-6), (row["step"], key)
        for key in ("decisions", "rollout/reward", "rollout/episodes"):
            assert entry[key] == row[key], key
    assert adapter_distance(run, one) < ROUNDED
    states = [checkpoint.find(each) / checkpoint.SAMPLERS for each in (run, one)]
    assert states[0].exists() == states[1].exists() == (name == "curriculum")
    if states[0].exists():
        assert states[0].read_text() == states[1].read_text()


@pytest.mark.sample
def test_ranks_exchange_what_each_has_and_act_as_one(samples: Path, tmp_path: Path) -> None:
    values = read_results(samples, "exchange")
    assert [each["share"] for each in values] == [[0, 2, 4], [1, 3]]
    for each in values:
        assert each["gathered"] == [{"rank": 0}, {"rank": 1}] and each["led"] == each["once"] == "rank 0"
        assert each["agreed"] == [True, False] and each["total"] == 1 + 2
        assert each["joined"] == [7.0]  # none of the first rank's, one of the second's
        # 3 + nothing; a parameter without a gradient on any rank has none, so that AdamW leaves it alone.
        assert each["gradients"] == [[[3.0, 3.0], [3.0, 3.0]], None]
        assert each["differing"].startswith("RanksDifferError: ranks differ in names, and must not: rank 0: ")
    failed = [each["failed"] for each in values]
    assert failed[1] == "OSError: no space on this machine"
    assert failed[0] == "RankFailedError: rank 1 failed: OSError: no space on this machine"
    assert_learned_alike(samples / "kuhn", "kuhn", tmp_path / "one")


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "kuhn"])
def test_two_ranks_act_as_one_and_learn_the_same_but_for_rounding(
    name: str, scenarios: Path, tmp_path: Path
) -> None:
    assert_learned_alike(scenarios / name, name, tmp_path / "one")


def test_a_rank_with_nothing_but_faults(scenarios: Path) -> None:
    """The second rank adds nothing, and learns from the first one's episodes, some of which are cut."""
    ours = read_results(scenarios, "faults")
    assert ours[0] == ours[1]
    model = stairs(ALONE)
    model.learn()
    theirs = describe_weights(model)
    assert ours[0]["decisions"] == theirs["decisions"] and ours[0]["rewards"] == theirs["rewards"]
    assert distance(ours[0]["weights"], theirs["weights"]) < ROUNDED
    for name, weights in theirs["weights"].items():  # a tenth of one step, of what is no adapter
        if "lora_" not in name:
            assert ours[0]["weights"][name] == pytest.approx(weights, abs=1e-4), name


def test_one_server_for_both(scenarios: Path, fake_server: FakeVllm) -> None:
    """The first rank loads each version once, and nothing of it is left: on the server, or in the folder."""
    rows, plain = rows_of(scenarios / "served"), rows_of(scenarios / "kuhn")
    for row, expected in zip(rows, plain, strict=True):
        assert (
            row["rollout/reward"] == expected["rollout/reward"] and row["decisions"] == expected["decisions"]
        )
        assert row["train/policy_loss"] == pytest.approx(expected["train/policy_loss"], rel=1e-3, abs=1e-5)
        assert row["train/sampler_gap_max"] < 1e-4
    # Those of the check, of the start, and of each of the three steps.
    assert len(fake_server.ever_loaded) == len(set(fake_server.ever_loaded)) == 1 + 1 + 3
    assert len({name.rpartition("-")[0] for name in fake_server.ever_loaded}) == 1
    assert fake_server.loaded == {}
    assert fake_server.requests


def test_ctrl_c_at_one_rank_stops_both_with_a_checkpoint(scenarios: Path) -> None:
    for each in read_results(scenarios, "stopped"):
        assert each == {"error": "Stopped: Ctrl-C", "kept": ["step-000000", "step-000002"]}
    assert_same_run_but_for_summary(scenarios / "stopped", scenarios / "kuhn")


def test_memory_that_one_rank_lacks_is_saved_by_both(scenarios: Path) -> None:
    assert read_results(scenarios, "short of memory") == ["", ""]
    rows, plain = rows_of(scenarios / "memory"), rows_of(scenarios / "kuhn")
    assert rows[0]["train/tokens_per_backward"] < plain[0]["train/tokens_per_backward"]
    assert adapter_distance(scenarios / "memory", scenarios / "kuhn") < ROUNDED


def test_both_go_back_when_one_diverges(scenarios: Path) -> None:
    assert read_results(scenarios, "diverged") == ["", ""]
    state = json.loads((checkpoint.find(scenarios / "diverged") / "state.json").read_text())
    assert state["step"] == 3 and state["backoff"] == {"rate_factor": 0.5, "step": 2, "halvings": 1}


def test_ranks_that_differ_stop_before_they_save(scenarios: Path) -> None:
    first, second = read_results(scenarios, "differing")
    assert first == second
    said = "RanksDifferError: ranks differ in weights or counters after the update of step 2, and must not: "
    assert first.startswith(said)
    assert steps_of(scenarios / "differing") == [0, 1]  # the second step's weights were not saved


def test_an_error_of_one_rank_ends_both(scenarios: Path) -> None:
    assert read_results(scenarios, "broken") == [
        "RankFailedError: rank 1 failed: OSError: the weights have gone", "OSError: the weights have gone"
    ]  # fmt: skip


def assert_same_run_but_for_summary(run: Path, other: Path) -> None:
    """Compares two runs bit for bit; one that was stopped has no measures from its end."""
    for folder in (run, other):
        (folder / "summary.json").write_text("{}")
    assert_same_run(run, other)


def test_a_rank_that_is_killed_ends_the_other_at_once(tmp_path: Path) -> None:
    """The launcher's SIGTERM is ignored by the other rank, and it kills what is there 30 seconds later."""
    ended = launch(tmp_path, "", "dead")
    assert ended.returncode == 1 and "exitcode  : -9" in ended.stderr, ended.stderr[-4000:]
    error = json.loads((tmp_path / "dead.0.json").read_text())
    assert error.startswith("RankLostError: rank 0 has lost another rank, or the connection to it: "), error
    assert not (tmp_path / "dead.1.json").exists()


def test_a_rank_that_is_killed_costs_nothing(scenarios: Path, tmp_path: Path) -> None:
    """``torchrun`` starts both again, and they go on by themselves to the same end, bit for bit.

    The command does not ask to resume: the first world began the run.
    """
    run = tmp_path / "run"
    options = SMALL | SHORT | PLAIN["kuhn"][1] | {"run.output_dir": str(run)}
    command = torchrun(str(ROOT / "train.py"), *options_of(options), restarts=1)
    launched = subprocess.Popen(
        command, cwd=tmp_path, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        kill_second_rank(launched.pid, run)
        said, _ = launched.communicate(timeout=LONGEST)
    finally:
        launched.kill()
    assert launched.returncode == 0, said[-4000:]
    assert said.count("run folder: ") == 2, said[-4000:]  # two worlds, of which one rank each speaks
    assert_same_run_but_for_summary(run, scenarios / "kuhn")


def kill_second_rank(launcher: int, run: Path) -> None:
    """Kills the second rank with SIGKILL, as soon as the first step is saved."""
    deadline = time.monotonic() + LONGEST
    while not (run / "checkpoints" / "step-000001").exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in map(int, children):
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if b"RANK=1" in variables:
            os.kill(child, 9)
            return
    raise AssertionError(f"{children} have no second rank")
