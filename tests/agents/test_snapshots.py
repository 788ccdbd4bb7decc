"""Snapshots, and what is made of them: the pool of earlier selves, the average and the magnet."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.learning.snapshots import MEMORY, Average, Magnet, Member, Pool, Snapshot
from gamespiel.agents.models import AVERAGE, BASE, MAGNET, NEWEST
from gamespiel.agents.models.adapters import UnknownAdaptersError
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.scoring.choice_scores import ChoiceScores
from task_gym.errors import ArgumentError
from tests.agents.families import FAMILIES
from tests.agents.toys import (
    Bandit,
    Echo,
    asked,
    collect,
    gradient_of,
    make_policy,
    make_ppo,
    masks_of,
    randomise,
    rows_of,
    trained,
)

pytestmark = [pytest.mark.trains, pytest.mark.sample]

TEXTS, LEGAL = [f"seat {seat}{asked((0, 1, 2))}" for seat in (0, 1)], [(0, 1, 2)] * 2


def odds(policy: LLMPolicy, adapters: str = NEWEST) -> np.ndarray:
    return np.array(policy.distribution(TEXTS, LEGAL, adapters=adapters))


def snapshot_of(policy: LLMPolicy, step: int) -> Snapshot:
    return Snapshot.take(policy.adapters.learning, step)


def test_a_policy_plays_as_it_was_under_a_name_that_is_replaced_and_forgotten(
    policy: LLMPolicy, tmp_path: Path
) -> None:
    """Bit for bit, by value: later changes of the weights in place do not reach the snapshot or its file."""
    before, snapshot, file = odds(policy), snapshot_of(policy, 3), tmp_path / "s.safetensors"
    snapshot.save(file)
    randomise(policy, 0.1, seed=1)
    after = odds(policy)
    assert np.abs(after - before).max() > 0.01
    policy.sampler.publish("earlier", snapshot.adapters)
    assert np.array_equal(odds(policy, "earlier"), before)
    assert np.array_equal(odds(policy), after)
    policy.sampler.publish("earlier", snapshot_of(policy, 4).adapters)
    assert np.array_equal(odds(policy, "earlier"), after)
    policy.sampler.forget("earlier")
    policy.sampler.forget("earlier")
    with pytest.raises(UnknownAdaptersError, match=r"'earlier' were asked for; published are newest, base"):
        odds(policy, "earlier")
    read = Snapshot.load(policy.adapters.learning, 3, file)
    assert read.step == 3 and read.adapters.keys() == snapshot.adapters.keys()
    assert all(torch.equal(read.adapters[name], tensor) for name, tensor in snapshot.adapters.items())
    other = make_policy(lora={"r": 2}).adapters.learning
    with pytest.raises(ValueError, match=r"adapters of another model or other LoRA settings"):
        Snapshot.load(other, 3, file)
    with pytest.raises(ValueError, match=r"adapters 'x' are those of another model"):
        policy.sampler.publish("x", other)
    with pytest.raises(ValueError, match=r"the name 'base'"):
        policy.sampler.publish(BASE, policy.adapters.learning)


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
    with monkeypatch.context() as patched:
        patched.setattr(layer, "forward", Mock(side_effect=RuntimeError("stop")))
        with pytest.raises(RuntimeError, match="stop"):
            odds(policy, name)
        noise = [Address(0, Purpose.ACTIONS, 0, 0, row) for row in range(2)]
        with pytest.raises(RuntimeError, match="stop"):
            policy.decide(TEXTS, masks_of(LEGAL), noise, adapters=name)
    assert np.array_equal(odds(policy), after)
    now = dict(policy.model.named_parameters())
    assert list(now) == list(parameters) and all(now[key] is p for key, p in parameters.items())
    assert {key: parameter.data_ptr() for key, parameter in now.items()} == places
    trained = {key for key, parameter in now.items() if parameter.requires_grad}
    assert trained == set(policy.adapters.learning)


# -- the pool ------------------------------------------------------------------------------------------------


def filled(pick: str, *win_rates: float) -> Pool:
    pool = Pool(SelfPlaySettings(pool_pick=pick))
    pool.members = [Member(Snapshot(step, {}), 10, rate) for step, rate in enumerate(win_rates)]
    return pool


def test_a_pool_by_hand() -> None:
    """It grows every few steps, and forgets the oldest.

    Of 1 - win rate, 0.8, 0.2 and, at least, 0.05, of 1.05 in all, 21 equal shares are 16, 4 and 1.

    A win rate is the mean of the first games, then a moving one: 0.75 after four, 0.75 (1 - 1/100)^n later.
    """
    pool, seen = Pool(SelfPlaySettings(pool_every=3, pool_size=2)), list[list[int]]()
    late = Pool(SelfPlaySettings(pool_every=10))
    for step in (0, 0, 1, 3, 3, 5, 6, 9):
        pool.grow({}, step)
        seen.append([member.snapshot.step for member in pool.members])
    assert seen == [[0], [0], [0], [0, 3], [0, 3], [0, 3], [3, 6], [6, 9]]
    late.grow({}, 7)
    assert [member.snapshot.step for member in late.members] == [7]
    assert np.array_equal(filled("newest", 0.2, 0.8, 1.0).weights(), [0, 0, 1])
    assert np.allclose(filled("uniform", 0.2, 0.8, 1.0).weights(), [1 / 3] * 3)
    by_win_rate = filled("win_rate", 0.2, 0.8, 1.0)
    assert np.allclose(by_win_rate.weights(), [0.8 / 1.05, 0.2 / 1.05, 0.05 / 1.05])
    assert Counter(by_win_rate.draw((np.arange(21) + 0.5) / 21)) == {0: 16, 1: 4, 2: 1}
    assert filled("newest", 0.5, 0.5).draw(np.array([0.0, 0.999999])) == [1, 1]
    logged = filled("uniform", 0.6, 0.4, 0.5).metrics([[1.0, 0.0, 0.0, 0.0], [], [0.5, 1.0]])
    assert (logged["size"], logged["newest"], logged["hardest"]) == (3, 2, 1)
    assert (logged["steps"], logged["games"], logged["win_rates"]) == ([0, 1, 2], [4, 0, 2], [0.6, 0.4, 0.5])
    assert np.array_equal(logged["scores"], [0.25, np.nan, 0.75], equal_nan=True)
    pool = filled("uniform", 0.5)
    pool.members[0].games = 0
    for result in (1.0, 0.5, 0.5, 1.0):
        pool.record(0, result)
    assert (pool.members[0].games, pool.members[0].win_rate) == (4, pytest.approx(0.75))
    pool.members[0].games = MEMORY
    for _ in range(50):
        pool.record(0, 0.0)
    assert pool.members[0].win_rate == pytest.approx(0.75 * 0.99**50)


# -- the average ---------------------------------------------------------------------------------------------


def weight_of(snapshot: Snapshot) -> float:
    return float(torch.cat([tensor.flatten() for tensor in snapshot.adapters.values()]).unique())


@pytest.mark.parametrize(("decay", "expected"), [(0.5, [4.0, 2.0, 5.0, 2.5]), (0.99, [4.0, 2.0, 4.0, 3.0])])
def test_first_the_mean_of_all_then_of_the_last(decay: float, expected: list[float]) -> None:
    """The weights are 4, 0, 8 and 0. At a decay of 1/2: 4, (4+0)/2, half of 2 and 8, half of 5 and 0.

    A decay of 0.99 forgets none of so few: 4, 4/2, 12/3, 12/4.
    """
    adapters, average, weights = {"a": torch.zeros(3)}, Average(decay), list[float]()
    for step, weight in enumerate((4.0, 0.0, 8.0, 0.0), start=1):
        adapters["a"].fill_(weight)
        average.add(adapters, step)
        weights.append(weight_of(average.snapshot))
    assert weights == (expected if decay == 0.5 else pytest.approx(expected))


def ppo(**changes: float) -> LLMPPO:
    return make_ppo(Bandit, batch_size=4, num_train_steps=4, **changes)


def adapters(model: LLMPPO, name: str = NEWEST) -> list[torch.Tensor]:
    with model.policy.adapters.use(name):
        return [p.detach().clone() for p in model.policy.adapter_parameters()]


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_learner_goes_on_as_without(tmp_path: Path) -> None:
    """An average changes no step of training. Its checkpoint has the average as adapters, and the learner.

    A run may leave it, and goes on from the learner, or begin one in the middle, at its policy. A run that
    diverges before its second checkpoint goes back to the first, without an average.
    """
    plain, averaged = ppo(), ppo(average_decay=0.5)
    start = checkpoint.save(averaged, tmp_path / "start")
    plain.learn(total_timesteps=8)
    averaged.learn(total_timesteps=8)
    weights = adapters(plain)
    assert are_equal(weights, adapters(averaged))
    assert averaged.publish_result() == AVERAGE and plain.publish_result() == NEWEST
    result = adapters(averaged, AVERAGE)
    assert not are_equal(result, weights)
    folder = checkpoint.save(averaged, tmp_path / "averaged")
    checkpoint.load(again := ppo(average_decay=0.5), folder)
    assert are_equal(weights, adapters(again)) and are_equal(result, adapters(again, again.publish_result()))
    checkpoint.load_policy((played := ppo()).policy, folder)
    assert are_equal(result, adapters(played))
    checkpoint.load(without := ppo(), folder)
    assert are_equal(weights, adapters(without))
    checkpoint.load(begun := ppo(average_decay=0.5), checkpoint.save(plain, tmp_path / "plain"))
    assert are_equal(weights, adapters(begun, begun.publish_result()))
    checkpoint.load(averaged, start)
    assert averaged.average is not None and averaged.average.snapshot is None


# -- the magnet ----------------------------------------------------------------------------------------------


def test_when_it_moves() -> None:
    """Every 2 steps, a quarter of the way: from 0 to 2 and 4 with policies of 8 and 10 in every weight."""
    adapters, magnet = {"a": torch.zeros(3)}, Magnet(every=2, rate=0.25)

    def at(step: int, weight: float) -> tuple[int, float]:
        adapters["a"].fill_(weight)
        snapshot = magnet.move(adapters, step)
        return snapshot.step, weight_of(snapshot)

    assert at(0, 0.0) == (0, 0.0)
    assert at(1, 3.0) == (0, 0.0)
    assert at(2, 8.0) == (2, 2.0)
    assert at(2, 8.0) == (2, 2.0)  # asked again
    assert at(3, 9.0) == (2, 2.0)
    assert at(4, 10.0) == (4, 4.0)
    fixed = Magnet()
    assert fixed.move(adapters, 0) is fixed.move(adapters, 100)


def test_divergence_and_its_gradient_by_hand() -> None:
    """With p and q the probabilities of the first of two actions, and p = sigmoid(x):

    KL = p log(p/q) + (1-p) log((1-p)/(1-q)), and dKL/dx = p (1-p) (log(p/q) - log((1-p)/(1-q))).
    """
    p, q = 0.8, 0.3
    x = torch.tensor(math.log(p / (1 - p)), requires_grad=True)
    log_probs, zero = torch.stack([x, torch.zeros(())]).log_softmax(0), torch.zeros(1)
    policy = ChoiceScores(zero, zero, zero.long(), zero, log_probs[None], np.ones(1, bool))
    divergence = policy.divergence(torch.tensor([[math.log(q), math.log(1 - q)]]), "exact")
    assert float(divergence.detach()) == pytest.approx(
        0.8 * math.log(8 / 3) + 0.2 * math.log(2 / 7), abs=1e-6
    )
    divergence.sum().backward()
    assert float(x.grad) == pytest.approx(0.16 * (math.log(8 / 3) - math.log(2 / 7)), abs=1e-6)


def test_the_update_follows_the_weighted_divergence() -> None:
    """The loss is linear in the weight c, so gradients are g + c h, with h that of the divergence alone.

    The bandit has one prompt, so the divergence is that of its two probabilities. One optimizer step on the
    same 8 games; the policy has moved since the magnet was taken.
    """
    gradients = []
    for weight in (0.0, 1.0, 3.0):
        model = make_ppo(
            Bandit, batch_size=8, magnet_coef=1.0, ent_coef=0.0, init_kl_coef=0.0, legal_coef=0.0,
            vf_coef=0.0, max_grad_norm=1e9, adaptive_kl=False,
        )  # fmt: skip
        randomise(model.policy, 0.1, seed=1)
        model.magnet.snapshot = Snapshot.take(model.policy.adapters.learning, 0)
        randomise(model.policy, 0.1, seed=2)
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
        Bandit, batch_size=4, total_steps=2, magnet_coef=0.3, magnet_end=0.06,
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
        learning_rate=1e-9, max_new_tokens=4,
    )  # fmt: skip
    assert collect(model)
    assert trained(model)["train/kl_magnet"] == pytest.approx(0.0, abs=1e-6)
    make_ppo(Bandit, 1, magnet_coef=0.1, policy_kwargs=lora)  # choices are read behind its own head
