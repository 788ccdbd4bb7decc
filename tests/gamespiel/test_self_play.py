"""``env.opponent: self``: runs, their checkpoints and rows, evaluations, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.assembly import make_algorithm
from gamespiel.config import Config, ConfigError, InvalidValueError, from_dict, notices, resolve, saved_config
from gamespiel.environments import evaluation_config
from gamespiel.evaluation import evaluate
from gamespiel.options import EvalOptions
from tests.gamespiel.runs import assert_same_run, quiet, rows_of, small, train_quietly

ONE = {
    "env__opponent": "self",
    "self_play__learn": "one",
    "self_play__pool_every": "2",
    "self_play__pool_size": "3",
    "self_play__pool_pick": "win_rate",
    "ppo__magnet_coef": "0.1",
    "ppo__magnet_every": "3",
    "ppo__magnet_rate": "0.5",
    "ppo__average_decay": "0.5",
    "run__exact_every": "4",
    "run__eval_games": "0",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_quietly(small(tmp_path_factory.mktemp("self") / "run", **ONE))


def test_runs_resume_bit_for_bit(finished: Path, tmp_path: Path) -> None:
    """Between moves of the magnet and growth of the pool, too: their weights are in the checkpoint.

    So are the learner's own beside the average.
    """
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    for later in checkpoint.checkpoints(run)[6:]:
        shutil.rmtree(later)
    train_quietly(saved_config(run), resume=run)
    assert_same_run(run, finished)


def test_rows_and_checkpoints_name_the_snapshots(finished: Path) -> None:
    """Snapshots every 2 steps, of which 3 are kept; the magnet moves before steps 3, 6 and 9 (from 0)."""
    rows = read_rows(finished / "metrics.jsonl")
    assert [row["pool/steps"] for row in rows[:7]] == [
        [0], [0], [0, 2], [0, 2], [0, 2, 4], [0, 2, 4], [2, 4, 6],
    ]  # fmt: skip
    assert [row["train/magnet_step"] for row in rows] == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]
    assert [i for i, row in enumerate(rows) if "eval/exploitability" in row] == [0, 4, 8]
    assert rows[0]["eval/exploitability"] == pytest.approx(11 / 24, abs=0.02)  # uniform play has 11/24
    state = json.loads((checkpoint.find(finished) / "state.json").read_text())
    assert [member["step"] for member in state["pool"]] == [6, 8, 10]
    assert state["magnet"] == {"step": 9}
    files = sorted(path.name for path in (checkpoint.find(finished) / "snapshots").iterdir())
    pool = [f"pool-{step:06d}.safetensors" for step in (6, 8, 10)]
    assert files == ["learner.safetensors", "magnet.safetensors", *pool]
    assert "exploitability" in json.loads((finished / "summary.json").read_text())["after"]


def test_evaluations_are_against_random(finished: Path) -> None:
    console = quiet()
    results = evaluate(EvalOptions(saved_config(finished), finished, exact=True), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "opponent 'self' is for training: evaluated against random" in text
    assert results["env"]["opponent"] == results["exact"]["policy"]["opponent"] == "random"
    assert 0 < results["exact"]["policy"]["exploitability"] < 2


def config(**overrides: str) -> Config:
    given = {"env.opponent": "self"} | {name.replace("__", "."): value for name, value in overrides.items()}
    return resolve("tiny", overrides=given.items())


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"env__max_turns": "8"}, "env.max_turns must be null, not 8"),
        ({"env__env_mode": "docker"}, "env.env_mode must be 'local', not 'docker'"),
        ({"env__reward": "upstream"}, "env.reward must be 'score', not 'upstream'"),
        ({"curriculum__failure_replay_prob": "0.3"}, "every seat: leave one of them out"),
        (
            {"env__opponent": "{random: 0.5, self: 0.5}", "curriculum__failure_replay_prob": "0.3"},
            "every seat: leave one of them out",
        ),
    ],
)
def test_settings_that_self_play_excludes_are_refused_at_once(
    overrides: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**overrides)


def test_a_mixture_of_itself_and_others(tmp_path: Path) -> None:
    """A game against itself has an episode per seat, one against another opponent has one."""
    mixture = {
        "env__opponent": "{random: 0.5, self: 0.5}",
        "ppo__num_train_steps": "2",
        "ppo__batch_size": "32",
    }
    run = train_quietly(small(tmp_path / "run", **mixture, run__eval_games="2"))
    for row in rows_of(run):
        against = {name: row[f"rollout/against/{name}/episodes"] for name in ("random", "self")}
        assert against["random"] + against["self"] / 2 == 32
        assert against["random"] > 0 and against["self"] > 0
        assert row["rollout/against/self/reward"] == pytest.approx(0.5)  # the seats' scores sum to 1
        assert not [name for name in row if name.startswith(("pool/", "train/magnet"))]
    assert not (checkpoint.find(run) / "snapshots").exists()
    assert saved_config(run).env.opponent == {"random": 0.5, "self": 0.5}


@pytest.mark.parametrize(
    ("trained", "measured"),
    [
        ("self", "random"),
        ({"self": 1.0}, "random"),
        ({"mcts:10": 0.3, "self": 0.7}, "mcts:10"),
        ({"mcts:10": 0.3, "self": 0.5, "random": 0.2}, {"mcts:10": 0.3, "random": 0.2}),
    ],
)
def test_evaluations_leave_itself_out(trained: Any, measured: Any) -> None:
    assert evaluation_config(from_dict({"game": "leduc_poker", "opponent": trained})).env.opponent == measured


@pytest.mark.parametrize(
    ("game", "learn", "message"),
    [
        ("2048", "one", "2048 has one seat"),
        ("hearts", "both", "hearts has returns that do not sum to zero; .* self_play.learn: one"),
    ],
)
def test_games_that_are_refused(game: str, learn: str, message: str) -> None:
    asked = config(env__game=game, self_play__learn=learn, ppo__batch_size="1")
    with pytest.raises(InvalidValueError, match=message):
        make_algorithm(asked)


def test_keys_without_effect_are_noticed() -> None:
    assert notices(resolve("tiny-selfplay")) == []
    both = "with self_play.learn: both, no seat is played by a snapshot."
    assert notices(config(self_play__pool_size="3")) == [f"self_play.pool_size = 3 has no effect: {both}"]
    assert notices(config(self_play__pool_size="3", self_play__learn="one")) == []
    assert notices(config(env__opponent="random", self_play__learn="one")) == [
        "self_play.learn = one has no effect: it is for env.opponent: self."
    ]
    assert notices(
        config(ppo__num_minibatches="4", ppo__mini_batch_size="8", ppo__gradient_accumulation_steps="1")
    ) == [
        f"ppo.{name} has no effect: ppo.num_minibatches divides the turns."
        for name in ("mini_batch_size = 8", "gradient_accumulation_steps = 1")
    ]
    assert notices(config(ppo__minibatch_unit="prompt")) == []
    assert notices(config(ppo__minibatch_unit="prompt", env__conversation="true")) == [
        "ppo.minibatch_unit = prompt has no effect with env.conversation: optimizer steps draw episodes."
    ]
    assert notices(config(ppo__magnet_every="3")) == [
        "ppo.magnet_every = 3 has no effect: ppo.magnet_coef is 0."
    ]
