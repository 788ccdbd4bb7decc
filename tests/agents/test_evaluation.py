"""The evaluation loop: measures by hand, and equal results for equal arguments."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from gamespiel.agents.rollout import Episode, Masks, Turn
from gamespiel.agents.runs.evaluation import (
    group_by_seat,
    measure,
    measure_replies,
    play_seeds,
    policy_agent,
)
from gamespiel.agents.runs.seats import draw_balanced_seeds
from gamespiel.agents.runs.stats import Z95, wilson
from gamespiel.agents.sampling.decisions import Answer, Decision
from gamespiel.agents.tokens.constraints import FreeText
from gamespiel.agents.tokens.trie import ActionTrie
from gamespiel.agents.vec_env import TextVecEnv
from tests.agents.toys import TEXT, Bandit, Stairs, asked, make_policy


def episode(index: int, turns: int = 1, illegal: int = 0, reward: float = 0.0, **info: Any) -> Episode:
    """Returns an episode that is over, with its reward in the last turn."""
    mask = np.array([True])
    trie = ActionTrie.build({0: (5,)})
    chosen = Decision((1,), trie, (5,), np.zeros(0, dtype=np.float32), legal_mass=1.0)
    played = [Turn("", mask, 0, chosen, refused=turn < illegal) for turn in range(turns)]
    played[-1].reward = reward
    return Episode(index, index, info, played)


def test_measures_by_hand() -> None:
    measured = measure(
        [
            episode(0, turns=2, score=1.0, success=True, seat=0, returns=[3.0, -3.0]),
            episode(1, turns=3, illegal=1, score=0.25, success=False, seat=1, returns=[1.0, -1.0]),
            episode(2, turns=1, score=0.25, success=False, seat=1, returns=[2.0, -2.0]),
            episode(3, turns=9, illegal=9, result="fault", score=None),
        ]
    )
    assert measured is not None
    assert (measured.episodes, measured.faults) == (3, 1)
    # Scores 1, 1/4, 1/4: mean 1/2, variance (1/4 + 1/16 + 1/16) / 2 = 3/16, error sqrt(3/16 / 3) = 1/4.
    assert measured.score == pytest.approx((0.5, 0.5 - Z95 / 4, 0.5 + Z95 / 4))
    assert measured.success == wilson(1, 3)
    # The seat's own returns: 3, -1, -2, of mean 0 and variance (9 + 1 + 4) / 2 = 7.
    error = Z95 * math.sqrt(7 / 3)
    assert measured.returns == pytest.approx((0.0, -error, error))
    assert measured.illegal_rate == 1 / 6 and measured.length == 2
    assert measured.to_dict()["success"] == list(wilson(1, 3))
    assert measure([episode(0, result="fault")]) is None


def test_an_environment_without_scores_is_measured_by_its_reward() -> None:
    measured = measure([episode(0, reward=1.0), episode(1, reward=0.5)])
    assert measured is not None and measured.returns is None
    assert measured.score.mean == 0.75
    assert measured.success == wilson(1, 2)  # a half is no success


def test_scores_by_name_are_measured_each() -> None:
    measured = measure(
        [
            episode(0, score=1.0, by_scoring={"strict": 0.0, "shared": 0.5}),
            episode(1, score=0.0, by_scoring={"strict": 1.0, "shared": 0.25}),
            episode(2, result="fault", score=None),
        ]
    )
    assert measured is not None
    assert measured.by_scoring == {"strict": wilson(1, 2), "shared": wilson(0.75, 2)}
    shown = {"strict": list(wilson(1, 2)), "shared": list(wilson(0.75, 2))}
    assert measured.to_dict()["by_scoring"] == shown
    # A game's scores, one per seat, are something else.
    seats = measure([episode(0, score=1.0, scores=[1.0, 0.0])])
    assert seats is not None and seats.by_scoring == {} and "by_scoring" not in seats.to_dict()


def replied(index: int, *replies: str, illegal: int = 0, cut: bool = False, **info: Any) -> Episode:
    """Returns an episode of replies that is over; a reply has a token per character."""
    none = np.zeros(0, dtype=bool)
    free = FreeText(frozenset({2}), 9)
    turns = [
        Turn("", none, text, written(free, (0,) * len(text), cut), refused=turn < illegal)
        for turn, text in enumerate(replies)
    ]
    return Episode(index, index, info, turns)


def written(free: FreeText, tokens: tuple[int, ...], cut: bool) -> Decision:
    return Decision((1,), free, tokens, np.full(len(tokens), -1.0, dtype=np.float32), cut=cut)


def test_measures_of_replies_by_hand() -> None:
    error = {"error": {"type": "invalid_action"}}
    measured = measure_replies(
        [
            replied(0, "1", "22", score=1.0),
            replied(1, "no", "0", illegal=1, score=0.5),
            replied(2, "x", "y", "z", illegal=3, cut=True, score=0.0, **error),
            replied(3, score=0.5),  # over before the first turn
            replied(4, "fault", "fault", illegal=2, cut=True, result="fault", score=None, **error),
        ]
    )
    assert measured is not None
    assert (measured.episodes, measured.faults, measured.score.mean) == (4, 1, 0.5)
    assert (measured.replies, measured.illegal_replies, measured.illegal_share) == (7, 4, wilson(4, 7))
    assert (measured.given_up, measured.given_up_share) == (1, wilson(1, 4))
    assert (measured.cut_replies, measured.cut_share) == (3, wilson(3, 7))
    assert measured.tokens_per_reply == 9 / 7  # 1 + 2, 2 + 1 and 1 + 1 + 1 characters
    assert measured.legal_mass is None
    assert measured.to_dict()["illegal_share"] == list(wilson(4, 7))
    # Episodes without replies have no shares of them.
    measured = measure_replies([replied(0, score=1.0)])
    assert measured is not None and (measured.replies, measured.given_up) == (0, 0)
    assert measured.illegal_share is measured.cut_share is measured.tokens_per_reply is None
    assert measure_replies([replied(0, result="fault")]) is None


class Letters(gym.Env[str, str]):
    """Three turns, in each of which the reply "a" pays 1/3; seeds divisible by 3 are over at once."""

    observation_space = TEXT
    action_space = gym.spaces.Text(100)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        self.seed, self.turn = seed or 0, 0
        return self._text(), {"result": "draw", "score": 0.5} if self.seed % 3 == 0 else {}

    def _text(self) -> str:
        return f"seed {self.seed}, turn {self.turn}{asked((0, 1))}"

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        assert isinstance(action, str) and self.seed % 3
        self.turn += 1
        return self._text(), float(action == "a") / 3, self.turn == 3, False, {}


def test_replies_are_given_to_environments_that_take_text() -> None:
    """Without masks, an episode with a result at its reset has no turn."""
    calls: list[tuple[list[int], int]] = []

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        calls.append((indices, turn))
        n = len(texts)
        assert masks.shape == (n, 0)
        decision = written(FreeText(frozenset({8}), 9), (7, 8), False)
        return [Answer("a" if index % 2 else "b", decision) for index in indices]

    episodes = play_seeds(TextVecEnv([Letters] * 4), decide, [0, 1, 2, 3, 4, 5])
    assert calls == [([1, 2], t) for t in range(3)] + [([4, 5], t) for t in range(3)]
    assert [e.total_reward for e in episodes] == pytest.approx([0, 1, 0, 0, 0, 1])
    assert [len(e.turns) for e in episodes] == [0, 3, 3, 0, 3, 3]
    turn = episodes[1].turns[0]
    assert (turn.answer, turn.action) == ("a", "a") and turn.decision is not None
    assert turn.measures == {"reply_tokens": 2, "cut_share": 0.0}
    assert "turn 2" in episodes[1].transcript() and "action ID only): a" in episodes[1].transcript()


@pytest.mark.parametrize("writes", [False, True])
def test_play_depends_on_neither_the_number_of_environments_nor_the_time(writes: bool) -> None:
    policy, seeds = make_policy(adapters=0.3), [1, 2, 4, 5, 7, 8, 10]
    free = policy.free_text(4) if writes else None

    def play(count: int, seed: int = 3, *, greedy: bool = False) -> list[Episode]:
        torch.manual_seed(count)
        agent = policy_agent(policy, seed, len(seeds), greedy=greedy, constraint=free)
        return play_seeds(TextVecEnv([Letters if writes else Stairs] * count), agent, seeds)

    def actions(episodes: list[Episode]) -> list[Any]:
        return [[turn.action for turn in e.turns] for e in episodes]

    episodes = play(7)
    sampled = actions(episodes)
    assert sampled == actions(play(7)) == actions(play(3)) != actions(play(7, seed=4))
    assert sampled != actions(play(7, greedy=True)) == actions(play(3, greedy=True))
    if writes:
        # The reply as it was written is scored, and the value is the critic's.
        turn = episodes[0].turns[0]
        assert turn.decision is not None and turn.decision.value == 0.0
        with torch.no_grad():
            scored = policy.scorer.score([turn.decision])
        assert turn.decision.log_probs == pytest.approx(scored.log_probs.numpy(), abs=1e-4)


def test_seats_get_equally_many_episodes_in_the_order_drawn() -> None:
    env = TextVecEnv([Stairs] * 2)
    seeds = draw_balanced_seeds(env.envs[0], 40, seed=5)
    seats = [env.reset_one(0, seed)[1]["seat"] for seed in seeds]
    assert (seats.count(0), seats.count(1)) == (40, 40)
    assert len(set(seeds)) == 80
    assert draw_balanced_seeds(env.envs[0], 40, seed=5) == seeds
    assert set(draw_balanced_seeds(env.envs[0], 40, seed=6)).isdisjoint(seeds)
    assert len(draw_balanced_seeds(Bandit(), 70, seed=0)) == 70  # more than one block of probes


def test_by_seat_is_sorted_and_knows_seatless_games() -> None:
    episodes = [episode(0, seat=1), episode(1), episode(2, seat=0), episode(3, seat=1)]
    assert {seat: [e.index for e in own] for seat, own in group_by_seat(episodes).items()} == {
        0: [2],
        1: [0, 3],
        None: [1],
    }
    assert list(group_by_seat(episodes)) == [0, 1, None]


def test_greedy_takes_the_most_probable_action() -> None:
    policy = make_policy(adapters=0.3)
    env = TextVecEnv([Stairs] * 6)
    turns = [
        turn
        for episode in play_seeds(env, policy_agent(policy, 0, 6, greedy=True), list(range(6)))
        for turn in episode.turns
    ]
    legal = [np.flatnonzero(turn.action_mask).tolist() for turn in turns]
    tables = policy.distribution([turn.observation for turn in turns], legal)
    expected = [actions[int(p.argmax())] for actions, p in zip(legal, tables, strict=True)]
    assert [turn.action for turn in turns] == expected and len(turns) > 12
