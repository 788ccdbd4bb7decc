"""Kernels compute the same as without them, in fewer operations, and can be switched back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gamespiel.agents.engines import make_engine
from gamespiel.agents.engines.graphs import CaptureError, pad_row, round_row
from gamespiel.agents.engines.kernels import (
    NAMES,
    KernelError,
    find_adapted,
    list_active,
    switch,
    using,
)
from gamespiel.agents.engines.token_tree import TokenTree
from gamespiel.agents.models import BASE, NEWEST
from gamespiel.agents.models.memory_plan import ONE_TILE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.config import from_dict
from task_gym.errors import ArgumentError
from tests.agents.cards import card
from tests.agents.deciders import forwards
from tests.agents.families import FAMILIES, SIZES
from tests.agents.toys import N_ACTIONS, asked, make_policy, masks_of, randomise, relative, same_noise

LAYER_KERNELS = ("one_tile", "added_masks", "fused_norms", "lean_adapters")

LEGAL = [(0, 1), (2, 12, 120), (1, 12, 123), (0, 15)]
TEXTS = [f"{'The rules are long. ' * 8}{'Twice' * (i % 2)} seat {i}{asked(LEGAL[i])}" for i in range(4)]
"""Prompts with common beginnings, whose tree has several tiles of 128 tokens."""

FEW = [f"seat {i}{asked((0, 1))}" for i in range(2)]
"""Prompts whose tree has one tile."""


def make(folder: Path, family: str = "qwen3", device: str = "cpu", **model: Any) -> LLMPolicy:
    """Returns a policy on a small model with random weights; at rank 2 no adapter is added to its weights."""
    name = FAMILIES[family].save(folder)
    settings = {"model_name": name, "random_weights": True, "reading": "shared", "dtype": "float32"} | model
    policy = make_policy(adapters=0.05, model=settings, lora={"r": 2}, seed=1, device=device)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in (p for name, p in policy.model.named_parameters() if "norm" in name):
            parameter.copy_(1 + 0.2 * torch.randn(parameter.shape, generator=generator))
    return policy


def decide(policy: LLMPolicy, **adapters: Any) -> list[Decision]:
    return policy.decide(TEXTS, masks_of(LEGAL, N_ACTIONS), same_noise(0.4, len(TEXTS)), **adapters)


def gradient_of(policy: LLMPolicy, loss: Tensor) -> Tensor:
    policy.optimizer.zero_grad()
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in policy.adapter_parameters() if p.grad is not None])
    policy.optimizer.zero_grad()
    return gradient


def score(policy: LLMPolicy, decisions: Sequence[Decision]) -> tuple[Tensor, Tensor]:
    """Returns log-probabilities of decisions, and the gradient of their sum and of the legal mass."""
    scores = policy.scorer.score(decisions, mass=True)
    assert scores.log_mass is not None
    return scores.log_probs.detach(), gradient_of(policy, scores.log_probs.sum() + scores.log_mass.sum())


def step(policy: LLMPolicy) -> None:
    """Makes an optimizer step, with gradients that do not depend on the kernels."""
    for parameter in policy.trainable_parameters():
        parameter.grad = parameter.detach().cos()
    policy.optimizer.step()
    policy.optimizer.zero_grad()


# -- the same ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "model"),
    [
        ("qwen3", {}),
        *(("qwen3", {name: True}) for name in ("gradient_checkpointing", "use_4bit", "use_8bit")),
        pytest.param("qwen2.5", {}, marks=[pytest.mark.families, pytest.mark.sample]),
        pytest.param("llama", {}, marks=[pytest.mark.families, pytest.mark.sample]),
    ],
    ids=str,
)
def test_log_probabilities_gradients_and_decisions_are_the_same(
    family: str, model: dict[str, bool], tmp_path: Path
) -> None:
    policy = make(tmp_path, family, **model)
    decisions = decide(policy)
    log_probs, gradient = score(policy, decisions)
    with using(policy, NAMES):
        assert list_active(policy) == NAMES
        assert [d.tokens for d in decide(policy)] == [d.tokens for d in decisions]
        found, found_gradient = score(policy, decisions)
    assert (found - log_probs).abs().max() <= 1e-5
    assert relative(found_gradient, gradient) <= 1e-4
    assert list_active(policy) == ()
    assert torch.equal(score(policy, decisions)[1], gradient)


def draw_sequences(seed: int) -> list[tuple[int, ...]]:
    """Returns 8 sequences of 30 to 70 tokens with common beginnings."""
    rng = random.Random(seed)
    shared = [rng.randrange(200) for _ in range(60)]
    return [(*shared[: 20 * (1 + i % 3)], *(rng.randrange(200) for _ in range(10))) for i in range(8)]


def read_all(policy: LLMPolicy, sequences: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    """Returns the hidden states of all tokens, and the gradient of a random sum of them."""
    places = [(row, at) for row, tokens in enumerate(sequences) for at in range(len(tokens))]
    states = policy.engine.read(sequences, *zip(*places, strict=True)).float()
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(3))
    return states.detach(), gradient_of(policy, (states * weights).sum())


@pytest.mark.trains
@pytest.mark.sample
def test_in_bfloat16_no_more_is_rounded_away(tmp_path: Path) -> None:
    """Squared distances from float32 are summed over trees: one tree's is mostly chance."""
    squares = {names: np.zeros(2) for names in ((), *((name,) for name in LAYER_KERNELS), NAMES)}
    low, high = (make(tmp_path, dtype=dtype) for dtype in ("bfloat16", "float32"))
    randomise(low, 0.01)
    with torch.no_grad():
        for ours, theirs in zip(high.model.parameters(), low.model.parameters(), strict=True):
            ours.copy_(theirs)
    for sequences in map(draw_sequences, range(4)):
        exact = read_all(high, sequences)
        for names, total in squares.items():
            with using(low, names):
                pairs = zip(read_all(low, sequences), exact, strict=True)
                total += [relative(ours, theirs) ** 2 for ours, theirs in pairs]
    plain = squares.pop(())
    for names, total in squares.items():
        assert (np.sqrt(total / plain) <= 1.25).all(), names


