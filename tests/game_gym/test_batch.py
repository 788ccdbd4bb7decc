"""``gym.make_vec("GameSpiel-v0")``: a batch in one process is Gymnasium's ``SyncVectorEnv``, only faster."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("gymnasium", minversion="1.1")  # older ones have no modes of resetting

# isort: split
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from game_gym.games import TABLE
from game_gym.task import CONFIGS, encode
from game_gym.vector import GameSpielVectorEnv
from task_gym import opponents
from task_gym.errors import ArgumentError
from tests.game_gym.play import Fixed

LEDUC = {"game": "leduc_poker", "rules": False}
MIXED = {"task_ids": [(0, len(TABLE) * CONFIGS - 1)], "rules": False, "max_turns": 4}
"""Any game of the table; games are cut, so that many end."""

CASES = [
    pytest.param(LEDUC, 60, id="leduc"),
    pytest.param(MIXED, 15, id="mixed", marks=pytest.mark.families),  # deals of bridge are solved
]


def make_vec(num_envs: int = 6, **arguments: Any) -> Any:
    return gym.make_vec("game_gym:GameSpiel-v0", num_envs=num_envs, **arguments)


def sync(mode: AutoresetMode, num_envs: int = 6, **arguments: Any) -> Any:
    return make_vec(num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **arguments)


def step_both(batch: Any, other: Any, actions: Any) -> tuple[list[Any], dict[str, Any]]:
    """Steps both batches, which return the same; returns arrays and infos."""
    texts, *arrays, infos = batch.step(actions)
    expected_texts, *expected_arrays, expected = other.step(actions)
    assert texts == expected_texts
    for batch_array, array in zip(arrays, expected_arrays, strict=True):
        assert data_equivalence(batch_array, array, exact=True)
    assert data_equivalence(infos, expected, exact=True)
    return arrays, infos


def choices(infos: dict[str, Any], rng: np.random.Generator) -> Any:
    """A random action of each game: legal ones mostly."""
    masks = infos["action_mask"]
    return (rng.random(masks.shape) * (masks + 0.02)).argmax(axis=1)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("arguments", "steps"), CASES)
def test_it_is_sync_vector_env(mode: AutoresetMode, arguments: dict[str, Any], steps: int) -> None:
    slow, fast = sync(mode, **arguments), make_vec(autoreset_mode=mode, **arguments)
    assert isinstance(slow, SyncVectorEnv) and type(fast) is GameSpielVectorEnv
    assert fast.metadata["autoreset_mode"] is mode
    assert (fast.action_space, fast.observation_space) == (slow.action_space, slow.observation_space)
    ended = 0
    # One seed, a seed per game, and none at all, which draws from the generators.
    for seeds in (7, [5, None, 3, 2, 1, 0], None):
        texts, infos = fast.reset(seed=seeds)
        expected_texts, expected = slow.reset(seed=seeds)
        assert seeds is None or texts[2] == expected_texts[2]
        if seeds == 7:
            assert texts == expected_texts
            assert data_equivalence(infos, expected, exact=True)
    texts, infos = fast.reset(seed=11)
    assert texts == slow.reset(seed=11)[0] and fast.observation_space.contains(texts)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        actions = choices(infos, rng)
        arrays, infos = step_both(fast, slow, actions)
        assert np.array_equal(fast.action_masks(), infos["action_mask"].astype(bool))
        ended += int((arrays[1] | arrays[2]).sum())
    assert ended > 10


def test_illegal_actions_of_opponents_are_counted_as_in_sync_vector_env(registries: None) -> None:
    opponents.register_opponent("wrong", Fixed, illegal="forfeit")
    mode = AutoresetMode.NEXT_STEP
    slow, fast = (
        make(mode, opponent="wrong", **LEDUC) for make in (sync, lambda mode, **more: make_vec(**more))
    )
    _, infos = fast.reset(seed=3)
    assert data_equivalence(infos, slow.reset(seed=3)[1], exact=True)
    rng = np.random.default_rng(0)
    counted = 0
    for _ in range(12):
        actions = choices(infos, rng)
        _, infos = step_both(fast, slow, actions)
        counted = max(counted, infos["opponent_illegal"].max())
    assert counted == 1 and infos["_opponent_illegal"].all()


def test_without_autoreset() -> None:
    fast, slow = make_vec(autoreset_mode="Disabled", **LEDUC), sync(AutoresetMode.DISABLED, **LEDUC)
    texts, infos = fast.reset(seed=0)
    slow.reset(seed=0)
    over = np.zeros(6, dtype=bool)
    while not over.any():
        actions = infos["action_mask"].argmax(axis=1)
        texts, _, terminated, truncated, infos = fast.step(actions)
        slow.step(actions)
        over = terminated | truncated
    with pytest.raises(ArgumentError, match=r"games \[.*\] have ended and autoreset_mode is 'Disabled'"):
        fast.step(actions)
    texts, infos = fast.reset(options={"reset_mask": over.copy()}, seed=50)
    expected_texts, expected = slow.reset(options={"reset_mask": over.copy()}, seed=50)
    assert texts == expected_texts
    assert data_equivalence(infos, expected, exact=True)
    fast.step(fast.action_masks().argmax(axis=1))


def test_threads_change_nothing() -> None:
    """Searches think in parallel; each game has its own."""
    arguments = {"game": "tic_tac_toe", "opponent": "mcts:30x2", "rules": False}
    one, several = make_vec(threads=1, **arguments), make_vec(threads=5, **arguments)
    assert (one.threads, several.threads) == (1, 5)
    texts, infos = one.reset(seed=3)
    assert several.reset(seed=3)[0] == texts
    rng = np.random.default_rng(0)
    for _ in range(8):
        actions = choices(infos, rng)
        _, infos = step_both(several, one, actions)
    several.close()
    one.close()


def test_a_search_gets_a_thread_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("game_gym.vector.count_cores", lambda: 3)
    assert make_vec(opponent="mcts:10", **LEDUC).threads == 3
    assert make_vec(2, opponent="mcts:10", **LEDUC).threads == 2
    assert make_vec(opponent="ismcts:10", **LEDUC).threads == 3  # each of which has a process
    assert make_vec(**LEDUC).threads == 1


def test_after_an_error_no_game_moves(registries: None) -> None:
    """A thread that still moved its game would mix with the moves of the next reset."""
    failed, ended = threading.Event(), []

    class Patient(Fixed):
        """Seat 1: fails in the game of seed 0, and thinks for long in that of seed 2."""

        def restart(self, seed: int) -> None:
            self.seed = seed

        def act(self, view: Any) -> int:
            if self.seed == 0:
                failed.set()
                raise RuntimeError("gone")
            failed.wait(30)
            time.sleep(0.2)
            ended.append(self.seed)
            return int(view.legal_actions()[0])

    opponents.register_opponent("patient", Patient)
    batch = make_vec(2, game="tic_tac_toe", opponent="patient", threads=2)
    batch.reset(seed=[0, 2])
    with pytest.raises(RuntimeError, match="gone"):
        batch.step(np.array([4, 4]))
    assert ended == [2]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_a_copy_in_mid_game_has_threads_of_its_own(clone: Any) -> None:
    batch = make_vec(2, game="tic_tac_toe", opponent="mcts:10", threads=2)
    batch.reset(seed=3)
    batch.step(np.array([4, 4]))
    twin = clone(batch)
    expected, twin_step = (each.step(each.action_masks().argmax(axis=1)) for each in (batch, twin))
    assert twin_step[0] == expected[0]
    for each in (batch, twin):
        each.close()


def test_arguments() -> None:
    for wrong, message in (
        ({"num_envs": 0}, r"num_envs: 0 was given, allowed: whole numbers of at least 1"),
        ({"threads": 0}, r"threads: 0 was given"),
        ({"autoreset_mode": "NextSteps"}, r"autoreset_mode: 'NextSteps' was given.*did you mean 'NextStep'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            GameSpielVectorEnv(**{**LEDUC, **wrong})
    batch = make_vec(2, **LEDUC)
    with pytest.raises(ArgumentError, match=r"seed: 3 seeds were given, allowed: 2"):
        batch.reset(seed=[1, 2, 3])
    batch.reset(seed=0)
    for seed in (True, 1.5):
        with pytest.raises(ArgumentError, match=r"seed: .* allowed: None, a whole number or one per game"):
            batch.reset(seed=seed)
    assert batch.reset(seed=np.int64(4))[1]["seed"].tolist() == [4, 5]
    for actions in (np.ones((2, 1), int), np.ones(2), [1, None]):  # a column is no row of illegal actions
        with pytest.raises(ArgumentError, match=r"action: .* was given, allowed: a whole number"):
            batch.step(actions)
        assert [game.moves for game in batch.games] == [0, 0]  # no game has moved
    for actions in (1, None):
        with pytest.raises(ArgumentError, match=r"actions: .* was given, allowed: one per game"):
            batch.step(actions)
    with pytest.raises(ArgumentError, match=r"actions: 1 were given, allowed: 2"):
        batch.step([1])
    assert batch.spec.id == "GameSpiel-v0" and encode("hex", 0) == 600_000_000
