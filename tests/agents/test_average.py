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


@pytest.mark.parametrize(("decay", "expected"), [(0.5, [4.0, 2.0, 5.0, 2.5]), (0.99, [4.0, 2.0, 4.0, 3.0])])
def test_first_the_mean_of_all_then_of_the_last(decay: float, expected: list[float]) -> None:
    """Of weights 4, 0, 8 and 0. At a decay of 1/2: 4, (4+0)/2, half of 2 and 8, half of 5 and 0.

    A decay of 0.99 forgets none of so few: 4, 4/2, 12/3, 12/4.
    """
    policy, average = make_policy(), Average(decay)
    found = []
    for step, weight in enumerate((4.0, 0.0, 8.0, 0.0), start=1):
        fill(policy, weight)
        average.add(policy.adapters.learning, step)
        found.append(weight_of(average))
    assert found == (expected if decay == 0.5 else pytest.approx(expected))


def ppo(**changes: float) -> LLMPPO:
    return make_ppo(Bandit, batch_size=4, num_train_steps=4, **changes)


def adapters(model: LLMPPO, name: str = NEWEST) -> list[torch.Tensor]:
    with model.policy.adapters.use(name):
        return [p.detach().clone() for p in model.policy.adapter_parameters()]


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_learner_goes_on_as_without(tmp_path: Path) -> None:
    """An average changes no step of training. Its checkpoint has the average as adapters, and the learner.

    A run may leave it, and goes on from the learner, or begin one in the middle, at its policy.
    """
    plain, averaged = ppo(), ppo(average_decay=0.5)
    plain.learn(total_timesteps=8)
    averaged.learn(total_timesteps=8)
    own = adapters(plain)
    assert are_equal(own, adapters(averaged))
    assert averaged.publish_result() == AVERAGE and plain.publish_result() == NEWEST
    result = adapters(averaged, AVERAGE)
    assert not are_equal(result, own)
    folder = checkpoint.save(averaged, tmp_path / "averaged")
    checkpoint.load(again := ppo(average_decay=0.5), folder)
    assert are_equal(own, adapters(again)) and are_equal(result, adapters(again, again.publish_result()))
    checkpoint.load_policy((played := ppo()).policy, folder)
    assert are_equal(result, adapters(played))
    checkpoint.load(without := ppo(), folder)
    assert are_equal(own, adapters(without))
    checkpoint.load(begun := ppo(average_decay=0.5), checkpoint.save(plain, tmp_path / "plain"))
    assert are_equal(own, adapters(begun, begun.publish_result()))


def test_going_back_to_the_start_forgets_it(tmp_path: Path) -> None:
    """A run that diverges before its second checkpoint goes back to the first."""
    model = ppo(average_decay=0.5)
    folder = checkpoint.save(model, tmp_path)
    model.learn(total_timesteps=8)
    checkpoint.load(model, folder)
    assert model.average is not None and model.average.snapshot is None
