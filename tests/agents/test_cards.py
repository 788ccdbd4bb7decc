"""Policies on a GPU, a pretended one (``tests/agents/cards.py``): nothing is left behind on the CPU."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.catalog import CheckpointError
from tests.agents.cards import OnCard, Seen, card
from tests.agents.toys import Echo, Stairs, collect, make_policy, make_ppo, masks_of, randomise, same_noise

TEXTS = ["seat 0, card 1", "seat 0, card 12", "seat 0, card 1, more"]
LEGAL: list[tuple[int, ...]] = [(0, 1, 2), (1, 12, 123), (7,)]


def learner(device: str, decode: str, reading: str, **kwargs: Any) -> LLMPPO:
    policy = {"lora": {"r": 4}, "model": {"reading": reading, **kwargs.pop("model", {})}}
    settings = {"batch_size": 2, "mini_batch_size": 16, "ppo_epochs": 2} | kwargs
    model = make_ppo(
        Stairs if decode == "choice" else lambda: Echo(3), device=device, policy_kwargs=policy,
        max_new_tokens=3, total_steps=1, average_decay=0.9, magnet_coef=0.1, **settings,
    )  # fmt: skip
    randomise(model.policy, 0.02)
    Seen.working = device == "cuda"
    return model


def weights_of(model: LLMPPO) -> list[Tensor]:
    return [parameter.detach().cpu() for parameter in model.policy.trainable_parameters()]


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.parametrize(("decode", "reading"), [("choice", "shared"), ("text", "padded")])
def test_a_run_on_a_card_is_that_on_the_cpu(decode: str, reading: str) -> None:
    """A step of play and update, with a magnet and an average. Only attention takes another kernel."""
    expected = learner("cpu", decode, reading, ppo_epochs=1).learn()
    with card():
        model = learner("cuda", decode, reading, ppo_epochs=1).learn()
        assert {str(p.device) for p in model.policy.parameters()} == {"cuda:0"}
        moments = [state["exp_avg"] for state in model.policy.optimizer.state.values()]
        assert moments and all(isinstance(moment, OnCard) for moment in moments)
        difference = max(
            float((a - b).abs().max()) for a, b in zip(weights_of(expected), weights_of(model), strict=True)
        )
    assert model.num_timesteps == expected.num_timesteps
    assert difference < 1e-4  # Adam's steps are of 1e-3


@pytest.mark.trains
@pytest.mark.sample
def test_all_ways_to_ask_a_policy() -> None:
    settings = {"adapters": 0.1, "model": {"reading": "shared"}}
    expected = make_policy(**settings).distribution(TEXTS, LEGAL)
    with card():
        policy, masks = make_policy(**settings, device="cuda"), masks_of(LEGAL)
        Seen.working = True
        distributions = policy.distribution(TEXTS, LEGAL)
        assert policy.predict(TEXTS, action_masks=masks)[0].shape == (3,)
        best, _ = policy.predict(TEXTS, deterministic=True, action_masks=masks)
        assert policy.predict_values(TEXTS).shape == (3, 1)
        assert policy.get_distribution(TEXTS, masks).probs.shape == masks.shape
        values, log_probs, _ = policy.evaluate_actions(TEXTS, best, masks)
        assert isinstance(values, OnCard) and isinstance(log_probs, OnCard)
    assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(expected, distributions, strict=True))
    assert best.tolist() == [legal[int(p.argmax())] for legal, p in zip(LEGAL, expected, strict=True)]


def test_random_weights_are_drawn_on_the_card(tmp_path: Path) -> None:
    """Their checkpoint has only the seed, from which another device draws others."""
    random = {"random_weights": True, "dtype": "bfloat16"}
    with card():
        there = learner("cuda", "choice", "shared", model=random)
        assert {str(parameter.device) for parameter in there.policy.model.parameters()} == {"cuda:0"}
        folder = checkpoint.save(there, tmp_path)
        checkpoint.load(learner("cuda", "choice", "shared", model=random), folder)
    with pytest.raises(CheckpointError, match=r"'drawn_on': 'cuda, torch.bfloat16'.* is .*'drawn_on': 'cpu'"):
        checkpoint.load(learner("cpu", "choice", "shared", model=random), folder)


@pytest.mark.parametrize("before", [True, False])
def test_cudnn_attention_is_off_as_long_as_a_policy_lives(before: bool) -> None:
    """With masks it can give NaN. It is the process's switch: only the last policy gives it back."""
    gc.collect()  # policies of other tests
    is_enabled = torch.backends.cuda.cudnn_sdp_enabled
    torch.backends.cuda.enable_cudnn_sdp(before)
    try:
        make_policy()
        assert is_enabled() is before  # the CPU has no need
        with card():
            policies = [make_policy(device="cuda") for _ in range(2)]
            while policies:
                assert is_enabled() is False
                policies.pop()
                gc.collect()
        assert is_enabled() is before
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


