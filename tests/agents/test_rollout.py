"""Rollouts: waves, complete episodes, and results that do not depend on the number of environments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from gamespiel.agents.learning.metrics import Means, rollout_metrics
from gamespiel.agents.rollout import Episode, Turn, play
from gamespiel.agents.sampling.decisions import Answer, Decision
from gamespiel.agents.sampling.noise import episode_seeds
from gamespiel.agents.tokens.trie import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.wrappers import NamedText
from tests.agents.toys import Stairs, collect, make_ppo

SEEDS = [3, 1, 4, 15, 9, 2, 6, 5]


def chosen(mass: float) -> Decision:
    """Returns a choice of the first of two actions, of the given legal mass."""
    trie = ActionTrie.build({0: (5,), 1: (6,)})
    return Decision((1,), trie, (5,), np.array([-1.0], dtype=np.float32), mass, value=0.25)


class Lowest:
    """An agent that takes the lowest legal action, and keeps its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[int], int]] = []

    def __call__(
        self, texts: list[str], masks: np.ndarray[Any, Any], episodes: list[int], turn: int
    ) -> list[Answer]:
        self.calls.append((episodes, turn))
        n = len(texts)
        assert masks.dtype == bool and len(masks) == len(episodes) == n
        return [Answer(int(action), chosen(0.5)) for action in masks.argmax(-1)]


def lengths(seeds: list[int]) -> list[int]:
    found = []
    for seed in seeds:
        env = Stairs()
        env.reset(seed=seed)
        found.append(env.length)
    return found


def test_waves_take_their_turns_together() -> None:
    """Eight episodes in three environments: waves of 0 1 2, 3 4 5, 6 7; finished episodes drop out."""
    decide, counts = Lowest(), []
    episodes = play(TextVecEnv([Stairs] * 3), SEEDS, decide, lambda turns: counts.append(turns) or True)  # type: ignore[func-returns-value]
    own = lengths(SEEDS)
    expected = [
        ([e for e in wave if own[e] > turn], turn)
        for wave in ([0, 1, 2], [3, 4, 5], [6, 7])
        for turn in range(max(own[e] for e in wave))
    ]
    assert decide.calls == expected
    assert counts == [len(episodes) for episodes, _ in expected]
    assert episodes is not None
    assert [e.index for e in episodes] == list(range(8)) and [e.seed for e in episodes] == SEEDS
    assert [len(e.turns) for e in episodes] == own


def test_an_episode_as_it_was_played() -> None:
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


def test_nothing_is_played_after_the_callback_says_stop() -> None:
    decide = Lowest()
    assert play(TextVecEnv([Stairs] * 2), SEEDS, decide, lambda turns: len(decide.calls) < 3) is None
    assert len(decide.calls) == 3


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


def faulty() -> Stairs:
    return Stairs(fault=lambda seed: seed % 3 == 0)


def test_a_backend_that_failed_counts_as_a_fault_and_nothing_else() -> None:
    model = make_ppo(faulty, batch_size=12)
    assert collect(model)
    seeds = episode_seeds(0, 0, 12)
    faults = [i for i, seed in enumerate(seeds) if seed % 3 == 0]
    assert 0 < len(faults) < 12
    kept = Counter(length for i, length in enumerate(lengths(seeds)) if i not in faults)
    assert len(model.rollout_buffer) == sum(length * count for length, count in kept.items())
    logged = model.logger.name_to_value
    assert logged["rollout/faults"] == len(faults) and logged["rollout/episodes"] == 12 - len(faults)
    assert logged["rollout/cut"] == 0.0  # a fault is truncated, but counts as no cut
    model.train()


def test_a_step_of_faults_alone_changes_nothing() -> None:
    model = make_ppo(lambda: Stairs(fault=lambda seed: True), batch_size=4)
    before = {k: v.clone() for k, v in model.policy.state_dict().items()}
    assert collect(model)
    model.train()
    assert len(model.rollout_buffer) == 0
    assert all(torch.equal(v, before[k]) for k, v in model.policy.state_dict().items())


# -- metrics -------------------------------------------------------------------------------------------------


def turn(reward: float, mass: float) -> Turn:
    return Turn("", np.ones(1, dtype=bool), 0, chosen(mass), reward)


def test_what_a_step_reports() -> None:
    """Three played episodes of 1, 2 and 1 turns, and a fault that would change every number."""
    episodes = [
        Episode(0, 0, {"seat": 0, "success": True}, [turn(1.0, 0.5)]),
        Episode(1, 1, {"seat": 1}, [turn(0.0, 1.0), turn(0.5, 0.25)], truncated=True),
        Episode(2, 2, {"seat": 0, "success": False}, [turn(0.0, 0.25)]),
        Episode(3, 3, {"seat": 1, "result": "fault"}, [turn(9.0, 9.0)], truncated=True),
    ]
    found = rollout_metrics(episodes)
    expected = {
        "episodes": 3, "faults": 1, "reward": 0.5, "success": 1 / 3, "turns": 4 / 3, "cut": 1 / 3,
        "legal_mass": 0.5, "seat0_reward": 0.5, "seat1_reward": 0.5,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_games_that_end_before_the_first_decision_have_no_legal_mass() -> None:
    """In euchre all others may pass before the seat's turn comes."""
    episodes = [Episode(0, 0, info={"seat": 1, "success": False})]
    assert rollout_metrics(episodes) == {
        "episodes": 1, "faults": 0, "reward": 0, "success": 0, "turns": 0, "cut": 0, "seat1_reward": 0
    }  # fmt: skip
    assert rollout_metrics([Episode(0, 0, {"result": "fault"})]) == {"episodes": 0, "faults": 1}


def test_a_transcript_shows_what_was_answered() -> None:
    mask = np.array([False, True, False, True])
    turns = [Turn(text, mask, 3) for text in ("x:", NamedText("x:", ["Call", "Raise"]))]
    shown = [Episode(0, 0, turns=[turn], final_observation="won").transcript() for turn in turns]
    assert shown == ["x: 3\n\nwon", "x: Raise\n\nwon"]  # 3 is the second legal action
    assert Episode(0, 0, final_observation="over").transcript() == "over"


def test_means_are_weighted() -> None:
    """(1 · 3 + 5 · 1) / 4."""
    means = Means()
    means.add("a", 1.0, 3)
    means.add("a", 5.0, 1)
    means.record("b", 7.0)
    assert means["a"] == 2.0 and dict(means.items()) == {"a": 2.0, "b": 7.0}