# -- fewer operations --------------------------------------------------------------------------------------


class Operations(TorchDispatchMode):
    """Counts the operations that PyTorch dispatches, but for other views of the same memory."""

    count = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not op.is_view
        return op(*args, **(kwargs or {}))


class Calls(TorchFunctionMode):
    """Counts calls of PyTorch's functions: on a CPU, ``rms_norm`` is made of operations."""

    count = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.trains
@pytest.mark.sample
def test_a_layer_has_fewer_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer's operations are what a model of three layers has more than one of two, forth and back."""
    policies = []
    for layers in (2, 3):
        monkeypatch.setitem(SIZES, "num_hidden_layers", layers)
        policies.append(make(tmp_path, dtype="bfloat16"))
    decisions = decide(policies[0])[:2]

    def count_layer(names: Sequence[str], counting: type[Any]) -> np.ndarray[Any, Any]:
        """Returns what is counted while decisions are scored, and then on the way back, of one layer."""
        counts = []
        for policy in policies:
            with using(policy, names):
                policy.scorer.score(decisions)  # now matrices are cast
                with counting() as forth:
                    log_probs = policy.scorer.score(decisions).log_probs
                with counting() as back:
                    gradient_of(policy, log_probs.sum())
            counts.append(np.array([forth.count, forth.count + back.count]))
        return counts[1] - counts[0]

    plain = count_layer((), Operations)
    alone = [count_layer([name], Operations) for name in ("one_tile", "added_masks", "lean_adapters")]
    assert (np.max(alone, axis=0) < plain).all()
    assert (count_layer(LAYER_KERNELS, Operations) < np.min(alone, axis=0)).all()
    assert (count_layer(["fused_norms"], Calls) < count_layer((), Calls)).all()


def test_an_optimizer_step_is_fewer_operations_and_the_same(tmp_path: Path) -> None:
    plain, fused = (make(tmp_path, kernels=kernels) for kernels in ((), ("fused_adam",)))
    before, stamp = plain.optimizer.state_dict()["param_groups"], fused.adapters.stamp(NEWEST)
    counts = []
    for policy in (plain, fused):
        step(policy)
        with Operations() as operations:
            step(policy)
        counts.append(operations.count)
        with using(policy, () if policy is fused else ["fused_adam"]):
            step(policy)
        step(policy)
    assert counts[1] < counts[0]
    # torch itself counts no change of parameters in a fused step, by which kept prefixes are forgotten.
    assert fused.adapters.stamp(NEWEST) != stamp
    for ours, theirs in zip(fused.trainable_parameters(), plain.trainable_parameters(), strict=True):
        assert (ours - theirs).abs().max() <= 1e-6
    assert plain.optimizer.state_dict()["param_groups"] == before
    for one, other in ((plain, fused), (fused, plain)):
        saved = one.optimizer.state_dict()
        other.optimizer.load_state_dict(saved)
        assert list_active(other) == other.model_settings.kernels


# -- adapters that change ----------------------------------------------------------------------------------


