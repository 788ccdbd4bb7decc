"""Snapshots: a policy plays as it was, and is itself again afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.models.adapter_sets import UnknownAdaptersError
from gamespiel.agents.models.names import BASE, NEWEST
from gamespiel.agents.models.snapshots import Snapshot
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.noise import Address, Purpose
from tests.agents.toys import asked, make_policy, masks_of, randomise

TEXTS, LEGAL = [f"seat {seat}{asked((0, 1, 2))}" for seat in (0, 1)], [(0, 1, 2)] * 2


def odds(policy: LLMPolicy, adapters: str = NEWEST) -> np.ndarray:
    return np.array(policy.distribution(TEXTS, LEGAL, adapters=adapters))


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(adapters=0.1)


def snapshot_of(policy: LLMPolicy, step: int) -> Snapshot:
    return Snapshot.take(policy.adapters.learning, step)


def test_a_policy_plays_as_it_was(policy: LLMPolicy) -> None:
    """Bit for bit, by value: later changes of the weights in place do not reach the snapshot."""
    before, snapshot = odds(policy), snapshot_of(policy, 3)
    randomise(policy, 0.1, seed=1)
    after = odds(policy)
    assert np.abs(after - before).max() > 0.01
    policy.sampler.publish("earlier", snapshot.adapters)
    assert np.array_equal(odds(policy, "earlier"), before)
    assert np.array_equal(odds(policy), after)


@pytest.mark.parametrize("name", ["earlier", BASE])
def test_an_error_in_a_forward_leaves_the_policy_itself(
    policy: LLMPolicy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Identity, data, ``requires_grad`` and names of the parameters are as before, and so is the play."""
    policy.sampler.publish("earlier", snapshot_of(policy, 0).adapters)
    randomise(policy, 0.1, seed=2)
    after, parameters = odds(policy), dict(policy.model.named_parameters())
    places = {key: parameter.data_ptr() for key, parameter in parameters.items()}
    layer = policy.engine.transformer.layers[1]  # type: ignore[attr-defined]

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("stop")

    with monkeypatch.context() as patched:
        patched.setattr(layer, "forward", stop)
        with pytest.raises(RuntimeError, match="stop"):
            odds(policy, name)
        noise = [Address(0, Purpose.ACTIONS, 0, 0, row) for row in range(2)]
        with pytest.raises(RuntimeError, match="stop"):
            policy.decide(TEXTS, masks_of(LEGAL), noise, adapters=name)
    assert np.array_equal(odds(policy), after)
    now = dict(policy.model.named_parameters())
    assert list(now) == list(parameters) and all(now[key] is own for key, own in parameters.items())
    assert {key: parameter.data_ptr() for key, parameter in now.items()} == places
    trained = {key for key, parameter in now.items() if parameter.requires_grad}
    assert trained == set(policy.adapters.learning)


def test_names_are_published_replaced_and_forgotten(policy: LLMPolicy) -> None:
    one = snapshot_of(policy, 1)
    policy.sampler.publish("a", one.adapters)
    randomise(policy, 0.1, seed=4)
    two = snapshot_of(policy, 2)
    first = odds(policy, "a")
    policy.sampler.publish("a", two.adapters)
    assert not np.array_equal(odds(policy, "a"), first)
    policy.sampler.forget("a")
    policy.sampler.forget("a")
    with pytest.raises(UnknownAdaptersError, match=r"'a' were asked for; published are newest, base"):
        odds(policy, "a")


def test_adapters_of_another_model_are_not_published(policy: LLMPolicy) -> None:
    with pytest.raises(ValueError, match=r"adapters 'x' are those of another model"):
        policy.sampler.publish("x", make_policy(lora={"r": 2}).adapters.learning)
    with pytest.raises(ValueError, match=r"the name 'base'"):
        policy.sampler.publish(BASE, policy.adapters.learning)


def test_a_file_gives_the_snapshot_back(policy: LLMPolicy, tmp_path: Path) -> None:
    snapshot = snapshot_of(policy, 7)
    snapshot.save(tmp_path / "s.safetensors")
    read = Snapshot.load(policy.adapters.learning, 7, tmp_path / "s.safetensors")
    assert read.step == 7 and read.adapters.keys() == snapshot.adapters.keys()
    assert all(torch.equal(read.adapters[name], own) for name, own in snapshot.adapters.items())
    other = make_policy(lora={"r": 2}).adapters.learning
    with pytest.raises(ValueError, match=r"adapters of another model or other LoRA settings"):
        Snapshot.load(other, 7, tmp_path / "s.safetensors")
