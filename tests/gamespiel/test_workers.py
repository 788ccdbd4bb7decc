"""Runs whose environments are played by workers: the same bits as without any."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamespiel import assembly, training, workers
from gamespiel.agents.rollout import play
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import ConfigError, notices, require_built
from gamespiel.environments import make_played_envs
from gamespiel.kinds.base import answers_of
from task_gym.errors import ArgumentError
from task_gym.processes import OFFERED
from tests.gamespiel.runs import STAGED, assert_same_run, quiet, small, train_quietly

pytestmark = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")

SHORT = {
    "ppo__num_train_steps": "2", "run__eval_games": "2", "run__eval_steps": "1", "run__eval_episodes": "2",
    "run__exact_every": "0",
}  # fmt: skip
STAGES = {name.replace(".", "__"): value for name, value in STAGED.items()}


@pytest.fixture(scope="module", autouse=True)
def parts_everywhere() -> Iterator[None]:
    """Searches that are this short would have one part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.0)
        yield
    workers.close_pools()


def lowest(texts: list[str], masks: Any, episodes: list[int], turn: int) -> Any:
    """Decides for each episode's own legal action, without a model."""
    return answers_of(
        [int(mask.nonzero()[0][episode % mask.sum()]) for episode, mask in zip(episodes, masks, strict=True)]
    )


@pytest.mark.parametrize(
    "more",
    [
        {"env__opponent": "mcts:5x1"},
        {"env__opponent": json.dumps({"self": 1, "mcts:5x1": 1, "random": 1}), "env__game": "leduc_poker"},
        {"env__opponent": "random", **STAGES},
        pytest.param({"env__opponent": "self", "self_play__learn": "one"}, marks=pytest.mark.families),
        pytest.param({"env__conversation": "true", "env__answer": "name"}, marks=pytest.mark.families),
        pytest.param({"env__decode": "text", "ppo__max_new_tokens": "4"}, marks=pytest.mark.families),
    ],
    ids=["search", "mixture", "curriculum", "self-play", "conversation", "replies"],
)
def test_workers_change_no_bit(more: dict[str, str], tmp_path: Path) -> None:
    runs = [
        train_quietly(small(tmp_path / str(count), run__env_workers=str(count), **SHORT | more))
        for count in (0, 2)
    ]
    assert_same_run(*runs)
    for run, counted in zip(runs, (False, True), strict=True):
        rows = read_rows(run / "metrics.jsonl")
        assert [row.get("machine/workers_lost") for row in rows] == [0 if counted else None] * 2


def test_environments_in_workers_say_what_they_cannot_do(tmp_path: Path) -> None:
    envs = make_played_envs(small(tmp_path, run__env_workers="1"), 2)
    assert len(envs.envs) == 1 and envs.num_envs == 2 and envs.has_attr("state")
    envs.reset_one(1, seed=4)
    assert envs.get_attr("seats", [1]) == [2] and envs.get_attr("zero_sum") == [True, True]
    assert envs.env_method("action_masks", indices=[1])[0].tolist() == [True, True]
    with pytest.raises(ArgumentError, match=r"'state' was given, .*; allowed: seat, seats"):
        envs.get_attr("state")
    with pytest.raises(ArgumentError, match=r"'close' was given, .*; allowed: 'action_m"):
        envs.env_method("close")
    envs.close()


def test_a_vector_of_stable_baselines3_steps_in_workers(tmp_path: Path) -> None:
    config = small(tmp_path, run__env_workers="2")
    vectors = [assembly.make_algorithm(given).env for given in (small(tmp_path), config)]
    seen = []
    for env in vectors:
        assert isinstance(env, TextVecEnv)
        env.seed(7)
        shown = [env.reset().tolist()]
        for _ in range(4):  # each game is over after at most three turns, and begins anew
            actions = [int(mask.nonzero()[0][0]) for mask in env.env_method("action_masks")]
            texts, rewards, dones, infos = env.step(actions)
            shown.append([texts.tolist(), rewards.tolist(), dones.tolist(), repr(infos)])
        seen.append(shown)
    assert seen[0] == seen[1]
    with pytest.raises(ArgumentError, match="set_attr: 'rules' was given, and workers play"):
        vectors[1].set_attr("rules", False)


def test_modules_of_the_users_are_imported_in_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_worker_opponents.py").write_text(
        "from task_gym.opponents import register_opponent\n"
        "class Last:\n"
        "    def restart(self, seed): pass\n"
        "    def act(self, view): return view.legal_actions()[-1]\n"
        "register_opponent('last-of-mine', lambda seating: Last())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    workers.close_pools()
    config = small(
        tmp_path / "run", run__imports='["my_worker_opponents"]', env__opponent="last-of-mine",
        run__env_workers="1",
    )  # fmt: skip
    envs = make_played_envs(require_built(config), 2)
    episodes = play(envs, [1, 2], lowest, lambda turns: True)
    assert episodes is not None and [e.info["opponent"] for e in episodes] == ["last-of-mine"] * 2
    envs.close()


def test_keys_that_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run.ray_address needs run.env_workers"):
        small(tmp_path, run__ray_address="auto")
    for wrong in ("http://host:1", "host", ":6379", "host:port"):
        with pytest.raises(ConfigError, match=r"run\.ray_address must be auto or host:port"):
            small(tmp_path, run__ray_address=wrong, run__env_workers="2")
    (said,) = [text for text in notices(small(tmp_path, run__env_seconds="5")) if "env_seconds" in text]
    assert said == "run.env_seconds = 5 has no effect without run.env_workers."
    assert small(tmp_path, run__ray_address="10.0.0.1:6379", run__env_workers="2").run.env_workers == 2


@pytest.mark.launch
def test_a_run_that_lost_a_worker_has_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is killed after the first round of the first step, against a search."""
    own = SHORT | {"env__opponent": "mcts:5x1", "env__game": "leduc_poker", "run__eval_steps": "null"}
    whole = train_quietly(small(tmp_path / "whole", **own))
    killed = list[int]()
    decide = assembly.LLMPPO.make_collector

    def make_collector(model: Any) -> Any:
        made = decide(model)
        inner = made.decide

        def decide_once(texts: Any, masks: Any, episodes: Any, turn: int, *rest: Any) -> Any:
            if turn == 1 and not killed:
                (pool,) = workers._pools.values()
                killed.append(next(line.worker.pid for line in pool._lines if line.worker))  # type: ignore[attr-defined]
                os.kill(killed[0], signal.SIGKILL)
            return inner(texts, masks, episodes, turn, *rest)

        made.decide = decide_once
        return made

    workers.close_pools()
    monkeypatch.setattr(assembly.LLMPPO, "make_collector", make_collector)
    console = quiet()
    run = training.train(small(tmp_path / "lost", run__env_workers="2", **own), None, console)
    assert_same_run(run, whole)
    first = read_rows(run / "metrics.jsonl")[0]
    assert (first["machine/workers_lost"], killed != []) == (1, True)
    # Three of six episodes were the worker's; one that ended before was not played again.
    assert 1 <= first["machine/games_replayed"] <= 3 and first["machine/replay_seconds"] > 0
    said = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert f"worker process {killed[0]} ended with status -9: its episodes are played again" in said
