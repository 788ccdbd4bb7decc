"""Snapshots: a policy plays as it was, and is itself again afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gamespiel.agents.models.snapshots import Snapshot
from gamespiel.agents.policy import LLMPolicy
from tests.agents.toys import asked, make_policy, randomise

TEXTS, LEGAL = [f"seat {seat}{asked((0, 1, 2))}" for seat in (0, 1)], [(0, 1, 2)] * 2


def odds(policy: LLMPolicy) -> np.ndarray:
    return np.array(policy.distribution(TEXTS, LEGAL))


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(adapters=0.1)


def test_a_policy_plays_as_it_was(policy: LLMPolicy) -> None:
    """Bit for bit, by value: later changes of the weights in place do not reach the snapshot."""
    before, snapshot = odds(policy), Snapshot.of(policy, 3)
    randomise(policy, 0.1, seed=1)
    after = odds(policy)
    assert np.abs(after - before).max() > 0.01
    with snapshot.playing(policy):
        assert np.array_equal(odds(policy), before)
        assert not torch.is_grad_enabled()
    assert np.array_equal(odds(policy), after)


def test_an_error_leaves_the_policy_itself(policy: LLMPolicy) -> None:
    snapshot = Snapshot.of(policy, 0)
    randomise(policy, 0.1, seed=2)
    after = odds(policy)
    with pytest.raises(RuntimeError, match="stop"), snapshot.playing(policy):
        raise RuntimeError("stop")
    assert np.array_equal(odds(policy), after)


def test_parameters_are_the_optimizers_after_a_snapshot_played(policy: LLMPolicy) -> None:
    """AdamW's first step moves each weight with a gradient by the learning rate, 1e-3."""
    with Snapshot.of(policy, 0).playing(policy):
        odds(policy)
    parameters = policy.adapter_parameters()
    before = [p.detach().clone() for p in parameters]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    policy.optimizer.step()
    policy.optimizer.zero_grad()
    for old, new in zip(before, parameters, strict=True):
        assert torch.allclose(old - new, torch.full_like(old, 1e-3), atol=1e-6)


def test_on_the_way_to_another(policy: LLMPolicy) -> None:
    one = Snapshot.of(policy, 1)
    randomise(policy, 0.1, seed=3)
    two = Snapshot.of(policy, 5)
    between = one.towards(two, 0.25)
    assert between.step == 5 and one.towards(two, 1.0) is two
    for name, own in one.adapters.items():
        assert torch.allclose(between.adapters[name], 0.75 * own + 0.25 * two.adapters[name])


def test_a_file_gives_the_snapshot_back(policy: LLMPolicy, tmp_path: Path) -> None:
    snapshot = Snapshot.of(policy, 7)
    snapshot.save(tmp_path / "s.safetensors")
    read = Snapshot.load(policy, 7, tmp_path / "s.safetensors")
    assert read.step == 7 and read.adapters.keys() == snapshot.adapters.keys()
    assert all(torch.equal(read.adapters[name], own) for name, own in snapshot.adapters.items())
    with pytest.raises(ValueError, match=r"adapters of another model or other LoRA settings"):
        Snapshot.load(make_policy(lora={"r": 2}), 7, tmp_path / "s.safetensors")
