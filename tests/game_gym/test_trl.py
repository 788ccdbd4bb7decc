"""Games in TRL: the contract of its ``environment_factory``, and a GRPO step with the real trainer."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from game_gym.trl import GameSpielTRL
from task_gym.errors import EpisodeError


def test_a_game_by_calls() -> None:
    env = GameSpielTRL(game="tic_tac_toe", opponent="first", rules=False)
    assert "You are Player 0." in env.reset(seed=0, prompt="another column")
    assert "x" in env.play(4)
    told = env.play(4)  # the mask in words: taken by then
    assert told.startswith("action: 4 was given, legal: 1, 2, 3") and "Legal Actions:" in told
    assert env.get_reward() == pytest.approx(-0.01)
    env.play(2)
    assert "Result: win" in env.play(6)
    assert env.get_reward() == pytest.approx(0.99)
    with pytest.raises(EpisodeError):
        env.play(1)
    env.reset(seed=1)
    assert env.get_reward() == 0


def test_a_game_that_is_over_at_its_beginning_is_paid_once() -> None:
    env = GameSpielTRL(game="euchre", rules=False)
    assert "Game over" in env.reset(seed=9)  # the partner plays alone
    assert env.get_reward() == 0.25
    assert "Game over" in env.play(0) and env.get_reward() == 0.25


def test_tasks_come_from_columns() -> None:
    env = GameSpielTRL(task_ids=[600_000_000, 200_000_000])
    assert "Game: hex" in env.reset(seed=1, task_id=600_000_000)
    assert "Game: leduc_poker" in env.reset(seed=1, task_id=200_000_000)


def test_its_only_tool_is_described() -> None:
    tools = [
        name
        for name, _ in inspect.getmembers(GameSpielTRL, inspect.isfunction)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    ]
    assert tools == ["play"]
    schema = pytest.importorskip("transformers.utils").get_json_schema(GameSpielTRL(game="hex").play)
    assert schema["function"]["parameters"]["properties"]["action"]["type"] == "integer"


@pytest.mark.trains
def test_a_grpo_step_on_the_embedded_model(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from datasets import Dataset
    from trl import chat_template_utils

    from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer

    settings, begun = ModelSettings("tiny"), []

    class Watched(GameSpielTRL):
        def reset(self, **columns: Any) -> str:
            text = super().reset(**columns)
            begun.append((columns["seed"], text))
            return text

    tokenizer = load_tokenizer(settings)
    tokenizer.chat_template = chat_template_utils.qwen3_chat_template  # the model's own has no tools
    tokenizer.response_template = None
    rows = [{"prompt": [{"role": "user", "content": "Play."}], "seed": seed} for seed in (1, 2)]
    trainer = trl.GRPOTrainer(
        load_base(settings, "cpu", 0),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=2,
            max_completion_length=8, use_cpu=True, bf16=False, report_to=[], save_strategy="no",
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        environment_factory=partial(Watched, game="kuhn_poker", rules=False),
    )  # fmt: skip
    done = trainer.train()
    assert done.global_step == 1 and "rewards/Watched/mean" in done.metrics
    assert {seed for seed, _ in begun} == {1, 2} and all("Legal Actions:" in text for _, text in begun)
