"""A warm start: adapters learn recorded answers, behind the prompts and in the tokens of PPO."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.runs import checkpoint
from gamespiel.assembly import make_policy
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, saved_config
from gamespiel.environments import make_one_env
from gamespiel.warm_start import RowError, WarmStart, encode_rows, read_rows, warm_start
from task_gym.errors import MissingPackageError
from tests.gamespiel.runs import quiet, small, train_quietly


def write(path: Path, *rows: tuple[str, str]) -> Path:
    lines = [
        json.dumps({"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]})
        for a, b in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def first_texts(config: Any, count: int) -> list[str]:
    env = make_one_env(config.env)
    return sorted({str(env.reset(seed=seed)[0]) for seed in range(count)})


def test_what_was_played_becomes_likely_and_ppo_goes_on(tmp_path: Path) -> None:
    """In Kuhn poker: the answer is always 1, bet."""
    config = small(tmp_path / "run", ppo__num_train_steps="1", run__eval_games="0")
    texts = first_texts(config, 60)
    data = write(tmp_path / "rows.jsonl", *[(text, "1") for text in texts] * 6)
    start = WarmStart([data], epochs=4, learning_rate=5e-3, batch_size=len(texts))
    run = warm_start(config, start, quiet())
    told = json.loads((run / "warm_start.json").read_text())
    assert told["rows"] == 6 * len(texts) and told["losses"][0] > told["losses"][-1]
    env = make_one_env(config.env)
    policy = make_policy(config, env)

    def probability_of_betting() -> np.ndarray[Any, Any]:
        with torch.no_grad():
            return np.array([odds[1] for odds in policy.distribution(texts, [[0, 1]] * len(texts))])

    before = np.mean(probability_of_betting())
    checkpoint.load_policy(policy, checkpoint.find(run))
    after = probability_of_betting()
    assert before < 0.8 and min(after) > 0.95
    # The run stands before its first step, and PPO begins from there in either way.
    assert checkpoint.step_of(checkpoint.find(run)) == 0
    train_quietly(saved_config(run), resume=run)
    again = small(tmp_path / "again", ppo__num_train_steps="1", run__eval_games="0", run__init_from=str(run))
    assert checkpoint.step_of(checkpoint.find(train_quietly(again))) == 1


def test_the_loss_is_of_the_answers_as_the_policy_writes_them(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    texts = first_texts(config, 40)[:3]
    policy = make_policy(config, make_one_env(config.env))
    rows = read_rows(write(tmp_path / "rows.jsonl", *[(text, "1") for text in texts]))
    encoded = encode_rows(policy, rows)
    assert [prompt for prompt, _ in encoded] == policy.prompts(texts)
    # The digit and the end of the turn; under a mask of both actions, the tokens of action 1.
    trie = policy.answers.make_tries(texts, [[0, 1]])[0]
    assert {answer for _, answer in encoded} == {trie.tokens[1]} and len(trie.tokens[1]) == 2


@pytest.mark.parametrize("line", ["{}", '{"messages": [{"role": "user"}]}', "not JSON", ""])
def test_lines_that_are_no_rows(line: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ("a", "b"))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RowError, match=r"rows.jsonl, line 2 is no row of `gamespiel export`"):
        read_rows(path)


def test_rows_of_other_prompts_and_other_answers_are_refused(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    (text, *_) = first_texts(config, 1)
    with_rules = "# Game Rules\nKuhn poker.\n\n" + text
    for row, message in (
        ((with_rules, "1"), r"line 1 begins with '# Game Rules.*env.rules"),
        ((text, "bet"), r"line 1: the answer is 'bet', .* a number below 2"),
        ((text, "2"), r"the answer is '2', and"),
        ((text, "01" * 9), r"the answer is '0101"),
    ):
        with pytest.raises(RowError, match=message):
            warm_start(config, WarmStart([write(tmp_path / "rows.jsonl", row)]), quiet())
    assert not (tmp_path / "run").exists()


def test_numbers_out_of_range() -> None:
    for name, value in (("epochs", 0.0), ("epochs", float("nan")), ("learning_rate", float("inf"))):
        with pytest.raises(InvalidValueError, match=rf"--{name}: {value} was given"):
            WarmStart([], **{name: value})
    with pytest.raises(InvalidValueError, match=r"--batch_size: 0 was given"):
        WarmStart([], batch_size=0)


def test_without_trl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamespiel.warm_start.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install 'gamespiel\[trl\]'"):
        warm_start(small(tmp_path / "run"), WarmStart([]), quiet())


def test_from_recorded_games_to_a_run_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    game = ["--game", "kuhn_poker"]
    rules = ["--env.rules", "false"]
    played = ["eval", "--agent", "ismcts:10", *game, *rules, "--num_episodes", "4", "--save_games", "g.jsonl"]
    assert main(played) == 0
    assert main(["export", "g.jsonl", "--output", "rows.jsonl"]) == 0
    learned = ["sft", "--preset", "tiny", *game, "--output_dir", "warm", "--epochs", "1", "--data"]
    assert main([*learned, "rows.jsonl"]) == 0
    assert (tmp_path / "warm" / "warm_start.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.jsonl", "rows.jsonl", "runs", "warm"]
    assert main([*learned, "rows.jsonl"]) == 2  # the folder has a run
