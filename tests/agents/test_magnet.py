"""The magnet: when it moves, and what it does to the gradient."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gamespiel.agents.learning.magnet import Magnet
from gamespiel.agents.models.names import MAGNET
from gamespiel.agents.models.snapshots import Snapshot
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.scoring.choices import ChoiceScores
from task_gym.errors import ArgumentError
from tests.agents.families import FAMILIES
from tests.agents.toys import (
    Bandit,
    Echo,
    collect,
    gradient_of,
    make_policy,
    make_ppo,
    randomise,
    rows_of,
    trained,
)


def test_when_it_moves() -> None:
    """Every 2 steps, a quarter of the way: from 0 to 2 and 4 with policies of 8 and 10 in every weight."""
    policy, magnet = make_policy(), Magnet(every=2, rate=0.25)

    def at(step: int, weight: float) -> tuple[int, float]:
        with torch.no_grad():
            for parameter in policy.adapter_parameters():
                parameter.fill_(weight)
        snapshot = magnet.move(policy.adapters.learning, step)
        values = torch.cat([t.flatten() for t in snapshot.adapters.values()]).unique()
        return snapshot.step, float(values)

    assert at(0, 0.0) == (0, 0.0)
    assert at(1, 3.0) == (0, 0.0)
    assert at(2, 8.0) == (2, 2.0)
    assert at(2, 8.0) == (2, 2.0)  # asked again
    assert at(3, 9.0) == (2, 2.0)
    assert at(4, 10.0) == (4, 4.0)
    fixed = Magnet()
    assert fixed.move(policy.adapters.learning, 0) is fixed.move(policy.adapters.learning, 100)


def scores_of(log_probs: torch.Tensor) -> ChoiceScores:
    zero = torch.zeros(1)
    owners = torch.zeros(1, dtype=torch.long)
    return ChoiceScores(zero, zero, owners, zero, log_probs[None], np.ones(1, bool))


def test_divergence_and_its_gradient_by_hand() -> None:
    """With p and q the probabilities of the first of two actions, and p = sigmoid(x):

    KL = p log(p/q) + (1-p) log((1-p)/(1-q)), and dKL/dx = p (1-p) (log(p/q) - log((1-p)/(1-q))).
    """
    p, q = 0.8, 0.3
    x = torch.tensor(math.log(p / (1 - p)), requires_grad=True)
    policy = scores_of(torch.stack([x, torch.zeros(())]).log_softmax(0))
    divergence = policy.divergence(torch.tensor([[math.log(q), math.log(1 - q)]]), "exact")
    assert float(divergence.detach()) == pytest.approx(
        0.8 * math.log(8 / 3) + 0.2 * math.log(2 / 7), abs=1e-6
    )
    divergence.sum().backward()
    assert x.grad is not None
    assert float(x.grad) == pytest.approx(0.16 * (math.log(8 / 3) - math.log(2 / 7)), abs=1e-6)


def learner() -> LLMPPO:
    """One optimizer step on the same 8 games of a bandit; the policy has moved since the magnet was taken."""
    model = make_ppo(
        Bandit, batch_size=8, ppo_epochs=1, magnet_coef=1.0, ent_coef=0.0, init_kl_coef=0.0, legal_coef=0.0,
        vf_coef=0.0, max_grad_norm=1e9, adaptive_kl=False,
    )  # fmt: skip
    assert model.magnet is not None
    randomise(model.policy, 0.1, seed=1)
    model.magnet.snapshot = Snapshot.take(model.policy.adapters.learning, 0)
    randomise(model.policy, 0.1, seed=2)
    return model


def test_the_update_follows_the_weighted_divergence() -> None:
    """The loss is linear in the weight c, so gradients are g + c h, with h that of the divergence alone.

    The bandit has one prompt, so the divergence is that of its two probabilities.
    """
    gradients = []
    for weight in (0.0, 1.0, 3.0):
        model = learner()
        model.magnet_schedule = lambda remaining, weight=weight: weight
        assert collect(model)
        text = [Bandit().reset()[0]]
        (p,) = model.policy.distribution(text, [(0, 1)])
        model.policy.sampler.publish(MAGNET, model.magnet.snapshot.adapters)  # type: ignore[union-attr]
        (q,) = model.policy.distribution(text, [(0, 1)], adapters=MAGNET)
        logged = trained(model)
        assert logged["train/kl_magnet"] == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-5)
        assert logged["train/kl_magnet"] > 0.001
        gradients.append(gradient_of(model))
    none, one, three = gradients
    assert (one - none).norm() > 1e-3
    assert torch.allclose(three - none, 3 * (one - none), rtol=1e-3, atol=1e-5)


def test_its_weight_falls_to_its_end() -> None:
    model = make_ppo(
        Bandit, batch_size=4, total_steps=2, ppo_epochs=1, magnet_coef=0.3, magnet_end=0.06,
        magnet_schedule="linear",
    )  # fmt: skip
    model.learn()
    rows = rows_of(model)
    assert [row["train/magnet_coef"] for row in rows] == pytest.approx([0.3, 0.18])
    assert [row["train/magnet_step"] for row in rows] == [0, 0]
    assert rows[0]["train/kl_magnet"] == pytest.approx(0.0, abs=1e-6) != rows[1]["train/kl_magnet"]
    assert make_ppo(Bandit).magnet is None


def test_an_adapted_head_needs_the_estimate(tmp_path: Path) -> None:
    """At its own policy the divergence is 0, and it would not be behind a head without the adapters."""
    # It has its own head.
    model_settings = {"model_name": FAMILIES["llama"].save(tmp_path), "random_weights": True}
    lora = {"lora": {"r": 4, "target_modules": ["q_proj", "lm_head"]}, "model": model_settings}
    with pytest.raises(ArgumentError, match=r"magnet_coef: 0.1 .* adapters on the model's head .*'k3'"):
        make_ppo(Echo, 2, magnet_coef=0.1, policy_kwargs=lora)
    model = make_ppo(
        Echo, 2, 0.3, magnet_coef=0.1, kl_estimator="k3", policy_kwargs=lora, batch_size=2,
        learning_rate=1e-9, ppo_epochs=1, max_new_tokens=4,
    )  # fmt: skip
    assert collect(model)
    assert trained(model)["train/kl_magnet"] == pytest.approx(0.0, abs=1e-6)
    make_ppo(Bandit, 1, magnet_coef=0.1, policy_kwargs=lora)  # choices are read behind its own head