def probabilities(policy: LLMPolicy, name: str, texts: Sequence[str] = TEXTS) -> Tensor:
    rows = policy.distribution(texts, LEGAL[: len(texts)], adapters=name)
    return torch.cat([torch.from_numpy(row) for row in rows])


def read_fresh(policy: LLMPolicy, name: str = NEWEST) -> Tensor:
    """Returns probabilities, after a comparison with those of matrices that are cast anew."""
    found = probabilities(policy, name, FEW)
    with using(policy, ()):  # forgets what was cast
        pass
    assert torch.equal(found, probabilities(policy, name, FEW))
    return found


def test_matrices_are_cast_anew_if_adapters_change(tmp_path: Path) -> None:
    policy = make(tmp_path, dtype="bfloat16", kernels=("lean_adapters", "fused_adam"))
    with torch.no_grad():
        start = {name: value.clone() for name, value in policy.state_dict().items()}
    first = read_fresh(policy)
    step(policy)
    fused = read_fresh(policy)
    with using(policy, ["lean_adapters"]):
        step(policy)
        plain = read_fresh(policy)
    policy.load_state_dict(start)
    assert torch.equal(read_fresh(policy), first)
    base = read_fresh(policy, BASE)
    named = []
    for seed in range(4):  # in the memory of those before, perhaps
        generator = torch.Generator().manual_seed(seed)
        learning = policy.adapters.learning.items()
        adapters = {key: torch.randn(t.shape, generator=generator) * 0.05 for key, t in learning}
        policy.adapters.publish("other", adapters)
        named.append(read_fresh(policy, "other"))
        policy.adapters.forget("other")
        del adapters
    assert torch.equal(read_fresh(policy), first)
    different = [first, fused, plain, base, *named]
    assert not any(torch.equal(a, b) for i, a in enumerate(different) for b in different[:i])


# -- names and errors --------------------------------------------------------------------------------------


def test_kernels_are_a_setting_of_a_policy_that_is_saved(tmp_path: Path) -> None:
    policy = make(tmp_path, kernels=("fused_norms", "fused_adam"))
    assert list_active(policy) == ("fused_norms", "fused_adam")
    policy.save(tmp_path / "policy.zip")
    again = LLMPolicy.load(tmp_path / "policy.zip", device="cpu")
    assert again.model_settings.kernels == list_active(again) == ("fused_norms", "fused_adam")
    with using(again, ["one_tile"]):
        assert list_active(again) == ("one_tile",)
    assert list_active(again) == ("fused_norms", "fused_adam")
    assert from_dict({"model": {"kernels": ["one_tile"]}}).model.kernels == ("one_tile",)


def test_kernels_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded model's layers are small, and their adapters in float32 are added to the weights."""
    for family, model, message in (
        ("qwen3", {"reading": "padded", "kernels": ("graphs",)}, "'graphs': reading 'padded' has no"),
        ("gemma3", {"kernels": ("fused_norms",)}, "'fused_norms': .* are Gemma3RMSNorm; allowed: Llama"),
        ("qwen3", {"dtype": "float16", "kernels": ("lean_adapters",)}, "'lean_adapters': .* float16 model"),
    ):
        with pytest.raises(KernelError, match=message):
            make(tmp_path, family, **model)
    with pytest.raises(KernelError, match="added to the weights in float32"):
        make_policy(model={"kernels": ("lean_adapters",)}, lora={"r": 16})
    low = make(tmp_path, dtype="bfloat16")
    layer: Any = find_adapted(low.model)[0]
    for settings, value, message in (
        (layer.lora_dropout._modules, nn.Dropout(0.1), "dropout"),
        (layer.lora_variant, object(), "DoRA"),
        (layer.lora_bias, True, "without biases"),
    ):
        with monkeypatch.context() as patch, pytest.raises(KernelError, match=message):
            patch.setitem(settings, "default", value)
            switch(low, NAMES)
    with pytest.raises(ArgumentError, match=r"'one_tle' was given, .* did you mean 'one_tile'"):
        switch(low, ["fused_norms", "one_tle"])
    with pytest.raises(KernelError, match="'fused_adam': the optimizer is a NoneType"):
        switch(low.engine, ["fused_norms", "fused_adam"])
    assert list_active(low) == ()


# -- few shapes --------------------------------------------------------------------------------------------


