"""``ScaledAdamW``: groups keep their scale, whatever writes the learning rate."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.utils import update_learning_rate
from stable_baselines3.common.vec_env import DummyVecEnv

from gamespiel.agents.models.optimizer import ScaledAdamW
from gamespiel.agents.policy import LLMPolicy
from tests.agents.toys import Bandit, as_tokens, make_policy


def pair(**kwargs: Any) -> tuple[torch.nn.Parameter, torch.nn.Parameter, ScaledAdamW]:
    a, b = (torch.nn.Parameter(torch.tensor([1.0])) for _ in range(2))
    return (
        a,
        b,
        ScaledAdamW([{"params": [a]}, {"params": [b], "lr_scale": 10.0}], **{"weight_decay": 0.0} | kwargs),
    )


def test_the_scale_outlives_a_rate_written_into_all_groups() -> None:
    """Adam's first step is lr · g / (|g| + ε), so lr · sign(g): 1 − 0.02 and 1 + 10 · 0.02."""
    a, b, optimizer = pair(lr=1.0)
    update_learning_rate(optimizer, 0.02)
    assert optimizer.effective_rates() == pytest.approx([0.02, 0.2])
    a.grad, b.grad = torch.tensor([0.3]), torch.tensor([-2.0])
    optimizer.step()
    assert a.item() == pytest.approx(0.98, abs=1e-6)
    assert b.item() == pytest.approx(1.20, abs=1e-6)
    assert [group["lr"] for group in optimizer.param_groups] == [0.02, 0.02]  # as it was scheduled


def test_weight_decay_is_scaled_too() -> None:
    """AdamW decays by lr · decay: 1 · (1 − 10 · 0.01 · 0.5) = 0.95, then the step of 0.1."""
    _, b, optimizer = pair(lr=0.01, weight_decay=0.5)
    b.grad = torch.tensor([1.0])
    optimizer.step()
    assert b.item() == pytest.approx(0.95 - 0.1, abs=1e-6)


def test_a_step_that_fails_leaves_the_rates() -> None:
    _, _, optimizer = pair(lr=0.01)

    def closure() -> float:
        raise RuntimeError("no loss")

    with pytest.raises(RuntimeError, match="no loss"):
        optimizer.step(closure)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.01]


def test_the_state_carries_the_scale() -> None:
    a, b, optimizer = pair(lr=0.01)
    a.grad, b.grad = torch.tensor([1.0]), torch.tensor([1.0])
    optimizer.step()
    _, _, other = pair(lr=0.5)
    other.param_groups[1]["lr_scale"] = 1.0
    other.load_state_dict(optimizer.state_dict())
    assert other.effective_rates() == pytest.approx([0.01, 0.1])


def test_the_policys_critic_learns_ten_times_as_fast() -> None:
    assert make_policy().optimizer.effective_rates() == pytest.approx([1e-3, 1e-2])
    assert make_policy(critic_lr_multiplier=2.0).optimizer.effective_rates() == pytest.approx([1e-3, 2e-3])


def test_after_an_update_of_stock_maskable_ppo() -> None:
    model = MaskablePPO(
        LLMPolicy, DummyVecEnv([lambda: as_tokens(Bandit())]), 2e-4, n_steps=4, batch_size=4, n_epochs=1,
        device="cpu", policy_kwargs={"lora": {"r": 4}},
    )  # fmt: skip
    for _ in range(2):
        model.learn(4, reset_num_timesteps=False)
        assert model.policy.optimizer.effective_rates() == pytest.approx([2e-4, 2e-3])
