"""Runs that learn or play in threads, or whose environments workers play: the same bits as without any."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel import assembly
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.rollout import play
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.agents.runs.manifest import replace_file
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import Config, import_own_modules, resolve, saved_config
from gamespiel.environments import making
from gamespiel.environments.making import make_envs, make_played_envs
from gamespiel.kinds.kind import answers_of
from task_gym.errors import ArgumentError
from task_gym.processes import OFFERED
from tests.gamespiel.runs import (
    ROUNDED,
    STAGED,
    adapter_distance,
    adapters_of,
    assert_same_run,
    go_back,
    rows_of,
    small,
    train_aloud,
    train_quietly,
)

SHORT = {
    "ppo__num_train_steps": "2", "run__eval_games": "2", "run__eval_steps": "1", "run__eval_episodes": "2",
    "run__exact_every": "0",
}  # fmt: skip
SEARCHED = SHORT | {"env__opponent": "mcts:5x1"}
forked = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")


@pytest.fixture(scope="module", autouse=True)
def parts_everywhere() -> Iterator[None]:
    """Searches that are this short would have one part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.0)
        yield
    making.close_pools()


LEDUC = {"env__game": "leduc_poker", "run__eval_games": "0", "run__exact_every": "0"}


def go_on_with_two_threads(whole: Path, run: Path, step: int) -> Path:
    """Returns a copy of a run that goes on from a step with two threads."""
    before = torch.get_num_threads()
    shutil.copytree(whole, run)
    train_quietly(
        resolve(overrides=[("run.num_threads", "2")], base=saved_config(run)), resume=f"{run}@{step}"
    )
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    return run


@pytest.mark.trains
def test_two_threads_add_up_in_one_order_and_change_no_more_than_rounding(tmp_path: Path) -> None:
    """Gradients of prompts that repeat are summed; in large sums, threads could race."""
    large = {"ppo__batch_size": "1024", "ppo__mini_batch_size": "2048", "ppo__ppo_epochs": "1"}
    whole = train_quietly(small(tmp_path / "whole", ppo__num_train_steps="2", **LEDUC, **large))
    runs = [go_on_with_two_threads(whole, tmp_path / name, 1) for name in ("first", "second")]
    assert_same_run(*runs)
    rewards = [rows_of(run)[1]["rollout/reward"] for run in (runs[0], whole)]
    assert rewards[0] == pytest.approx(rewards[1], abs=0.01)
    assert adapter_distance(runs[0], whole) < ROUNDED


@pytest.mark.trains
@pytest.mark.sample
def test_another_number_of_threads_plays_the_same_and_learns_the_same_to_a_millionth(tmp_path: Path) -> None:
    """Sums are added in another order from the step on at which the run goes on."""
    more = {"ppo__batch_size": "32", "ppo__mini_batch_size": "50", "ppo__num_train_steps": "2"}
    whole = train_quietly(small(tmp_path / "whole", **LEDUC, **more))
    run = go_on_with_two_threads(whole, tmp_path / "run", 1)
    for row, expected in zip(rows_of(run), rows_of(whole), strict=True):
        assert row == pytest.approx(expected, abs=1e-6, rel=1e-6), row["step"]
        drawn = ("rollout/reward", "rollout/episodes", "rollout/tokens_per_decision", "decisions")
        assert [row[name] for name in drawn] == [expected[name] for name in drawn]
    left, right = adapters_of(run), adapters_of(whole)
    assert all(torch.allclose(left[name], right[name], rtol=0, atol=1e-6) for name in right)


def parts_of(config: Config) -> int | None:
    return assembly.make_algorithm(config).parts


@pytest.mark.trains
@pytest.mark.sample
def test_parts_where_a_search_may_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [{"name": "easy", "opponent": "first"}, {"name": "hard", "opponent": {"first": 1, "NAME": 1}}]
    for name, parts in (("mcts:5", 2), ("random", 1)):
        assert parts_of(small(tmp_path, env__opponent=name)) == parts
        staged = json.dumps(stages).replace("NAME", name)
        assert parts_of(small(tmp_path, curriculum__stages=staged)) == parts
    # There, all move at once, and "random" plays in place of a search.
    assert parts_of(small(tmp_path, env__game="matching_pennies_3p", env__opponent="mcts:5")) == 1
    mixed = small(tmp_path, env__opponent=json.dumps({"self": 1, "mcts:5": 1}))
    assert parts_of(mixed) == 2
    # The dearest stage decides: six episodes of 1.9 s and of 0.02 s in othello.
    monkeypatch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.6)
    for budget, parts in (("mcts:500x20", 2), ("mcts:50x2", 1)):
        staged = json.dumps(stages).replace("NAME", budget)
        assert parts_of(small(tmp_path, env__game="othello", curriculum__stages=staged)) == parts


def test_parts_follow_from_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.6)
    for game, opponent, episodes, parts in (
        ("liars_dice", "mcts", 32, 1),  # upstream's budget, at most 3.2 ms per move: 0.1 s in a round of 32
        ("othello", "mcts", 1, 2),  # 3.8 s
        ("othello", "mcts:40x3", 32, 2),  # 120 of 20,000 rollouts: 23 ms, 0.73 s in a round
        ("othello", "mcts:40x3", 16, 1),
        ("othello", "mcts:5x1", 512, 1),  # 1 ms, 0.49 s in a round
        ("othello", '{"random": 3, "mcts:40x3": 1}', 32, 1),  # a quarter of 0.73 s
        ("hex", "mcts:50x2", 32, 1),  # 11x11 by default: 100 of 50,000 rollouts of 2.15 s, 4 ms
    ):
        config = small(tmp_path, env__game=game, env__opponent=opponent)
        assert make_envs(config.env, episodes).parts == parts, (game, opponent, episodes)


