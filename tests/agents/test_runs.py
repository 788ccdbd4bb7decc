"""Measures and files of a run: evaluations and their intervals, the metrics file, and the model card."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from stable_baselines3.common.logger import Logger

from gamespiel.agents.rollout import Episode, Turn
from gamespiel.agents.runs.card import Facts, hub_name, write_card
from gamespiel.agents.runs.evaluation import (
    draw_balanced_seeds,
    group_by,
    measure,
    measure_replies,
    play_seeds,
    policy_agent,
)
from gamespiel.agents.runs.loggers import JSONLWriter, MetricsFileError, read_rows, truncate_after
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.stats import Z95, bound_mean, mean_interval, wilson
from tests.agents.toys import Bandit, Echo, Stairs, make_policy


def episode(index: int, turns: int = 1, illegal: int = 0, reward: float = 0.0, **info: Any) -> Episode:
    """Returns an episode that is over, with its reward in the last turn."""
    mask = np.array([True])
    trie = ActionTrie.build({0: (5,)})
    chosen = Decision((1,), trie, (5,), np.zeros(0, dtype=np.float32), legal_mass=1.0)
    played = [Turn("", mask, 0, chosen, refused=turn < illegal) for turn in range(turns)]
    played[-1].reward = reward
    return Episode(index, index, info, played)


def test_measures_by_hand() -> None:
    """Episodes without replies have no shares of them."""
    measured = measure(
        [
            episode(0, turns=2, score=1.0, success=True, seat=0, returns=[3.0, -3.0]),
            episode(1, turns=3, illegal=1, score=0.25, success=False, seat=1, returns=[1.0, -1.0]),
            episode(2, turns=1, score=0.25, success=False, seat=1, returns=[2.0, -2.0]),
            episode(3, turns=9, illegal=9, result="fault", score=None),
        ]
    )
    assert (measured.episodes, measured.faults) == (3, 1)
    assert measured.score == (0.5, *bound_mean([1.0, 0.25, 0.25], (0.0, 1.0)))
    assert measured.success == wilson(1, 3)
    # The seat's own returns: 3, -1, -2, of mean 0 and variance (9 + 1 + 4) / 2 = 7.
    error = Z95 * math.sqrt(7 / 3)
    assert measured.returns == pytest.approx((0.0, -error, error))
    assert measured.illegal_rate == 1 / 6 and measured.length == 2
    assert measured.to_dict()["success"] == list(wilson(1, 3))
    assert measure([episode(0, result="fault")]) is None
    # An environment without scores is measured by its reward, of which a half is no success.
    rewarded = measure([episode(0, reward=1.0), episode(1, reward=0.5)])
    assert rewarded is not None and rewarded.returns is None
    assert rewarded.score.mean == 0.75 and rewarded.success == wilson(1, 2)
    # Scores by name are measured each; a game's scores, one per seat, are something else.
    fault = episode(2, result="fault", score=None)
    named = [{"strict": 0.0, "shared": 0.5}, {"strict": 1.0, "shared": 0.25}]
    scored = measure([*(episode(at, score=1.0, by_scoring=each) for at, each in enumerate(named)), fault])
    assert scored.by_scoring == {"strict": wilson(1, 2), "shared": wilson(0.75, 2)}
    shown = {"strict": list(wilson(1, 2)), "shared": list(wilson(0.75, 2))}
    assert scored.to_dict()["by_scoring"] == shown
    seats = measure([episode(0, score=1.0, scores=[1.0, 0.0])])
    assert seats is not None and seats.by_scoring == {} and "by_scoring" not in seats.to_dict()
    fault = Episode(1, 1, {"result": "fault", "score": None})
    measured = measure_replies([Episode(0, 0, {"score": 1.0}), fault])
    assert measured is not None and (measured.episodes, measured.faults) == (1, 1)
    assert (measured.replies, measured.given_up, measured.given_up_share) == (0, 0, wilson(0, 1))
    assert measured.illegal_share is measured.cut_share is measured.tokens_per_reply is None
    assert measure_replies([fault]) is None


@pytest.mark.trains
@pytest.mark.sample
@pytest.mark.parametrize("writes", [False, True])
def test_play_depends_on_neither_the_number_of_environments_nor_the_time(writes: bool) -> None:
    policy, seeds = make_policy(adapters=0.3), [1, 2, 4, 5]
    free = policy.free_text(4) if writes else None

    def play(count: int, seed: int = 3, *, greedy: bool = False) -> list[Episode]:
        torch.manual_seed(count)
        agent = policy_agent(policy, seed, greedy=greedy, constraint=free)
        return play_seeds(TextVecEnv([Echo if writes else Stairs] * count), agent, seeds)

    def actions(episodes: list[Episode]) -> list[Any]:
        return [[turn.action for turn in e.turns] for e in episodes]

    episodes = play(4)
    sampled = actions(episodes)
    assert sampled == actions(play(3)) != actions(play(4, seed=4))
    assert sampled != actions(play(4, greedy=True)) == actions(play(3, greedy=True))
    if writes:
        # The reply as it was written is scored, and the value is the critic's.
        turn = episodes[0].turns[0]
        assert turn.decision is not None and turn.decision.value == 0.0
        with torch.no_grad():
            scored = policy.scorer.score([turn.decision])
        assert turn.decision.log_probs == pytest.approx(scored.log_probs.numpy(), abs=1e-4)


def test_seats_get_equally_many_episodes_in_the_order_drawn() -> None:
    """Groups by seat are sorted, and know games without seats."""
    env = TextVecEnv([Stairs] * 2)
    seeds = draw_balanced_seeds(env.envs[0], 40, seed=5)
    seats = [env.reset_one(0, seed)[1]["seat"] for seed in seeds]
    assert (seats.count(0), seats.count(1)) == (40, 40)
    assert len(set(seeds)) == 80
    assert draw_balanced_seeds(env.envs[0], 40, seed=5) == seeds
    assert set(draw_balanced_seeds(env.envs[0], 40, seed=6)).isdisjoint(seeds)
    assert len(draw_balanced_seeds(Bandit(), 70, seed=0)) == 70  # more than one block of probes
    groups = group_by("seat", [episode(0, seat=1), episode(1), episode(2, seat=0), episode(3, seat=1)])
    indices = [(seat, [e.index for e in group]) for seat, group in groups.items()]
    assert indices == [(0, [2]), (1, [0, 3]), (None, [1])]


# -- intervals -----------------------------------------------------------------------------------------------


Z2 = Z95**2


def test_intervals_by_hand() -> None:
    """Wilson's bounds p solve (phat - p)^2 = z^2 p (1 - p) / n. With n = 10:

    phat = 0: p^2 = z^2 p (1 - p) / 10, so p = 0 or p = z^2 / (10 + z^2) = 3.84146 / 13.84146 = 0.27753.
    phat = 1, its mirror image: 1 or 10 / (10 + z^2) = 0.72247.
    phat = 1/2, symmetric: d^2 = z^2 (1/4 - d^2) / 10, so d = z / (2 sqrt(10 + z^2)) = 0.26341.

    1, 2, 3, 4: mean 5/2, variance (9/4 + 1/4 + 1/4 + 9/4) / 3 = 5/3, standard error sqrt(5/3 / 4).
    """
    half = Z95 / (2 * math.sqrt(10 + Z2))
    for successes, expected in (
        (0, (0.0, 0.0, Z2 / (10 + Z2))),
        (10, (1.0, 10 / (10 + Z2), 1.0)),
        (5, (0.5, 0.5 - half, 0.5 + half)),
    ):
        mean, low, high = wilson(successes, 10)
        assert (mean, low, high) == pytest.approx(expected, abs=1e-12)
        assert 0 <= low <= mean <= high <= 1  # whatever rounding does
    error = Z95 * math.sqrt(5 / 12)
    assert mean_interval([1, 2, 3, 4]) == pytest.approx((2.5, 2.5 - error, 2.5 + error), abs=1e-12)
    assert mean_interval([0.5, 0.5]) == (0.5, -math.inf, math.inf)
    assert mean_interval([3.0]) == (3.0, -math.inf, math.inf)
    low, high = bound_mean([0.75, 0.25, 0.5], (0.0, 1.0))
    bounded = mean_interval([0.75, 0.25, 0.5], (0.0, 1.0))
    assert bounded == (0.5, low, high) and bounded.half_width == max(0.5 - low, high - 0.5)
    with pytest.raises(ValueError, match=r"0 … 1, got \[3\.0, 0\.5\]"):
        mean_interval([3.0, 0.5], (0.0, 1.0))
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])
    for successes, trials in ((0, 0), (-1, 10), (11, 10)):
        with pytest.raises(ValueError, match=f"got {successes}, {trials}"):
            wilson(successes, trials)


# -- the metrics file ----------------------------------------------------------------------------------------


def test_a_row_through_the_sb3_logger(tmp_path: Path) -> None:
    """Stable-Baselines3 dumps by environment steps; the row's step is the training step, if it is given."""
    path = tmp_path / "new" / "metrics.jsonl"
    writer = JSONLWriter(path)
    logger = Logger(None, [writer])
    logger.record("train/kl_ref", float("nan"))
    logger.record("rollout/reward", np.float32(0.5))
    logger.record("train/loss", torch.tensor(0.25))
    logger.record("decisions", np.int64(96))
    logger.record("bins", np.array([1.0, np.inf]))
    logger.record("secret", 1, exclude="json")
    logger.dump(step=3)
    line = '{"step": 3, "bins": [1.0, null], "decisions": 96, "rollout/reward": 0.5, "train/kl_ref": null, '
    line += '"train/loss": 0.25}\n'
    assert path.read_text() == line  # flushed before it is closed
    writer.write({"a": 1, "step": 4}, {}, step=4096)
    assert path.read_text() == line + '{"step": 4, "a": 1}\n'
    with pytest.raises(TypeError, match="must be a number, text, or a list of them, not set"):
        writer.write({"a": {1}}, {}, step=5)
    logger.close()
    writer.close()
    assert [row["step"] for row in read_rows(path)] == [3, 4]


