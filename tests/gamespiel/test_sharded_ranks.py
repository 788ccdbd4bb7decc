"""Two ranks that share a sharded base learn what two with a base each learn; see ``sharded_ranks.py``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch

from gamespiel.agents.runs import checkpoint
from tests.gamespiel.launches import (
    LONGEST,
    ROUNDED,
    adapter_distance,
    adapters_of,
    environment,
    play_scenarios,
    read_results,
    torchrun,
)
from tests.gamespiel.runs import ROOT, rows_of
from tests.gamespiel.sharded_ranks import READ_FAMILIES, RUNS

pytestmark = pytest.mark.launch

MODULE = "tests.gamespiel.sharded_ranks"


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all scenarios, which one launch played."""
    return play_scenarios(MODULE, tmp_path_factory.mktemp("sharded"))


@pytest.mark.parametrize("name", RUNS)
def test_a_sharded_base_learns_what_a_replicated_one_learns_to_the_bit(name: str, scenarios: Path) -> None:
    """Weights that were gathered are the same numbers, and so is all that follows from them."""
    sharded, replicated = (scenarios / name / kind for kind in ("sharded", "replicated"))
    ours, theirs = adapters_of(sharded), adapters_of(replicated)
    assert ours.keys() == theirs.keys()
    assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []
    assert rows_of(sharded) == rows_of(replicated)
    assert len(rows_of(sharded)) == 3


def test_each_rank_has_half_of_the_layers(scenarios: Path) -> None:
    """The embedded model has two layers of width 64, heads of 4 · 16 and 2 · 16, and 192 inside.

    A layer has 64 · (64 + 32 + 32 + 64) + 3 · 64 · 192 weights and 2 · 64 + 2 · 16 of norms: 49,312. All rows
    are even in number, so each of two ranks has exactly half, whenever no layer is being read.
    """
    phases = ("loaded", "episodes played", "turns learned from", "learned")
    assert read_results(scenarios, "parts") == [{phase: [49_312] for phase in phases}] * 2


def test_families_are_read_as_they_are_without(scenarios: Path) -> None:
    equal = {f"{family}, {reading}": True for family in READ_FAMILIES for reading in ("padded", "shared")}
    assert read_results(scenarios, "families") == [equal, equal]


@pytest.mark.parametrize("place", ["in a forward", "in a backward pass"])
def test_an_update_is_repeated_when_memory_runs_out_in_a_layer(place: str, scenarios: Path) -> None:
    """The forwards are smaller then, so float sums round in other ways."""
    assert read_results(scenarios, f"memory {place}") == ["", ""]
    run, plain = scenarios / f"memory {place}", scenarios / "kuhn" / "sharded"
    assert rows_of(run)[0]["train/tokens_per_backward"] < rows_of(plain)[0]["train/tokens_per_backward"]
    assert adapter_distance(run, plain) < ROUNDED


def test_a_layer_is_gathered_again_when_there_was_no_memory_for_it(scenarios: Path) -> None:
    assert read_results(scenarios, "gathered again") == [["", 0], ["", 1]]
    assert rows_of(scenarios / "gathered again") == rows_of(scenarios / "kuhn" / "sharded")


def test_ctrl_c_stops_both_with_a_checkpoint_and_the_run_goes_on(scenarios: Path) -> None:
    for each in read_results(scenarios, "stopped"):
        assert each == {"error": "Stopped: Ctrl-C", "kept": ["step-000000", "step-000002"]}
    assert rows_of(scenarios / "stopped") == rows_of(scenarios / "kuhn" / "sharded")


def test_both_go_back_when_one_diverges(scenarios: Path) -> None:
    assert read_results(scenarios, "diverged") == ["", ""]
    state = json.loads((checkpoint.find(scenarios / "diverged") / "state.json").read_text())
    assert state["step"] == 3 and state["backoff"]["halvings"] == 1


def test_an_error_in_a_layer_ends_both(scenarios: Path) -> None:
    assert read_results(scenarios, "broken") == [
        "RankFailedError: rank 1 failed: OSError: the layer has gone", "OSError: the layer has gone"
    ]  # fmt: skip


def test_a_rank_that_is_killed_in_a_layer_ends_the_other_at_once(tmp_path: Path) -> None:
    """The launcher's SIGTERM is ignored by the other rank, and it kills what is there 30 seconds later."""
    launched = subprocess.Popen(
        torchrun("-m", MODULE, str(tmp_path), "dead"), cwd=ROOT, env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = launched.communicate(timeout=LONGEST)[1]
    assert launched.returncode == 1 and "exitcode  : -9" in said, said[-4000:]
    found = json.loads((tmp_path / "dead.0.json").read_text())
    assert found.startswith("RankLostError: rank 0 has lost another rank, or the connection to it: "), found
    assert not (tmp_path / "dead.1.json").exists()