@pytest.fixture(scope="module")
def search_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_quietly(small(tmp_path_factory.mktemp("searched") / "run", run__env_threads="2", **SEARCHED))


@pytest.mark.trains
@pytest.mark.sample
def test_a_resumed_run_may_have_other_threads(search_run: Path, tmp_path: Path) -> None:
    run = go_back(search_run, tmp_path / "run", 1)
    config = saved_config(search_run)
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, env_threads=4, output_dir=None))
    assert_same_run(train_quietly(config, resume=run), search_run)
    assert torch.get_num_threads() == 1  # run.num_threads, whatever the searches use


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_keeps_its_parts(search_run: Path, tmp_path: Path) -> None:
    """Even if the rule that decides them is another one by then; a learner that is saved keeps them too."""
    start = checkpoint.find(go_back(search_run, tmp_path / "run", 1))
    state = json.loads((start / "state.json").read_text())
    assert state["parts"] == 2
    replace_file(start, "state.json", json.dumps(state | {"parts": 1}))
    model = assembly.make_algorithm(saved_config(search_run))
    assert model.parts == 2
    model.save(tmp_path / "model")
    assert LLMPPO.load(tmp_path / "model").parts == 2
    plain = assembly.make_algorithm(small(tmp_path))
    assert LLMPPO.load(tmp_path / "model", env=plain.env).parts == 2
    checkpoint.load(model, start)
    assert model.parts == 1
    replace_file(start, "state.json", json.dumps(state | {"parts": "2"}))
    with pytest.raises(CheckpointError, match="parts is '2': Input should be a valid integer"):
        checkpoint.load(model, start)


def lowest(texts: list[str], masks: Any, episodes: list[int], turn: int) -> Any:
    """Decides for each episode's own legal action, without a model."""
    return answers_of(
        [int(mask.nonzero()[0][episode % mask.sum()]) for episode, mask in zip(episodes, masks, strict=True)]
    )


@forked
@pytest.mark.launch
@pytest.mark.parametrize(
    "more",
    [
        pytest.param(
            {"env__opponent": '{"self": 1, "mcts:5x1": 1, "random": 1}', "env__game": "leduc_poker"},
            marks=pytest.mark.sample,
        ),
        pytest.param({"env__opponent": "random", **STAGED}, marks=pytest.mark.sample),
        {"env__opponent": "self", "self_play__learn": "one"},
        {"env__conversation": "true", "env__answer": "name"},
        {"env__decode": "text", "ppo__max_new_tokens": "4"},
    ],
    ids=["mixture", "curriculum", "self-play", "conversation", "replies"],
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


@forked
@pytest.mark.launch
@pytest.mark.sample
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


@forked
@pytest.mark.launch
@pytest.mark.sample
def test_a_vector_of_stable_baselines3_steps_in_workers(tmp_path: Path) -> None:
    config = small(tmp_path, run__env_workers="2")
    vectors = [assembly.make_algorithm(run_config).env for run_config in (small(tmp_path), config)]
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


@forked
@pytest.mark.launch
@pytest.mark.sample
def test_modules_of_the_users_are_imported_in_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "my_worker_opponents.py").write_text(
        "from task_gym.opponents import register_opponent\n"
        "class Last:\n"
        "    def restart(self, seed): pass\n"
        "    def act(self, view): return view.legal_actions()[-1]\n"
        "register_opponent('last-of-mine', lambda seating: Last())\n"
    )
    monkeypatch.syspath_prepend(str(here))
    making.close_pools()
    mine = {"run__imports": '["my_worker_opponents"]', "env__opponent": "last-of-mine"}
    config = small(here / "run", run__env_workers="1", **mine)
    envs = make_played_envs(import_own_modules(config), 2)
    episodes = play(envs, [1, 2], lowest, lambda turns: True)
    assert episodes is not None and [e.info["opponent"] for e in episodes] == ["last-of-mine"] * 2
    envs.close()


@forked
@pytest.mark.launch
def test_a_run_that_lost_a_worker_has_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is killed after the first round of the first step, against a search."""
    settings = SEARCHED | {"env__game": "leduc_poker", "run__eval_steps": "null"}
    whole = train_quietly(small(tmp_path / "whole", **settings))
    killed = list[int]()
    decide = assembly.LLMPPO.make_collector

    def make_collector(model: Any) -> Any:
        collector = decide(model)
        inner = collector.decide

        def decide_once(texts: Any, masks: Any, episodes: Any, turn: int, *rest: Any) -> Any:
            if turn == 1 and not killed:
                (pool,) = making._pools.values()
                killed.append(next(line.worker.pid for line in pool._lines if line.worker))  # type: ignore[attr-defined]
                os.kill(killed[0], signal.SIGKILL)
            return inner(texts, masks, episodes, turn, *rest)

        collector.decide = decide_once
        return collector

    making.close_pools()
    monkeypatch.setattr(assembly.LLMPPO, "make_collector", make_collector)
    run, said = train_aloud(small(tmp_path / "lost", run__env_workers="2", **settings))
    assert_same_run(run, whole)
    first = read_rows(run / "metrics.jsonl")[0]
    assert (first["machine/workers_lost"], killed != []) == (1, True)
    # Three of six episodes were the worker's; one that ended before was not played again.
    assert 1 <= first["machine/games_replayed"] <= 3 and first["machine/replay_seconds"] > 0
    assert f"worker process {killed[0]} ended with status -9: its episodes are played again" in said
