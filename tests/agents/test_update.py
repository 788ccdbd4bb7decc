"""The update: what shares a forward, and what happens when memory runs out or numbers are not finite."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from gamespiel.agents.buffer import TurnBuffer
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.models.memory import MemoryLimitError, is_out_of_memory
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.sampling.noise import permutation
from tests.agents.toys import (
    ONE_STEP,
    Bandit,
    Begun,
    asked,
    assert_same_step,
    collect,
    draw_batches,
    gradient_of,
    make_ppo,
    prompts_of,
    relative,
    rows_of,
    trained,
)

pytestmark = [pytest.mark.trains, pytest.mark.sample]

Score = Callable[..., Any]


def learner(**kwargs: Any) -> LLMPPO:
    """Returns a learner with one step's episodes in its buffer; A and B of its adapters are random."""
    settings = {"batch_size": 5, "adapters": 0.05, "max_grad_norm": 1e9, "ent_coef": 0.1, "vf_coef": 0.5}
    model = make_ppo(**settings | kwargs)
    assert collect(model)
    return model


def weights_of(model: LLMPPO) -> torch.Tensor:
    return torch.cat([p.detach().clone().flatten() for p in model.policy.trainable_parameters()])


def around_scores(
    model: LLMPPO, monkeypatch: pytest.MonkeyPatch, change: Callable[[int, list[Any], Score], Any]
) -> None:
    """Calls ``change(k, prompts, score)`` in place of the k-th scoring with gradients."""
    score, calls = model.policy.scorer.score, iter(range(10**6))

    def instead(decisions: list[Any], *args: Any, **options: Any) -> Any:
        if not torch.is_grad_enabled():
            return score(decisions, *args, **options)
        prompts = [decision.prompt for decision in decisions]
        return change(next(calls), prompts, lambda: score(decisions, *args, **options))

    monkeypatch.setattr(model.policy.scorer, "score", instead)


