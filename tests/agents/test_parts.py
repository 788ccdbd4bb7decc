"""Searching opponents: threads that they share, and parts of a round that do not wait for one another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.rollout import Episode, play
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.cores import count_cores
from tests.agents.test_rollout import SEEDS, Lowest, lengths
from tests.agents.toys import Quiet, Stairs, collect, make_ppo

LONG = 60.0
"""Seconds after which a test that hangs fails."""


class Searched(Stairs):
    """Stairs whose steps call ``think`` with the episode's seed and turn, as an opponent's search would."""

    searches = True

    def __init__(self, think: Callable[[int, int], None] = lambda seed, turn: None, **settings: Any) -> None:
        super().__init__(**settings)
        self.think = think

    def step(self, action: int) -> Any:
        self.think(self.seed, self.turn)
        return super().step(action)


def go_on(turns: int) -> bool:
    return True


def play_parts(envs: TextEnvs, parts: int, decide: Any = None, on_turns: Any = go_on) -> list[Episode] | None:
    return play(envs, SEEDS, decide or Lowest(), on_turns, parts=parts)


def test_parts_follow_from_the_opponents_and_not_from_the_machine() -> None:
    for threads in (None, 1, 4):
        assert TextVecEnv([Searched] * 2, threads).parts == TextEnvs([Searched], threads).parts == 2
        assert TextVecEnv([Stairs] * 2, threads).parts == 1
    assert TextEnvs([Searched]).threads == count_cores()


@pytest.mark.parametrize(("seconds", "parts"), [(0.0, 1), (0.29, 1), (0.3, 2)])
def test_a_round_of_short_searches_has_one_part(seconds: float, parts: int) -> None:
    """Two environments have 0.6 CPU seconds of search per round from 0.3 on; the dearest one counts."""

    class Priced(Searched):
        search_seconds = seconds

    assert TextEnvs([Priced, Stairs]).parts == TextVecEnv([Priced] * 2, 4).parts == parts


def test_parts_take_their_turns_in_a_fixed_order() -> None:
    """Eight episodes in five environments: parts 0 2 4 and 1 3 of the first wave, then 5 7 and 6."""
    own, orders = lengths(SEEDS), []
    for threads in (1, 2, 4):
        decide = Lowest()
        episodes = play_parts(TextVecEnv([Searched] * 5, threads), 2, decide)
        assert episodes is not None and [len(episode.turns) for episode in episodes] == own
        orders.append(decide.calls)
    expected = [
        (live, turn)
        for wave in (([0, 2, 4], [1, 3]), ([5, 7], [6]))
        for turn in range(max(own[e] for part in wave for e in part))
        for part in wave
        if (live := [e for e in part if own[e] > turn])
    ]
    assert orders == [expected] * 3


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_episodes_do_not_depend_on_parts(parts: int) -> None:
    def turns(envs: TextVecEnv, parts: int) -> list[Any]:
        episodes = play_parts(envs, parts) or []
        return [(e.index, e.info, [(t.observation, t.action, t.reward) for t in e.turns]) for e in episodes]

    def is_fault(seed: int) -> bool:
        return seed % 3 == 0

    alone = turns(TextVecEnv([lambda: Stairs(fault=is_fault)] * 3), 1)
    assert len(alone) == 8
    assert turns(TextVecEnv([lambda: Searched(fault=is_fault)] * 3, 2), parts) == alone
    # Without threads, nothing overlaps.
    assert turns(TextVecEnv([lambda: Stairs(fault=is_fault)] * 3), parts) == alone


def test_the_model_decides_while_opponents_search() -> None:
    """A step of either part ends only when the other part's next decision has begun, or no more will come."""
    begun: dict[tuple[int, int], threading.Event] = {
        (seed, turn): threading.Event() for seed in (3, 1) for turn in range(5)
    }
    own = dict(zip((3, 1), lengths([3, 1]), strict=True))
    awaited: list[tuple[int, int]] = []

    def think(seed: int, turn: int) -> None:
        other, its = (1, turn) if seed == 3 else (3, turn + 1)
        if its < own[other]:
            awaited.append((seed, turn))
            assert begun[other, its].wait(LONG), "the model waited for the opponent"

    class Noting(Lowest):
        def __call__(self, texts: list[str], masks: Any, episodes: list[int], turn: int) -> list[Answer]:
            begun[[3, 1][episodes[0]], turn].set()
            return super().__call__(texts, masks, episodes, turn)

    envs = TextVecEnv([lambda: Searched(think)] * 2, 1)
    assert play(envs, [3, 1], Noting(), go_on, parts=2) is not None
    assert len(awaited) >= 3


