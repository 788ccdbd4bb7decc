"""Rollouts: waves, complete episodes, and parts of a round that do not wait for one another."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.learning.metrics import rollout_metrics
from gamespiel.agents.rollout import Episode, Turn, play
from gamespiel.agents.sampling.decisions import Answer, Decision
from gamespiel.agents.sampling.noise import episode_seeds
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.processes import count_cores
from task_gym.wrappers import NamedText
from tests.agents.toys import Stairs, collect, make_ppo

SEEDS = [3, 1, 4, 15, 9, 2, 6, 5]


def chosen(mass: float) -> Decision:
    """Returns a choice of the first of two actions, of the given legal mass."""
    trie = ActionTrie.build({0: (5,), 1: (6,)})
    return Decision((1,), trie, (5,), np.array([-1.0], dtype=np.float32), mass, value=0.25)


class Lowest:
    """An agent that takes the lowest legal action, and keeps its arguments.

    Args:
        before: Is called with the episodes and the turn before a decision.
    """

    def __init__(self, before: Callable[[list[int], int], None] = lambda episodes, turn: None) -> None:
        self.calls: list[tuple[list[int], int]] = []
        self.before = before

    def __call__(self, texts: list[str], masks: Any, episodes: list[int], turn: int) -> list[Answer]:
        self.before(episodes, turn)
        self.calls.append((episodes, turn))
        n = len(texts)
        assert masks.dtype == bool and len(masks) == len(episodes) == n
        return [Answer(int(action), chosen(0.5)) for action in masks.argmax(-1)]


def lengths(seeds: list[int]) -> list[int]:
    episode_lengths = []
    for seed in seeds:
        env = Stairs()
        env.reset(seed=seed)
        episode_lengths.append(env.length)
    return episode_lengths


def test_waves_take_their_turns_together() -> None:
    """Eight episodes in three environments: waves of 0 1 2, 3 4 5, 6 7; finished episodes drop out."""
    decide, counts = Lowest(), []
    episodes = play(TextVecEnv([Stairs] * 3), SEEDS, decide, lambda turns: counts.append(turns) or True)  # type: ignore[func-returns-value]
    episode_lengths = lengths(SEEDS)
    expected = [
        ([e for e in wave if episode_lengths[e] > turn], turn)
        for wave in ([0, 1, 2], [3, 4, 5], [6, 7])
        for turn in range(max(episode_lengths[e] for e in wave))
    ]
    assert decide.calls == expected
    assert counts == [len(episodes) for episodes, _ in expected]
    assert [e.index for e in episodes] == list(range(8)) and [e.seed for e in episodes] == SEEDS
    assert [len(e.turns) for e in episodes] == episode_lengths


def test_an_episode_as_it_was_played_and_its_transcript() -> None:
    (episode,) = play(TextVecEnv([Stairs]), [3], Lowest(), lambda turns: True) or []
    env = Stairs()
    text, _ = env.reset(seed=3)
    for turn in episode.turns:
        assert turn.observation == text
        assert np.array_equal(turn.action_mask, env.action_masks())
        assert turn.action == env.legal[0]
        assert turn.decision is not None and turn.measures == {"legal_mass": 0.5}
        assert turn.decision.value == 0.25 and turn.decision.log_probs.tolist() == [-1.0]
        text, reward, over, _, info = env.step(turn.action)
        assert turn.reward == reward
    assert over and episode.final_observation == text and episode.info == info
    assert episode.total_reward == 1.0 and not episode.truncated and not episode.fault
    assert episode.group == ("stairs", 1)
    mask = np.array([False, True, False, True])
    turns = [Turn(text, mask, 3) for text in ("x:", NamedText("x:", ["Call", "Raise"]))]
    shown = [Episode(0, 0, turns=[turn], final_observation="won").transcript() for turn in turns]
    assert shown == ["x: 3\n\nwon", "x: Raise\n\nwon"]  # 3 is the second legal action
    assert Episode(0, 0, final_observation="over").transcript() == "over"


def test_a_cut_episode_goes_on_in_the_critics_estimate() -> None:
    """One turn with reward 0, then cut: return = γ V(last state), with the head set to a known function."""
    model = make_ppo(lambda: Stairs(max_turns=1), batch_size=6, gamma=0.9, normalize_advantage=False)
    # Hidden states are large: with a head this small, values are of order 1 and exact enough in float32.
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.normal_(model.policy.value_head.weight, std=0.05, generator=generator)
    assert collect(model)
    buffer = model.rollout_buffer
    assert buffer.returns is not None and buffer.advantages is not None and len(buffer) == 6
    for row, seed in enumerate(episode_seeds(0, 0, 6)):
        env = Stairs(max_turns=1)
        text, _ = env.reset(seed=seed)
        decision = buffer.decisions[row]
        assert [decision.prompt] == model.policy.prompts(text)
        left_in, reward, over, cut, _ = env.step(model.policy.answer_of(decision).action)
        assert cut and not over and reward == 0.0
        with torch.no_grad():
            value, following = model.policy.predict_values([text, left_in])[:, 0].tolist()
        assert buffer.returns[row] == pytest.approx(0.9 * following, abs=1e-5)
        assert buffer.advantages[row] == pytest.approx(0.9 * following - value, abs=1e-5)
        assert abs(following) > 1e-3


def test_a_backend_that_failed_counts_as_a_fault_and_nothing_else() -> None:
    model = make_ppo(lambda: Stairs(fault=lambda seed: seed % 3 == 0), batch_size=6)
    assert collect(model)
    seeds = episode_seeds(0, 0, 6)
    faults = [i for i, seed in enumerate(seeds) if seed % 3 == 0]
    assert 0 < len(faults) < 6
    length_counts = Counter(length for i, length in enumerate(lengths(seeds)) if i not in faults)
    assert len(model.rollout_buffer) == sum(length * count for length, count in length_counts.items())
    logged = model.logger.name_to_value
    assert logged["rollout/faults"] == len(faults) and logged["rollout/episodes"] == 6 - len(faults)
    assert logged["rollout/cut"] == 0.0  # a fault is truncated, but counts as no cut
    model.train()
    model.env = TextVecEnv([lambda: Stairs(fault=lambda seed: True)] * 4)
    before = {k: v.clone() for k, v in model.policy.state_dict().items()}
    assert collect(model)
    model.train()
    assert len(model.rollout_buffer) == 0
    assert all(torch.equal(v, before[k]) for k, v in model.policy.state_dict().items())


# -- metrics -------------------------------------------------------------------------------------------------


def turn(reward: float, mass: float) -> Turn:
    return Turn("", np.ones(1, dtype=bool), 0, chosen(mass), reward)


def test_what_a_step_reports() -> None:
    """Three played episodes of 1, 2 and 1 turns, and a fault that would change every number.

    In euchre all others may pass before the seat's turn comes: such a game has no legal mass.
    """
    episodes = [
        Episode(0, 0, {"seat": 0, "success": True}, [turn(1.0, 0.5)]),
        Episode(1, 1, {"seat": 1}, [turn(0.0, 1.0), turn(0.5, 0.25)], truncated=True),
        Episode(2, 2, {"seat": 0, "success": False}, [turn(0.0, 0.25)]),
        Episode(3, 3, {"seat": 1, "result": "fault"}, [turn(9.0, 9.0)], truncated=True),
    ]
    metrics = rollout_metrics(episodes)
    expected = {
        "episodes": 3, "faults": 1, "reward": 0.5, "success": 1 / 3, "turns": 4 / 3, "cut": 1 / 3,
        "legal_mass": 0.5, "seat0_reward": 0.5, "seat1_reward": 0.5,
    }  # fmt: skip
    assert {key: metrics[key] for key in expected} == pytest.approx(expected)
    assert rollout_metrics([Episode(0, 0, info={"seat": 1, "success": False})]) == {
        "episodes": 1, "faults": 0, "reward": 0, "success": 0, "turns": 0, "cut": 0, "seat1_reward": 0
    }  # fmt: skip
    assert rollout_metrics([Episode(0, 0, {"result": "fault"})]) == {"episodes": 0, "faults": 1}


# -- searching opponents -------------------------------------------------------------------------------------


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


def play_parts(envs: TextEnvs, parts: int, decide: Any = None) -> list[Episode] | None:
    return play(envs, SEEDS, decide or Lowest(), go_on, parts=parts)


def test_parts_follow_from_the_opponents_and_not_from_the_machine() -> None:
    for threads in (None, 1, 4):
        assert TextVecEnv([Searched] * 2, threads).parts == TextEnvs([Searched], threads).parts == 2
        assert TextVecEnv([Stairs] * 2, threads).parts == 1
    assert TextEnvs([Searched]).threads == count_cores()


def test_parts_take_their_turns_in_a_fixed_order() -> None:
    """Eight episodes in five environments: parts 0 2 4 and 1 3 of the first wave, then 5 7 and 6."""
    episode_lengths, orders = lengths(SEEDS), []
    for threads in (1, 2, 4):
        decide = Lowest()
        episodes = play_parts(TextVecEnv([Searched] * 5, threads), 2, decide)
        assert episodes is not None and [len(episode.turns) for episode in episodes] == episode_lengths
        orders.append(decide.calls)
    expected = [
        (live, turn)
        for wave in (([0, 2, 4], [1, 3]), ([5, 7], [6]))
        for turn in range(max(episode_lengths[e] for part in wave for e in part))
        for part in wave
        if (live := [e for e in part if episode_lengths[e] > turn])
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
    episode_lengths = dict(zip((3, 1), lengths([3, 1]), strict=True))
    awaited: list[tuple[int, int]] = []

    def think(seed: int, turn: int) -> None:
        other, its = (1, turn) if seed == 3 else (3, turn + 1)
        if its < episode_lengths[other]:
            awaited.append((seed, turn))
            assert begun[other, its].wait(LONG), "the model waited for the opponent"

    def note(episodes: list[int], turn: int) -> None:
        begun[[3, 1][episodes[0]], turn].set()

    envs = TextVecEnv([lambda: Searched(think)] * 2, 1)
    assert play(envs, [3, 1], Lowest(note), go_on, parts=2) is not None
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

    def fail(episodes: list[int], turn: int) -> None:
        if episodes == [1]:
            assert searching.wait(LONG)
            if interrupt is not KeyboardInterrupt:
                raised.set()
            raise interrupt

    envs = TextVecEnv([lambda: Searched(think)] * 2, 2)
    with pytest.raises(interrupt):
        play(envs, [3, 1], Lowest(fail), go_on, parts=2)
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
    over = [episode.seed for episode in episodes if not episode.turns]
    assert over == [3, 1, 15, 9, 6, 5]
    assert {e for live, _ in decide.calls for e in live} == {2, 5}
