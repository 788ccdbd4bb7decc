"""Ranks without a launch: shares, what a launcher says, and what is the same for one rank alone."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

from gamespiel import runs
from gamespiel.agents.engines.budgets import Budgets
from gamespiel.agents.launch import Launch, read_launch
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.ranks import ALONE, RankFailedError, RankLostError, Ranks
from gamespiel.agents.ranks import world as world_module
from gamespiel.agents.ranks.world import World, _Failure
from gamespiel.agents.rollout import play
from gamespiel.agents.sampling.decisions import Decision
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.assembly import device_of
from gamespiel.cli import main
from gamespiel.config import InvalidValueError, resolve
from gamespiel.training import launching
from task_gym.errors import ArgumentError
from tests.agents.toys import Stairs, make_policy

STARTED = {
    "TORCHELASTIC_RUN_ID": "none", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
    "TORCHELASTIC_RESTART_COUNT": "1",
}  # fmt: skip


def test_what_torchrun_says() -> None:
    assert read_launch({}) == Launch() and Launch().leads
    assert read_launch(STARTED) == Launch(3, 4, 1, 2, 1, "none")
    assert not read_launch(STARTED).leads
    # Other launchers leave variables of these names in the shells of their jobs.
    assert read_launch({"RANK": "3", "WORLD_SIZE": "4"}) == Launch()
    with pytest.raises(ArgumentError, match=r"WORLD_SIZE: None is in the environment, allowed: a number"):
        read_launch({name: value for name, value in STARTED.items() if name != "WORLD_SIZE"})


def test_one_rank_alone_does_everything_itself() -> None:
    items, parts = [1, 2, 3], [torch.tensor([1.0]), torch.tensor([2.0])]
    assert ALONE.take_share(items) is items
    assert ALONE.gather(5) == [5] and ALONE.total(5) == 5 and ALONE.agree(True) and not ALONE.agree(False)
    assert (
        ALONE.share_work(lambda: 7) == [7] and ALONE.lead(lambda: 7) == ALONE.lead_once("key", lambda: 7) == 7
    )
    assert ALONE.join(parts, "cpu").tolist() == [1.0, 2.0]
    ALONE.ask_stop()
    assert not ALONE.is_stop_asked
    with pytest.raises(ZeroDivisionError):
        ALONE.share_work(lambda: 1 // 0)


def test_errors_reach_other_ranks_as_what_they_are() -> None:
    """Errors of other libraries come as their text: not all of them come back from a pickle.

    A trie of several ranks is one object after its pickles: the scorer knows equal turns by it.
    """
    diverged = pickle.loads(pickle.dumps(_Failure(1, DivergedError("step 3", 2, in_play=True)))).error
    assert isinstance(diverged, DivergedError) and (diverged.step, diverged.in_play) == (2, True)
    other = pickle.loads(pickle.dumps(_Failure(1, OSError(28, "No space left on device")))).error
    assert isinstance(other, RankFailedError)
    assert str(other) == "rank 1 failed: OSError: [Errno 28] No space left on device"
    original, twin = (ActionTrie.build({1: (5, 9), 12: (5, 6, 9)}) for _ in range(2))
    first, second = (pickle.loads(pickle.dumps(trie)) for trie in (original, twin))
    assert first is second and first is not original
    assert (first.nodes, first.paths, first.ends) == (original.nodes, original.paths, original.ends)
    assert pickle.loads(pickle.dumps(ActionTrie.build({1: (5, 9)}))) is not first


def test_a_share_of_the_episodes_keeps_their_numbers() -> None:
    """The numbers address the noise; the environments are those of this rank."""
    env, asked = TextVecEnv([Stairs] * 2), list[tuple[int, ...]]()

    def lowest(texts, masks, episodes, turn):  # type: ignore[no-untyped-def]
        asked.append(tuple(episodes))
        return [(int(mask.argmax()), None) for mask in masks]

    seeds = [11, 13, 15]
    episodes = play(env, seeds, lowest, lambda turns: True, numbers=[1, 3, 5])
    assert episodes is not None and [(e.index, e.seed) for e in episodes] == [(1, 11), (3, 13), (5, 15)]
    assert asked[0] == (1, 3) and asked[-1] == (5,)


def test_forwards_are_as_many_for_each_rank_and_of_a_size() -> None:
    """Seven prompts of one length fit into one forward: two ranks have 4 and 3 of them, three 3, 3 and 1."""
    policy, trie = make_policy(), ActionTrie.build({0: (5,), 1: (6,)})
    prompts = [(1, 2, 3, 4, 7, 8, 9, 10 + i) for i in range(7)]
    decisions = [Decision(prompt, trie, (5,), np.zeros(1, dtype=np.float32)) for prompt in prompts]
    policy.scorer._engine = make_policy(model={"reading": "padded"}).engine
    assert [len(part) for part in policy.scorer.split(decisions)] == [7]
    for size, expected in ((2, [4, 3]), (3, [3, 3, 1])):
        policy.scorer.ranks = Ranks(Launch(size=size))
        parts = policy.scorer.split(decisions)
        assert [len(part) for part in parts] == expected
        assert sorted(np.concatenate(parts).tolist()) == list(range(7))
    # A budget of two prompts makes four forwards, two for each of two ranks, and not more.
    policy.scorer.ranks = Ranks(Launch(size=2))
    policy.budgets.give(1000, 17)
    policy.scorer._engine.budgets.give(1000, 17)
    assert [len(part) for part in policy.scorer.split(decisions)] == [2, 2, 2, 1]


def test_threads_are_divided_among_the_ranks_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    thread_counts: list[int] = []
    monkeypatch.setattr(launching.torch, "set_num_threads", thread_counts.append)
    monkeypatch.setattr(launching, "count_cores", lambda: 8)
    config = resolve("tiny")
    launching.divide_threads(config, Launch())  # one process leaves torch its own number
    launching.divide_threads(config, Launch(size=8, local_size=3))
    launching.divide_threads(config, Launch(size=16, local_size=16))
    launching.divide_threads(
        resolve("tiny", overrides=[("run.num_threads", "5")]), Launch(size=2, local_size=2)
    )
    assert thread_counts == [2, 1, 5]


def test_each_rank_has_an_episode_and_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    few = resolve("tiny", overrides=[("ppo.batch_size", "2")])
    said = r"ppo\.batch_size is 2, .* 3 ranks; allowed: .* 3"
    with pytest.raises(InvalidValueError, match=said), launching.joining(few, Launch(size=3)):
        raise AssertionError("it was joined")
    with launching.joining(few, Launch()) as ranks:
        assert ranks is ALONE
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    two, third = Launch(1, 4, 1, 2), Launch(2, 3, 2, 3)
    assert device_of(resolve("tiny"), two) == torch.device("cuda:1")
    assert device_of(resolve("tiny", overrides=[("run.device", "cpu")]), two) == torch.device("cpu")
    with pytest.raises(InvalidValueError, match=r"3 ranks here, and torch finds 2 GPU; allowed: "):
        device_of(resolve("tiny"), third)
    with pytest.raises(InvalidValueError, match=r"run\.device is 'cuda:0', .* 2 ranks here"):
        device_of(resolve("tiny", overrides=[("run.device", "cuda:0")]), two)


def test_ranks_that_are_started_again_find_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new run's folder has the time in its name, so the launcher's process notes it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "new").mkdir(parents=True)
    launch = Launch(run_id="none")
    assert runs.read_noted_folder(launch) is None
    runs.note_folder(Path("runs/new"), launch)
    assert runs.read_noted_folder(launch) == tmp_path / "runs" / "new"
    runs.forget_folder(launch)
    assert runs.read_noted_folder(launch) is None
    runs.note_folder(Path("runs/new"), Launch())  # without a launcher nobody would ask
    assert list((tmp_path / "runs").iterdir()) == [tmp_path / "runs" / "new"]


def test_an_error_says_which_rank_has_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in STARTED.items():
        monkeypatch.setenv(name, value)
    assert main(["train", "--preset", "tinny"]) == 2
    assert capsys.readouterr().err.startswith("gamespiel (rank 3): unknown preset 'tinny'")


def test_a_wait_for_the_first_rank_ends_with_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def check(self, keys: list[str]) -> bool:
            raise RuntimeError("Connection reset by peer")

    monkeypatch.setattr(world_module, "TIME_LIMIT", timedelta(0))  # or it would wait for a day
    world = object.__new__(World)
    Ranks.__init__(world, Launch(rank=1, size=2))
    world._store, world._looked = Gone(), 0.0
    lost = "rank 1 has lost the first rank, .*, while it waited for 'key': Connection reset by peer"
    with pytest.raises(RankLostError, match=lost):
        world.lead_once("key", lambda: 7)


def test_memory_that_another_rank_lacks_halves_the_budget_here() -> None:
    budgets, said, undone = Budgets(100, 100), iter([True, False]), list[int]()

    def agree(lacks_memory: bool) -> bool:
        return lacks_memory or next(said)

    done = budgets.retry(
        lambda: "done", [(1,) * 30] * 4, lambda texts: 120,
        gradients=True, undo=lambda: undone.append(1), agree=agree,
    )  # fmt: skip
    # The batch has 120 tokens. A budget of 100 was tried first, and its half is 50.
    assert (done, budgets.tokens_per_backward, undone) == ("done", 50, [1])