def test_a_stop_waits_for_no_search_and_begins_none() -> None:
    """Part 0 has environment 0, part 1 the others; one thread, which the search of environment 1 holds."""
    free, searching, thought = threading.Event(), threading.Event(), list[int]()

    def think(seed: int, turn: int) -> None:
        thought.append(seed)
        if seed == 1:
            searching.set()
            assert free.wait(LONG)

    def stop(turns: int) -> bool:
        assert searching.wait(LONG)
        return False

    envs = TextVecEnv([lambda: Searched(think)] * 4, 1)
    assert play(envs, [3, 1, 4, 2], Lowest(), stop, parts=2) is None
    assert not free.is_set() and thought == [3, 4, 1]
    free.set()
    assert [info["turn"] for _, info in envs.reset_many([1], [1])] == [0]  # after the search's own step
    assert thought == [3, 4, 1]
    envs.close()


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, ZeroDivisionError])
def test_what_interrupts_a_decision(interrupt: type[BaseException]) -> None:
    """An error waits for the searches under way; Ctrl-C does not. The next call waits in any case."""
    raised, searching, ended = threading.Event(), threading.Event(), list[int]()

    def think(seed: int, turn: int) -> None:
        searching.set()
        assert raised.wait(LONG)
        ended.append(seed)

    class Raising(Lowest):
        def __call__(self, texts: list[str], masks: Any, episodes: list[int], turn: int) -> list[Answer]:
            if episodes == [1]:
                assert searching.wait(LONG)
                if interrupt is not KeyboardInterrupt:
                    raised.set()
                raise interrupt
            return super().__call__(texts, masks, episodes, turn)

    envs = TextVecEnv([lambda: Searched(think)] * 2, 2)
    with pytest.raises(interrupt):
        play(envs, [3, 1], Raising(), go_on, parts=2)
    assert ended == ([] if interrupt is KeyboardInterrupt else [3])
    raised.set()
    envs.reset_one(0, seed=3)
    assert ended == [3]
    envs.close()


@pytest.mark.parametrize("parts", [1, 2])
def test_an_error_in_a_thread_comes_out_and_nothing_moves_after_it(parts: int) -> None:
    failed, moved = threading.Event(), list[int]()

    def think(seed: int, turn: int) -> None:
        if seed == 3:
            failed.set()
            raise OSError("no more memory")
        assert failed.wait(LONG)
        moved.append(seed)

    envs = TextVecEnv([lambda: Searched(think)] * 4, 4)
    with pytest.raises(OSError, match="no more memory"):
        play(envs, [3, 1, 4, 15], Lowest(), go_on, parts=parts)
    count = len(moved)
    assert count <= 3
    envs.reset_one(0, seed=1)
    assert len(moved) == count
    envs.close()


def test_episodes_that_are_over_at_reset() -> None:
    class Sometimes(Searched):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            self.over = self.seed % 3 == 0 or self.seed in (1, 5)
            return text, info | ({"result": "win"} if self.over else {})

        def action_masks(self) -> np.ndarray[Any, Any]:
            return super().action_masks() & (not self.over)

    decide = Lowest()
    episodes = play_parts(TextVecEnv([Sometimes] * 4, 2), 2, decide)
    assert episodes is not None
    over = [episode.seed for episode in episodes if not episode.turns]
    assert over == [3, 1, 15, 9, 6, 5]
    assert {e for live, _ in decide.calls for e in live} == {2, 5}


def test_a_learner_keeps_the_parts_that_it_began_with() -> None:
    model = make_ppo(Searched, batch_size=6)
    assert model.parts == model.make_collector().parts == 2
    assert collect(model) and len(model.rollout_buffer) == model.num_timesteps
    model.set_env(TextVecEnv([Stairs] * 2))
    assert model.parts == 2
    stopped = make_ppo(Searched, batch_size=8)
    assert not collect(stopped, Quiet(rounds=2)) and stopped.num_timesteps == stopped.step == 0