@pytest.mark.parametrize(
    ("decode", "dtype"),
    [
        pytest.param("text", "bfloat16", marks=[pytest.mark.trains, pytest.mark.sample]),
        pytest.param("choice", "float32", marks=pytest.mark.trains),
    ],
)
def test_an_update_waits_once_per_optimizer_step(decode: str, dtype: str) -> None:
    """And for the magnet's snapshot, for old log-probabilities in bfloat16, and for the weights at the end.

    Nothing else waits: no index is copied from ordinary memory, and no forward has a result of unknown size.
    """
    with card() as seen:
        settings = {"dtype": dtype, "gradient_checkpointing": decode == "text"}
        model = learner("cuda", decode, "shared", model=settings, mini_batch_size=1)
        assert collect(model)
        seen.waits.clear()
        model.train()
        steps = 2 * len(model.rollout_buffer)
        assert steps >= 4 and seen.waits.total() == steps + 2 + (dtype == "bfloat16") <= 20


@pytest.mark.trains
@pytest.mark.sample
def test_sampling_waits_once_per_forward_and_for_the_critic() -> None:
    """Small tries are read at once, those of 400 numbers by the digit. Replies have three tokens."""
    with card() as seen:
        policy = make_policy(n_actions=400, adapters=0.1, device="cuda", model={"reading": "shared"})
        seen.working = True
        for legal, at_once in ((LEGAL, True), ([tuple(range(400))] * 3, False)):
            seen.waits.clear()
            decisions = policy.decide(TEXTS, masks_of(legal, 400), same_noise(0.99, 3))
            depths = max(len(decision.log_probs) for decision in decisions)
            assert depths > 1 and seen.waits.total() == (1 if at_once else depths) + 1
        writer = learner("cuda", "text", "shared").policy
        seen.waits.clear()
        replies = writer.decide(TEXTS, None, same_noise(0.5, 3))
        assert seen.waits.total() == max(len(decision.tokens) for decision in replies) + 1


@pytest.mark.trains
def test_a_checkpoint_goes_from_a_card_to_the_cpu_and_back(tmp_path: Path) -> None:
    with card():
        model = learner("cuda", "choice", "shared").learn()
        folder, trained = checkpoint.save(model, tmp_path), weights_of(model)
        model.total_steps = 2
        expected = weights_of(model.learn())
        Seen.working = False
        again = learner("cuda", "choice", "shared")
        checkpoint.load(again, folder)
        again.total_steps = 2
        resumed = weights_of(again.learn())
    assert all(torch.equal(one, other) for one, other in zip(expected, resumed, strict=True))
    here = learner("cpu", "choice", "shared")
    checkpoint.load(here, folder)
    assert all(torch.equal(one, other) for one, other in zip(trained, weights_of(here), strict=True))
    state = here.policy.optimizer.state_dict()["state"]
    assert {moment.device.type for moments in state.values() for moment in moments.values()} == {"cpu"}


@pytest.mark.trains
def test_a_resumed_run_needs_no_more_memory_than_one_that_begins(tmp_path: Path) -> None:
    """Optimizer states that are read onto the card beside the model's would (unsloth#3302)."""

    def most(steps: int, saved: Path | None = None) -> tuple[int, Path]:
        gc.collect()
        seen.held, seen.peak, seen.weighing = 0, 0, True
        model = learner("cuda", "choice", "shared")
        if saved is not None:
            checkpoint.load(model, saved)
        model.total_steps = steps
        folder = checkpoint.save(model.learn(), tmp_path)
        seen.weighing = False
        return seen.peak, folder

    with card() as seen:
        two_steps, _ = most(2)
        one_step, saved = most(1)
        resumed, _ = most(2, saved)
    assert one_step <= two_steps and 0 < resumed <= two_steps