def test_a_padded_row_has_one_of_ten_sizes_and_longer_ones_have_tiles(policy: LLMPolicy) -> None:
    """Two sizes per doubling, in multiples of 64: 2 ** 6.5 is 90.5, which is rounded up to 128.

    Pads attend to themselves.
    """
    sizes = sorted({round_row(tokens) for tokens in range(1, ONE_TILE + 1)})
    assert sizes == [64, 128, 192, 256, 384, 512, 768, 1024, 1472, 2048]
    row = pad_row(TokenTree.build([(5, 6, 7), (5, 8)]))
    assert row[:, :5].tolist() == [[5, 6, 7, 8, 0], [0, 1, 2, 1, 0], [4, 3, 3, 4, 5]]
    assert row.shape == (3, 64) and row[2, 5:].tolist() == list(range(6, 65))
    engine: Any = make_engine(policy.model, "shared")
    with using(engine, ["one_tile"]):
        trees = [TokenTree.build([tuple(range(tokens))]) for tokens in (100, ONE_TILE, 2049)]
        assert [engine._choose_width(tree, 128) for tree in trees] == [100, ONE_TILE, 512]


def test_padded_rows_have_the_same_probabilities(tmp_path: Path) -> None:
    """Rows whose 768 tokens, pads included, would exceed the budget are read as they are."""
    policy = make(tmp_path)
    for name in (NEWEST, BASE):
        expected, choice = probabilities(policy, name), decide(policy, adapters=name)
        with using(policy, ["graphs"]), forwards(policy) as shapes:
            found, again = probabilities(policy, name), decide(policy, adapters=name)
        assert shapes and all(width == round_row(width) for _, width in shapes)
        assert (found.log() - expected.log()).abs().max() <= 2e-6
        assert [d.tokens for d in again] == [d.tokens for d in choice]
        for one, other in zip(again, choice, strict=True):
            assert np.abs(one.log_probs - other.log_probs).max(initial=0) <= 2e-6
    with using(policy, ["graphs"]), forwards(policy) as shapes:
        probabilities(policy, NEWEST)
        ((_, padded),) = shapes
        policy.budgets.tokens_per_forward = padded - 1
        probabilities(policy, NEWEST)
    assert padded == round_row(padded) == round_row(shapes[1][1]) > shapes[1][1]


@pytest.mark.trains
@pytest.mark.sample
def test_a_graph_sees_adapters_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first forward of a shape is not captured. Published adapters have other memory than a graph's."""
    monkeypatch.setitem(SIZES, "num_hidden_layers", 1)
    kernels = ("graphs", "lean_adapters")
    with card() as seen:
        policy, twin = (make(tmp_path, device="cuda", dtype="bfloat16") for _ in range(2))
        seen.working = True
        addresses = [parameter.data_ptr() for parameter in policy.adapter_parameters()]
        for each in (policy, twin):
            other = {key: tensor.cos() * 0.05 for key, tensor in each.adapters.learning.items()}
            each.adapters.publish("other", other)
        switch(policy, kernels)
        results = []

        def count_replays(name: str = NEWEST) -> int:
            """Returns the replays of a forward, whose probabilities are those of one that is not captured."""
            before = seen.replays
            results.append(probabilities(policy, name, FEW))
            replays = seen.replays - before
            with using(twin, kernels):
                assert torch.equal(results[-1], probabilities(twin, name, FEW))
            return replays

        assert [count_replays() for _ in range(3)] == [0, 1, 1]
        for each in (policy, twin):
            step(each)
        assert [count_replays(), count_replays()] == [1, 1]
        assert [count_replays(BASE) for _ in range(2)] == [0, 1]
        assert [count_replays("other") for _ in range(2)] == [0, 0]
        assert count_replays() == 1
        assert [parameter.data_ptr() for parameter in policy.adapter_parameters()] == addresses
        before = seen.replays
        with using(policy, (*kernels, "fused_norms")):  # what was captured has other norms
            probabilities(policy, NEWEST, FEW)
        assert seen.replays == before
    first, stepped, base, other = (results[at] for at in (0, 3, 5, 7))
    assert torch.equal(results[-1], stepped)
    assert not any(torch.equal(a, b) for a, b in combinations((first, stepped, base, other), 2))


def test_a_forward_that_cannot_be_captured(tmp_path: Path) -> None:
    """Mixtures of experts wait for the number of each expert's tokens, and so does this layer."""
    with card() as seen:
        policy = make(tmp_path, device="cuda", kernels=("graphs",))
        seen.working = True
        layer: Any = find_adapted(policy.model)[0]
        layer.register_forward_pre_hook(lambda _, inputs: inputs[0].sum().item() and None)
        probabilities(policy, NEWEST)
        with pytest.raises(
            CaptureError, match=r"'graphs': .* 768 tokens .* capturing; allowed: model\.kernels"
        ):
            probabilities(policy, NEWEST)