def test_truncate_drops_later_rows_and_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "x": 1.50}\n{"step": 2}\n{"step": 3}\n{"ste')
    assert [row["step"] for row in read_rows(path)] == [1, 2, 3]
    assert truncate_after(path, 2) == 2  # step 3 and the torn line
    assert path.read_text() == '{"step": 1, "x": 1.50}\n{"step": 2}\n'  # byte for byte
    assert truncate_after(path, 2) == 0
    assert truncate_after(path, 0) == 2 and path.read_text() == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["metrics.jsonl"]
    assert truncate_after(tmp_path / "absent.jsonl", 2) == 0
    for text, message in (
        ('{"step": 1}\noops\n{"step": 2}\n', "line 2: not JSON: 'oops"),
        ('{"stp": 1}\n', "line 1: not an object with an integer 'step'"),
    ):
        path.write_text(text)
        with pytest.raises(MetricsFileError, match=message):
            truncate_after(path, 1)
        assert path.read_text() == text


# -- the model card ------------------------------------------------------------------------------------------


BASE = {"model_name": "Qwen/Qwen3-4B", "sha256": "0123456789abcdef", "r": 16, "lora_alpha": 32}


def write_and_read(folder: Path, **base: str) -> tuple[dict[str, object], str, str | None]:
    """Returns the card's head, its text, and the name in PEFT's configuration."""
    config = folder / "adapter_config.json"
    config.write_text(json.dumps({"r": 16, "base_model_name_or_path": "/home/me/models/mine"}))
    opponents = {"random": 1, "openai:mine@http://10.0.0.7/v1": 2, "policy:/home/me/run": 1}
    settings = {"env.game": "kuhn_poker", "lora.target_modules": ["a|b"], "env.opponent": opponents}
    metrics = {"rollout/reward": 0.58333, "train/kl_ref": 1, "time/update_seconds": 3.0, "eval/share": None}
    write_card(folder, BASE | base, step=1200, decisions=34567, facts=Facts("9.8", settings, metrics))
    text = (folder / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    settings = json.loads(config.read_text())
    assert settings.pop("r") == 16 and list(settings) == ["base_model_name_or_path"]
    assert "/home/me" not in text and "10.0.0.7" not in text
    return yaml.safe_load(head), body, settings["base_model_name_or_path"]


def test_a_card_names_a_model_of_the_hub_and_no_place_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, body, name = write_and_read(tmp_path)
    assert head["base_model"] == name == "Qwen/Qwen3-4B" and head["library_name"] == "peft"
    assert 'AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-4B")' in body
    assert "after step 1,200 of PPO and 34,567 decisions, with GameSpiel 9.8." in body
    assert '| `env.game` | "kuhn_poker" |\n| `lora.target_modules` | ["a\\|b"] |' in body
    assert '| `env.opponent` | {"random": 1, "openai:mine": 2, "policy": 1} |' in body
    assert "| `rollout/reward` | 0.5833 |" in body and "time/" not in body and "eval/" not in body
    for model in ("/home/me/models/mine", "tiny"):
        head, body, name = write_and_read(tmp_path, model_name=model)
        assert "base_model" not in head and name is None
    monkeypatch.chdir(tmp_path)
    Path("models/mine").mkdir(parents=True)
    assert hub_name("models/yours") == "models/yours"
    assert hub_name("models/mine") is hub_name("./models") is hub_name("a/b/c") is hub_name("tiny") is None
    # Nothing is said that is not known.
    write_card(tmp_path, BASE, step=0, decisions=0, facts=Facts())
    text = (tmp_path / "README.md").read_text()
    assert "after step 0 of PPO and 0 decisions.\n" in text
    assert "## Training" not in text and "| metric" not in text