def strike(model: LLMPPO, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Lets one scoring with gradients find no memory."""

    def strike(k: int, prompts: list[Any], score: Score) -> Any:
        if k == at:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return score()

    around_scores(model, monkeypatch, strike)


def train_in_batches(model: LLMPPO, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Makes the learner's update; returns the prompts of each of its optimizer steps."""
    batches: list[list[Any]] = [[]]

    def note(k: int, prompts: list[Any], score: Score) -> Any:
        batches[-1] += prompts
        return score()

    step = model.policy.optimizer.step
    around_scores(model, monkeypatch, note)
    monkeypatch.setattr(model.policy.optimizer, "step", lambda: (batches.append([]), step()))
    model.train()
    assert batches.pop() == []  # nothing is scored after the last optimizer step
    return batches


# -- forwards ------------------------------------------------------------------------------------------------


def test_the_optimizer_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 × 2 turns per optimizer step, fewer in the last; an epoch's forwards have every turn once."""
    model = make_ppo(
        batch_size=6, mini_batch_size=3, gradient_accumulation_steps=2, ppo_epochs=2, tokens_per_backward=200
    )
    model.step = 3
    assert collect(model)
    forwards: list[int] = []

    def note(k: int, prompts: list[Any], score: Score) -> Any:
        before = model.policy.engine.tokens_read
        scores = score()
        forwards.append(len(prompts))
        assert model.policy.engine.tokens_read - before <= 200
        return scores

    around_scores(model, monkeypatch, note)
    batches = train_in_batches(model, monkeypatch)
    n = len(model.rollout_buffer)
    assert n > 12 and n % 6  # at least two whole steps, and a remainder
    orders = [permutation(0, 3, epoch, n) for epoch in (0, 1)]
    expected = [order[start : start + 6] for order in orders for start in range(0, n, 6)]
    texts = prompts_of(model)
    assert [sorted(batch) for batch in batches] == [
        sorted(texts[turn] for turn in index) for index in expected
    ]
    assert max(forwards) > 1 and len(forwards) > len(batches)  # turns share forwards, batches do not


def test_the_number_of_optimizer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three in each of two passes, of equal parts; the last one has what remains."""
    model = make_ppo(batch_size=5, num_minibatches=3, mini_batch_size=1, ppo_epochs=2)
    assert collect(model)
    sizes = [len(batch) for batch in train_in_batches(model, monkeypatch)]
    n = len(model.rollout_buffer)
    part = -(-n // 3)
    assert sizes == [part, part, n - 2 * part] * 2


class Doors(Bandit):
    """A bandit behind one of four doors, which its text names."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Begun:
        super().reset(seed=seed)
        return f"door {self.np_random.integers(4)}{asked((0, 1))}", {"game": "bandit", "seat": 0}


def test_optimizer_batches_of_whole_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts in a drawn order, with all their turns, until there are at least 8 turns."""
    model = make_ppo(Doors, batch_size=24, mini_batch_size=8, minibatch_unit="prompt", ppo_epochs=2)
    model.step = 3
    assert collect(model)
    batches = train_in_batches(model, monkeypatch)
    texts = prompts_of(model)
    doors = list(dict.fromkeys(texts))  # in the order in which they were met
    assert len(doors) == 4 and len(texts) == 24
    assert batches == draw_batches([[door] * texts.count(door) for door in doors], 3, 8)
    assert 2 < len(batches) < 2 * 4  # some of them have several doors


def test_the_gradient_does_not_depend_on_the_forwards() -> None:
    whole, split = (learner(**ONE_STEP, tokens_per_backward=budget) for budget in (10**6, 150))
    assert_same_step(whole, split, "actor_grad_norm", "critic_grad_norm")


def test_tokens_per_decision() -> None:
    """A bandit's prompts are all the same, and its answers have one choice: each forward reads one prompt.

    Eight decisions are played in two waves. The update reads the prompt for the reference and in each of 3
    epochs. The legal mass at the end of turn asks for one more token, in a sequence for each answer given.
    """
    for legal_coef in (0.0, 0.1):
        model = make_ppo(Bandit, envs=4, batch_size=8, ppo_epochs=3, legal_coef=legal_coef)
        model.learn(8)
        (row,) = rows_of(model)
        prompt = len(model.policy.prompts(Bandit().reset()[0])[0])
        assert row["rollout/tokens_per_decision"] == 2 * prompt / 8
        answers = len({decision.tokens for decision in model.rollout_buffer.decisions})
        update = answers * (prompt + 1) if legal_coef else prompt
        assert row["train/tokens_per_decision"] == (prompt + 3 * update) / 8


# -- memory --------------------------------------------------------------------------------------------------


def test_what_says_that_there_is_no_memory() -> None:
    """PyTorch on the CPU raises a plain RuntimeError, NumPy a MemoryError, CUDA and cuBLAS their own."""
    with pytest.raises(MemoryError) as caught:
        np.empty(1 << 58, dtype=np.uint8)
    for error in (
        cpu_error(),
        caught.value,
        torch.OutOfMemoryError("CUDA out of memory"),
        torch.AcceleratorError("CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ):
        assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))


def cpu_error() -> RuntimeError:
    """Returns what torch raises if the CPU has no memory left, by asking for 2⁵⁸ bytes."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 58, dtype=torch.uint8)
    return caught.value


def test_the_update_repeats_a_step_that_finds_no_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The 4th forward finds no memory: its optimizer step has accumulated something already.

    All is as in a run whose budget was half from the start, up to the order of sums.
    """
    some = {"batch_size": 8, "mini_batch_size": 12, "ppo_epochs": 2}
    calm, struck = learner(**some, tokens_per_backward=300), learner(**some, tokens_per_backward=300)
    expected = trained(calm)
    strike(struck, monkeypatch, at=3)
    metrics = trained(struck)
    assert relative(gradient_of(struck), gradient_of(calm)) < 1e-4
    assert relative(weights_of(struck), weights_of(calm)) < 1e-5
    assert (calm.policy.budgets.tokens_per_backward, struck.policy.budgets.tokens_per_backward) == (300, 150)
    assert metrics["train/tokens_per_backward"] == 150 and metrics["train/epochs"] == 2
    for name in ("train/policy_loss", "train/kl_ref", "train/entropy"):  # none is counted twice
        assert metrics[name] == pytest.approx(expected[name], rel=1e-4, abs=1e-6)
    said = [record.getMessage() for record in caplog.records if "memory" in record.getMessage()]
    assert said == ["out of memory: ppo.tokens_per_backward falls from 300 to 150"]


def test_errors_that_smaller_forwards_do_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget falls until one turn has no memory; another error is itself at once."""
    model = learner(batch_size=2)
    for error, raised, message, budget in (
        (RuntimeError("mat1 and mat2"), RuntimeError, "^mat1 and mat2$", range(4096, 4097)),
        (torch.OutOfMemoryError("CUDA"), MemoryLimitError, r"ppo\.tokens_per_backward = \d+", range(4096)),
    ):
        with monkeypatch.context() as patch, pytest.raises(raised, match=message):
            around_scores(model, patch, Mock(side_effect=error))
            model.train()
        assert model.policy.budgets.tokens_per_backward in budget


def test_forwards_without_gradients_halve_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is memory for 400 tokens at once, in play and for the reference: the run is the same run."""
    calm, struck = (make_ppo(batch_size=5, adapters=0.05) for _ in range(2))
    decoder, error = struck.policy.engine.transformer, cpu_error()
    read = decoder.forward

    def small(*args: Any, input_ids: torch.Tensor, **kwargs: Any) -> Any:
        if input_ids.numel() > 400 and not torch.is_grad_enabled():
            raise error
        return read(*args, input_ids=input_ids, **kwargs)

    monkeypatch.setattr(decoder, "forward", small)
    struck.policy.budgets.tokens_per_forward = 1600
    for model in (calm, struck):
        assert collect(model)
    for one, other in zip(struck.rollout_buffer.decisions, calm.rollout_buffer.decisions, strict=True):
        assert one.tokens == other.tokens and one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    metrics, expected = (trained(model) for model in (struck, calm))
    assert metrics["train/kl_ref"] == pytest.approx(expected["train/kl_ref"], rel=1e-3)
    assert metrics["train/tokens_per_forward"] == struck.policy.budgets.tokens_per_forward <= 400
    assert struck.policy.budgets.tokens_per_backward == 4096


# -- numbers that are not finite -----------------------------------------------------------------------------


def poison(model: LLMPPO, bad: list[bool]) -> None:
    """Multiplies the gradient of one LoRA matrix by NaN in the backward passes for which ``bad`` is true."""
    plan = iter(bad)
    parameter = model.policy.adapter_parameters()[0]
    parameter.register_hook(lambda grad: grad * (torch.nan if next(plan, False) else 1.0))


def test_an_update_that_is_not_finite_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """One optimizer step per epoch. If the first of three is skipped, two are left: the run of two epochs.

    Every epoch's batch has all turns, so that its order alone differs.
    """
    some = {"make_env": Doors, "batch_size": 16, "mini_batch_size": 64}
    two, three, lossy = (learner(**some, ppo_epochs=epochs) for epochs in (2, 3, 3))
    expected = trained(two)
    poison(three, [True])
    metrics = trained(three)
    assert metrics["train/skipped_updates"] == 1 and expected["train/skipped_updates"] == 0
    assert metrics["train/epochs"] == 3
    assert metrics["train/kl_ref"] == pytest.approx(expected["train/kl_ref"], rel=1e-4)
    assert relative(weights_of(three), weights_of(two)) < 1e-5

    def not_a_number(k: int, prompts: list[Any], score: Score) -> Any:
        scores = score()
        return dataclasses.replace(scores, values=scores.values * (torch.nan if k == 0 else 1.0))

    around_scores(lossy, monkeypatch, not_a_number)
    assert trained(lossy)["train/skipped_updates"] == 1
    assert torch.equal(weights_of(lossy), weights_of(three))


def test_three_in_a_row_are_a_divergence() -> None:
    """Two before a good one are forgiven; then the count goes on from one training step to the next.

    A step without a finite update has no losses.
    """
    model = make_ppo(Bandit, batch_size=8, ppo_epochs=5, adapters=0.05)
    poison(model, [True, True, False, True, True, True])
    model.learn(8)
    (row,) = rows_of(model)
    assert row["train/skipped_updates"] == 4 and model.skipped.in_a_row == 2
    before = weights_of(model)
    with pytest.raises(DivergedError, match=r"step 2: the loss .* of 3 updates in a row") as caught:
        model.learn(8)
    assert (caught.value.step, caught.value.in_play, model.step) == (1, False, 1)
    assert torch.equal(weights_of(model), before)
    model = learner(make_env=Bandit, ppo_epochs=2, mini_batch_size=64)
    poison(model, [True, True])
    metrics = trained(model)
    assert metrics["train/skipped_updates"] == 2 and "train/kl_ref" not in metrics
    assert metrics["train/kl_coef"] == 0.2  # nothing was measured, and nothing moves


def test_weights_that_are_not_finite_are_a_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient was finite; nothing after it would notice before a checkpoint is written."""
    model = make_ppo(Bandit, batch_size=8, adapters=0.05)
    step = model.policy.optimizer.step

    def overflow() -> None:
        step()
        model.policy.adapter_parameters()[0].data[0] = torch.inf

    monkeypatch.setattr(model.policy.optimizer, "step", overflow)
    with pytest.raises(DivergedError, match=r"step 1: it left weights that are not finite") as caught:
        model.learn(8)
    assert (caught.value.step, caught.value.in_play, model.step) == (0, False, 0)


# -- how far a step may go -----------------------------------------------------------------------------------


def test_max_step_kl_ends_the_epochs() -> None:
    """The first batch is scored by the policy that played it; the second epoch's is not, and ends the step.

    So the weights are those of one epoch. Of batches of 6 turns, the second is too much already.
    """
    fast = {"make_env": Doors, "batch_size": 16, "learning_rate": 1e-2}
    one, free, limited = (
        learner(**fast, mini_batch_size=64, ppo_epochs=epochs, max_step_kl=limit)
        for epochs, limit in ((1, None), (4, None), (4, 1e-4))
    )
    for model, epochs in ((one, 1), (free, 4), (limited, 1)):
        assert trained(model)["train/epochs"] == epochs
    assert torch.equal(weights_of(limited), weights_of(one))
    assert not torch.equal(weights_of(free), weights_of(one))
    short = learner(**fast, max_step_kl=1e-4, mini_batch_size=6, ppo_epochs=4)
    assert trained(short)["train/epochs"] == 6 / 16


# -- types other than float32 --------------------------------------------------------------------------------


def test_divergences_are_never_negative() -> None:
    """Adapters without effect: both divergences are 0 in theory, and rounding has either sign."""
    model = learner(adapters=0.0, learning_rate=1e-12)
    metrics = trained(model)
    assert 0 <= metrics["train/kl_ref"] < 1e-6 and 0 <= metrics["train/approx_kl"] < 1e-6


def half(**kwargs: Any) -> LLMPPO:
    settings = {"lora": {"r": 4}, "model": {"dtype": "bfloat16"}}
    return learner(policy_kwargs=settings, mini_batch_size=4, **{"batch_size": 4} | kwargs)


def test_in_bfloat16_the_forwards_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second epoch has the forwards of the first one, its batches in another order."""
    model = half(batch_size=5, tokens_per_backward=150, ppo_epochs=2)
    epochs: list[list[list[Any]]] = [[], []]

    def note(k: int, prompts: list[Any], score: Score) -> Any:
        epochs[done[-1] // n].append(prompts)
        return score()

    n, done = len(model.rollout_buffer), [0]
    model.on_progress = lambda phase, so_far, total: done.append(so_far)
    around_scores(model, monkeypatch, note)
    model.train()
    first, second = epochs
    assert sorted(text for texts in first for text in texts) == sorted(prompts_of(model))
    assert sorted(first) == sorted(second) and len(first) > n / 4
    assert first != second


def test_in_bfloat16_the_first_ratio_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scored again, old and new log-probabilities are the same numbers; how far the sampler was is logged.

    Some processors round as much in forwards of several turns as of one, so the sampler's numbers are moved.
    """
    add = TurnBuffer.add

    def add_moved(buffer: TurnBuffer, episode: int, decision: Decision, *rest: Any) -> None:
        moved = tuple(log_prob - 0.01 for log_prob in decision.log_probs)
        add(buffer, episode, dataclasses.replace(decision, log_probs=moved), *rest)

    monkeypatch.setattr(TurnBuffer, "add", add_moved)
    model = half(tokens_per_backward=1, learning_rate=1e-12)
    new: list[float] = []

    def note(k: int, prompts: list[Any], score: Score) -> Any:
        scores = score()
        new.extend(scores.sum(scores.log_probs).tolist())
        return scores

    around_scores(model, monkeypatch, note)
    metrics = trained(model)
    whole = model.rollout_buffer.batch(np.arange(len(model.rollout_buffer)))
    assert sorted(new) == sorted(whole.old_log_probs.tolist())
    assert metrics["train/approx_kl"] == 0 and metrics["train/clip_fraction"] == 0
    gaps = (whole.old_log_probs - whole.sampler_log_probs).abs()
    assert metrics["train/sampler_gap"] == pytest.approx(float(gaps.mean()), rel=1e-4)
    assert metrics["train/sampler_gap_max"] == pytest.approx(float(gaps.max()), rel=1e-4)
    assert metrics["train/sampler_gap_max"] > 1e-4


def test_in_bfloat16_memory_that_runs_out_at_once_is_no_reason_for_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the first optimizer step, the turns are scored again in the smaller forwards."""
    model = half(tokens_per_backward=300, learning_rate=1e-12)
    strike(model, monkeypatch, at=0)
    metrics = trained(model)
    assert metrics["train/tokens_per_backward"] == 150 and metrics["train/approx_kl"] == 0
