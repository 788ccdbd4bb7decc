"""The benchmark's parts, and a run of it on the embedded model that is far too short to measure anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from benchmarks import train_speed
from benchmarks.train_speed import SETTINGS, make_policy, summary
from benchmarks.train_step import apart, flops
from benchmarks.train_ways import EachAction, Everywhere, Ours, Timed, Turn, collect, race, shape_of
from gamespiel.agents.models.loading import ModelSettings
from gamespiel.agents.policy import LLMPolicy


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    made = make_policy(ModelSettings("tiny", dtype="float32"), "padded")
    with torch.no_grad():
        for parameter in made.adapter_parameters():  # B = 0 would give A no gradient
            parameter.normal_(std=0.05)
    return made


def test_turns_come_from_random_play_in_rounds() -> None:
    """Leduc poker: 4 turns come from 2 episodes or more, the first turns of all before the second ones."""
    turns = collect(SETTINGS["leduc"], 4, lambda text: tuple(map(ord, text)))
    assert len(turns) == 4
    assert all(turn.action in turn.legal for turn in turns)
    wide = collect(SETTINGS["30 actions"], 2, lambda text: (1,), range(24, 37))
    assert [len(turn.legal) in range(24, 37) for turn in wide] == [True, True]


def test_the_shape_of_turns() -> None:
    """Two prompts share 2 of their 3 tokens, and one of them comes twice: 9 tokens, 4 of them distinct."""
    turns = [Turn((1, 2, 3), (0,), 0), Turn((1, 2, 4), (0, 1, 2), 0), Turn((1, 2, 3), (0, 5), 5)]
    assert shape_of(turns) == {
        "turns": 3, "distinct_prompts": 2, "legal_actions": 2.0, "tokens_per_prompt": 3.0,
        "distinct_tokens_per_turn": 1.3,
    }  # fmt: skip


def test_each_actions_gradient_is_that_of_the_normalised_log_probability(policy: LLMPolicy) -> None:
    """Eleven actions are three micro-batches; their gradients add up to that of one graph of all."""
    way, turn = EachAction(policy), Turn((5, 6, 7, 8), tuple(range(11)), 10)
    way.sample([turn])
    way.update([turn])
    found = [p.grad.clone() for p in policy.adapter_parameters() if p.grad is not None]
    policy.optimizer.zero_grad(set_to_none=True)
    (-way.scores(turn.prompt, turn.legal).log_softmax(-1)[10]).backward()
    expected = [p.grad for p in policy.adapter_parameters() if p.grad is not None]
    assert len(found) == len(expected) > 0
    assert any(bool(gradient.abs().max() > 1e-3) for gradient in found)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-3)


def test_log_probabilities_everywhere_are_the_scores_of_the_actions(policy: LLMPolicy) -> None:
    """Both ways give an answer's log-probability in the whole vocabulary, so they must agree."""
    turns = [Turn((5, 6, 7, 8), (3, 12), 12), Turn((9, 10), (3, 12), 3)]
    with torch.no_grad():
        everywhere = Everywhere(policy).log_probs(turns)
        scores = torch.cat([EachAction(policy).scores(turn.prompt, [turn.action]) for turn in turns])
    torch.testing.assert_close(everywhere, scores, atol=1e-5, rtol=1e-5)


def test_tokens_that_are_read(policy: LLMPolicy) -> None:
    """A prompt of 4 tokens, answers of a digit and the end of the turn.

    Ours reads the prompt. Each of the 2 actions reads prompt and digit, and everywhere also the end.
    """
    ways = {"padded": Ours(policy), "each action": EachAction(policy), "everywhere": Everywhere(policy)}
    found = race(ways, ("sample", "update"), [Turn((5, 6, 7, 8), (3, 4), 4)], 2)
    tokens = {
        name: {phase: timed.tokens for phase, timed in phases.items()} for name, phases in found.items()
    }
    assert tokens == {
        "padded": {"sample": 4, "update": 4},
        "each action": {"sample": 10, "update": 10},
        "everywhere": {"update": 6},
    }
    assert all(len(timed.seconds) == 2 for phases in found.values() for timed in phases.values())


def test_ratios_are_medians_over_repetitions() -> None:
    """Shared takes 1 + 1, 2 + 2 and 1 + 1 seconds, each action 10 + 20, 20 + 40 and 20 + 40."""
    timed = {
        "shared": {"sample": Timed([1, 2, 1], 10), "update": Timed([1, 2, 1], 20)},
        "each action": {"sample": Timed([10, 20, 20], 300), "update": Timed([20, 40, 40], 600)},
    }
    found = summary("30 actions", timed, turns=2)
    assert found["times_slower_than_shared"] == {"each action": {"sample": 10.0, "update": 20.0, "all": 15.0}}
    assert found["seconds"]["each action"] == {"sample": 20, "update": 40}
    assert found["tokens_per_decision"]["shared"] == {"sample": 5.0, "update": 10.0}
    assert found["targets"] == {"each action": {"phase": "all", "target": 10.0, "found": 15.0}}


def test_the_operations_of_a_step() -> None:
    """100 parameters and 10 of adapters; 5 tokens sampled; 4 passes of 3 tokens, 2 of them with gradients.

    Forwards: 2 * 110 * (5 + 12) = 3740. Backwards: (2 * 100 + 4 * 10) * 6 = 1440.
    """
    assert flops(100, 10, sampled=5, updated=12, epochs=2, twice=True) == 3740 + 1440


def test_what_is_measured_apart_has_a_process_of_its_own() -> None:
    assert apart(os.getpid) != os.getpid()


@pytest.mark.trains
def test_a_short_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_speed, "apart", lambda work, *given: work(*given))
    options = "--model tiny --turns 3 --scored-turns 1 --repetitions 1 --out"
    results = train_speed.main([*options.split(), f"{tmp_path}"])
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[-1]) == results == json.loads((tmp_path / "train_speed.json").read_text())
    settings = results["ways"]["settings"]
    assert list(settings) == list(SETTINGS)
    assert list(settings["leduc, rules"]["seconds"]) == ["shared", "padded", "everywhere"]
    assert list(settings["30 actions"]["seconds"]) == ["shared", "padded", "each action"]
    assert 24 <= settings["30 actions"]["legal_actions"] <= 36
    assert list(results["steps"]["tiny"]["steps"]) == ["ppo_epochs_1", "ppo_epochs_4"]
    assert all(step["seconds"] > 0 for step in results["steps"]["tiny"]["steps"].values())
