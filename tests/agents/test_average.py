"""The average of policies: what it is after each step, who plays as it, and what checkpoints hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gamespiel.agents.learning.average import Average
from gamespiel.agents.models.names import AVERAGE, NEWEST
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from tests.agents.toys import Bandit, make_policy, make_ppo


def fill(policy: LLMPolicy, weight: float) -> None:
    with torch.no_grad():
        for parameter in policy.adapter_parameters():
            parameter.fill_(weight)


def weight_of(average: Average) -> float:
    assert average.snapshot is not None
    return float(torch.cat([tensor.flatten() for tensor in average.snapshot.adapters.values()]).unique())


def test_first_the_mean_of_all_then_of_the_last() -> None:
    """Weights of 4, 0, 8 and 0, a decay of 1/2: 4, (4+0)/2, half of 2 and 8, half of 5 and 0."""
    policy, average = make_policy(), Average(0.5)
    found = []
    for step, weight in enumerate((4.0, 0.0, 8.0, 0.0), start=1):
        fill(policy, weight)
        average.add(policy.adapters.learning, step)
        found.append(weight_of(average))
    assert found == [4.0, 2.0, 5.0, 2.5]


def test_a_large_decay_is_a_mean_at_first() -> None:
    """0.99 for three steps: (3 + 6 + 0) / 3."""
    policy, average = make_policy(), Average(0.99)
    for step, weight in enumerate((3.0, 6.0, 0.0), start=1):
        fill(policy, weight)
        average.add(policy.adapters.learning, step)
    assert weight_of(average) == pytest.approx(3.0)


def ppo(**changes: float) -> LLMPPO:
    return make_ppo(Bandit, batch_size=4, num_train_steps=4, **changes)


def adapters(model: LLMPPO, name: str = NEWEST) -> list[torch.Tensor]:
    with model.policy.adapters.use(name):
        return [p.detach().clone() for p in model.policy.adapter_parameters()]


def test_the_learner_goes_on_as_without(tmp_path: Path) -> None:
    """An average changes no step of training. Its checkpoint has the average as adapters, and the learner."""
    plain, averaged = ppo(), ppo(average_decay=0.5)
    plain.learn(total_timesteps=12)
    averaged.learn(total_timesteps=12)
    for expected, found in zip(adapters(plain), adapters(averaged), strict=True):
        assert torch.equal(expected, found)
    folder = checkpoint.save(averaged, tmp_path)
    assert averaged.publish_result() == AVERAGE and plain.publish_result() == NEWEST
    result = adapters(averaged, AVERAGE)
    assert any(not torch.equal(a, b) for a, b in zip(result, adapters(averaged), strict=True))
    again = ppo(average_decay=0.5)
    checkpoint.load(again, folder)
    for expected, found in zip(adapters(averaged), adapters(again), strict=True):
        assert torch.equal(expected, found)
    for expected, found in zip(result, adapters(again, again.publish_result()), strict=True):
        assert torch.equal(expected, found)
    played = ppo()
    checkpoint.load_policy(played.policy, folder)
    for expected, found in zip(result, adapters(played), strict=True):
        assert torch.equal(expected, found)


def test_an_average_can_begin_or_end_in_the_middle(tmp_path: Path) -> None:
    """Without one from there, the learner goes on; with one from there, it begins at the policy."""
    averaged, plain = ppo(average_decay=0.5), ppo()
    averaged.learn(total_timesteps=8)
    plain.learn(total_timesteps=8)
    checkpoint.load(without := ppo(), checkpoint.save(averaged, tmp_path / "averaged"))
    checkpoint.load(begun := ppo(average_decay=0.5), checkpoint.save(plain, tmp_path / "plain"))
    for expected, found in zip(adapters(averaged), adapters(without), strict=True):
        assert torch.equal(expected, found)
    for expected, found in zip(adapters(plain), adapters(begun, begun.publish_result()), strict=True):
        assert torch.equal(expected, found)


def test_going_back_to_the_start_forgets_it(tmp_path: Path) -> None:
    """A run that diverges before its second checkpoint goes back to the first."""
    model = ppo(average_decay=0.5)
    folder = checkpoint.save(model, tmp_path)
    model.learn(total_timesteps=8)
    checkpoint.load(model, folder)
    assert model.average is not None and model.average.snapshot is None
