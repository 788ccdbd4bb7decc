"""Games in verifiers: its own evaluator plays them with a model behind an address, and scores them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verifiers", reason="verifiers is not installed")

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.cli.validate import run_validate
from verifiers.v1.configs.cli.eval import EvalConfig
from verifiers.v1.configs.cli.validate import ValidateConfig

from game_gym.text_env import GameSpielTextEnv
from tests.gamespiel.endpoints.models import Body, ModelStub, choices

LEDUC = {"game": "leduc_poker", "rules": False}


def first_legal(body: Body) -> str:
    """Answers with the first action that the last message lists."""
    return str(choices(body)[0][0])


def evaluated(answer: Any, folder: Path, **taskset: Any) -> tuple[list[Any], ModelStub]:
    """Returns the episodes' traces, and the model's server."""
    with ModelStub(answer) as server:
        config = {
            "env": {"taskset": {"id": "gamespiel-games", "arguments": LEDUC, **taskset}},
            "model": "stub", "client": {"base_url": server.url, "api_key_var": "NONE"},
            "push": False, "rich": None, "output_dir": folder,
        }  # fmt: skip
        episodes = asyncio.run(run_eval(EvalConfig.model_validate(config)))
    assert all(episode.ok for episode in episodes), [episode.errors for episode in episodes]
    return [trace for episode in episodes for trace in episode.traces], server


def test_the_validator_accepts_the_tasks(tmp_path: Path) -> None:
    """As ``vf-validate gamespiel-games`` does, which finds the distribution of hub/prime/ by its name."""
    settings = {
        "taskset": {"id": "gamespiel-games", "arguments": LEDUC, "size": 3},
        "runtime": {"type": "subprocess"}, "only_setup": True, "rich": False, "output_dir": tmp_path,
    }  # fmt: skip
    rows = asyncio.run(run_validate(ValidateConfig.model_validate(settings)))
    assert [row["reason"] for row in rows] == ["valid"] * 3, rows


def test_the_evaluator_scores_games(tmp_path: Path) -> None:
    traces, server = evaluated(first_legal, tmp_path, seed=3, size=4)
    env, asked = GameSpielTextEnv(**LEDUC), 0
    for trace, seed in zip(sorted(traces, key=lambda trace: trace.task.data.seed), range(3, 7), strict=True):
        text, info = env.reset(seed=seed)
        assert trace.task.data.prompt == text
        while "result" not in info:
            asked += 1
            _, reward, *_, info = env.step(str(info["legal_actions"][0]))
        assert trace.reward == pytest.approx(reward) and trace.metrics["illegal"] == 0
        assert trace.info["result"] == info["result"]
    assert len(server.asked) == asked
    # The conversation goes on: later requests have the earlier observations and replies.
    assert max(len(body["messages"]) for body in server.asked) >= 3


def test_without_the_mask_it_fails(tmp_path: Path) -> None:
    # Nobody has bet before the first turns, so that folding is not legal: three times in a row it gives up.
    traces, server = evaluated(lambda body: "0", tmp_path, seed=0, size=4)
    given_up = [trace for trace in traces if trace.metrics["illegal"] == 3]
    assert given_up
    for trace in given_up:
        assert trace.reward == pytest.approx(-0.03) and trace.info["result"] == "loss"
    said = {message["content"] for body in server.asked for message in body["messages"]}
    assert any(
        text.startswith("reply: '0' names no legal action, legal: 1, 2\n\nGame: leduc_poker") for text in said
    )
