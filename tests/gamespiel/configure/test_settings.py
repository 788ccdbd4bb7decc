"""The configuration of the answers: preset, memory, tasks, opponents and steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.models.memory_plan import GIB
from gamespiel.config import InvalidValueError, resolve
from gamespiel.configure import pace
from gamespiel.configure.answers import Answers, read_card, read_model, read_opponents, read_tasks
from gamespiel.configure.pace import (
    Sample,
    count_distinct,
    find_pace,
    hour_settings,
    play_sample,
    step_flops,
)
from gamespiel.configure.settings import Draft, draft_of, plan_of


def answers(
    model: str, card: str, games: str = "leduc_poker", opponents: str = "random", hours: float | None = None
) -> Answers:
    names = () if games == "traces" else read_opponents(opponents)
    path = Path("mine.yaml")
    return Answers(read_model(model), read_card(card), read_tasks(games), names, hours, path)


def data(*given: str, **more: Any) -> dict[str, Any]:
    return draft_of(answers(*given, **more)).data()


@pytest.mark.parametrize(
    ("model", "card", "preset"),
    [
        # qwen3-4b's presets take 7.83, 12.81, 12.81 and 58.68 GiB, and 90% of a card may be taken.
        ("qwen3-4b", "8.8", "qwen3-4b-12gb"),
        ("qwen3-4b", "16gb", "qwen3-4b"),
        ("qwen3-4b", "80gb", "qwen3-4b-80gb"),
        ("qwen3-4b-16gb", "80gb", "qwen3-4b-16gb"),
        # 5.92, 9.71, 19.14 and 46.18 GiB.
        ("qwen2.5-3b", "10", "qwen2.5-3b-12gb"),
        ("qwen2.5-3b", "24gb", "qwen2.5-3b-24gb"),
    ],
)
def test_the_preset_that_fills_the_card(model: str, card: str, preset: str) -> None:
    assert data(model, card) == {"preset": preset, "env": {"game": "leduc_poker"}}


def test_a_small_card_takes_4_bits_and_smaller_budgets() -> None:
    draft = draft_of(answers("qwen3-4b", "8"))
    assert draft.preset == "qwen3-4b-12gb"  # it has 4 bits, and takes 7.83 of the 7.2 GiB that are free
    assert draft.data()["ppo"] == {"tokens_per_backward": 4096, "tokens_per_forward": 8192}
    assert plan_of(draft).peak < 0.9 * 8 * GIB
    with pytest.raises(InvalidValueError, match=r"--card: 2 GiB .*Qwen/Qwen3-4B takes .*smollm2-135m"):
        data("qwen3-4b", "2")


def test_a_model_without_a_preset_starts_from_the_defaults() -> None:
    assert data("qwen3-1.7b", "80gb") == {
        "model": {"model_name": "Qwen/Qwen3-1.7B"},
        "env": {"game": "leduc_poker"},
    }
    # 5.93 GiB with these budgets (docs/models.md); 4 bits are not needed.
    assert data("qwen3-1.7b", "8") == {
        "model": {"model_name": "Qwen/Qwen3-1.7B", "gradient_checkpointing": True},
        "ppo": {"tokens_per_forward": 8192},  # 4096 with gradients is the default
        "env": {"game": "leduc_poker"},
    }


def test_a_model_of_unknown_size_is_not_planned() -> None:
    draft = draft_of(answers("someone/a-model", "24gb", hours=3))
    assert draft.data()["model"] == {"model_name": "someone/a-model", "gradient_checkpointing": True}
    settings, found = hour_settings(draft, answers("someone/a-model", "24gb", hours=3))
    assert found is not None and found.seconds is None
    assert settings[0][:2] == ("ppo.num_train_steps", 10_000)  # the default
    assert "not planned for 3 h" in settings[0].reason


def test_tasks() -> None:
    tiny = {"preset": "tiny", "run": {"device": "cpu", "exact_every": None}}
    assert data("tiny", "cpu", "hex,clobber") == tiny | {"env": {"allowed_game_indices": [6, 7]}}
    assert data("tiny", "cpu", "0-99") == tiny | {"env": {"task_ids": [[0, 99]]}}
    assert data("tiny", "cpu", "5") == tiny | {"env": {"task_id": 5}}
    mixed = [[600_000_000, 699_999_999], 7]
    assert data("tiny", "cpu", "7,hex") == tiny | {"env": {"task_ids": mixed}}
    assert data("tiny", "cpu", "kuhn_poker") == {
        "preset": "tiny",
        "env": {"game": "kuhn_poker"},
        "run": {"device": "cpu"},  # small enough for the preset's exact values
    }


def test_traces() -> None:
    assert data("tiny", "cpu", "traces") == {"preset": "tiny-trace", "run": {"device": "cpu"}}
    config = draft_of(answers("smollm2-135m", "cpu", "traces")).config()
    assert (config.env.env_type, config.env.answer, config.ppo.batch_size) == ("trace", "name", 32)
    assert data("qwen3-4b", "12gb", "traces")["env"] == {"env_type": "trace", "answer": "name"}


def test_opponents() -> None:
    assert data("tiny", "cpu", opponents="self") == {
        "preset": "tiny-selfplay",
        "env": {"game": "leduc_poker"},
        "run": {"device": "cpu"},
    }
    config = draft_of(answers("tiny", "cpu", opponents="random,mcts:20x1")).config()
    stages = [(stage.name, stage.opponent) for stage in config.curriculum.stages]
    assert stages == [("random", "random"), ("mcts:20x1", "mcts:20x1")]
    assert config.env.opponent == "random"
    assert data("qwen3-4b", "24gb", opponents="mcts")["env"]["opponent"] == "mcts"


def test_measured_hours() -> None:
    """80 steps took 155 s, so 90% of an hour are 3240 / (155 / 80) = 1672.3 steps."""
    asked = answers("tiny", "cpu", hours=1)
    settings, found = hour_settings(draft_of(asked), asked)
    assert [setting[:2] for setting in settings] == [
        ("ppo.num_train_steps", 1672),
        ("run.checkpoint_minutes", 30.0),
    ]
    assert found is not None and found.is_measured and "measured, 80 steps took 155 s" in settings[0].reason
    half = answers("smollm2-135m", "cpu", "kuhn_poker", hours=0.5)
    settings, _ = hour_settings(draft_of(half), half)
    assert [setting[:2] for setting in settings] == [("ppo.num_train_steps", 121)]  # 1620 / (240 / 18)
    assert hour_settings(draft_of(answers("tiny", "cpu")), answers("tiny", "cpu")) == ([], None)


def test_assumed_hours_say_what_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """250 characters are 100 tokens; 16 games of 2 turns have 3,200.

    The layers of Qwen3-4B have 36 × 100,925,440 = 3,633,315,840 parameters, the adapters of rank 16
    33,030,144, and the value head 2,561 more.
    """
    monkeypatch.setattr(pace, "play_sample", lambda config: Sample(2.0, 250.0))
    asked = answers("qwen3-4b", "24gb", hours=8)
    found = find_pace(draft_of(asked), asked)
    layers, adapters = 3_633_315_840, 33_030_144 + 2_561
    flops = 3200 * (2 * (layers + adapters) * 7 + (2 * layers + 4 * adapters) * 4)
    assert found.seconds == pytest.approx(flops / 15e12, rel=1e-6)
    assert not found.is_measured
    assert found.episode_seconds == pytest.approx(200 * 2 * (layers + adapters) / 15e12, rel=1e-6)
    assert "15 TFLOP/s" in found.source and "2.0 turns per game" in found.source
    few, _ = hour_settings(draft_of(asked), answers("qwen3-4b", "24gb", hours=0.05))
    assert few[0].value == 9 and few[0].reason.endswith("steps warm up")  # 162 / 17.3 s
    config = resolve("qwen3-4b")
    assert step_flops(config, 10, 1, 5) == 5 * (2 * 11 * 7 + 24 * 4)  # 4 epochs: 7 forwards, 4 backwards
    slow = draft_of(answers("qwen3-4b", "24gb", opponents="mcts:20"))
    assert "The time of mcts:20 is not in it" in find_pace(slow, asked).source


def test_the_embedded_model_in_other_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,024 games of 10 turns at 50 decisions per second: 204.8 s, and 15 such steps in 90% of an hour.

    An episode takes 0.2 s. In 360 s there are 1,800: 450 per seat, before and after.
    """
    monkeypatch.setattr(pace, "play_sample", lambda config: Sample(10.0, 250.0))
    asked = answers("tiny", "cpu", "hex", hours=1)
    settings, found = hour_settings(draft_of(asked), asked)
    assert found is not None and found.seconds == pytest.approx(204.8)
    assert [setting[:2] for setting in settings] == [
        ("ppo.num_train_steps", 15),
        ("run.checkpoint_minutes", 30.0),
        ("run.eval_games", 450),
    ]


def test_a_sample_of_games() -> None:
    """In tic_tac_toe a seat has 3 to 5 turns, and the same ones each time."""
    config = Draft(None, "", draft_of(answers("tiny", "cpu", "tic_tac_toe")).settings).config()
    sample = play_sample(config)
    assert 3 <= sample.turns <= 5 and sample == play_sample(config)
    assert count_distinct(["abc", "abd", "abc", "x"]) == 3 + 0 + 1 + 1
