"""Exact advantages: their mean gradient is the game's, and a game that is worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from game_gym.exact import OPPONENTS, find_variant
from game_gym.tree import GameTree, build_tree
from gamespiel.agents.rollout import Episode, Turn
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.assembly import make_algorithm
from gamespiel.config import InvalidValueError, from_dict, resolve
from gamespiel.environments.tree_values import TreeValues, find_tree

NO_MASK = np.ones(0, dtype=np.bool_)


class SoftmaxPolicy:
    """A policy with a logit for each action of each prompt."""

    def __init__(self, tree: GameTree, seed: int) -> None:
        self.texts = sorted({str(state.text) for state in tree.states})
        drawn = np.random.default_rng(seed)
        legal = {str(state.text): state.legal for state in tree.states}
        self.logits = {text: drawn.normal(size=len(legal[text])) for text in self.texts}

    def distribution(self, texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[Any]:
        return [self.chances(text) for text in map(str, texts)]

    def chances(self, text: str) -> Any:
        odds = np.exp(self.logits[text])
        return odds / odds.sum()


def list_episodes(tree: GameTree, seat: int, opponent: str) -> list[tuple[Episode, int]]:
    """Returns every game of a seat, with its last node."""
    episodes = []
    for leaf in np.flatnonzero(tree.movers == -4).tolist():
        history, turns, node = [], 0, leaf
        while node:
            history.append(int(tree.actions[node]))
            node = int(tree.parents[node])
            turns += int(tree.movers[node] == seat)
        info = {"seat": seat, "opponent": opponent, "history": history[::-1]}
        rewards = [0.0] * (turns - 1) + [float(tree.scores[leaf, seat])] if turns else []
        played = [Turn("", NO_MASK, 0, reward=reward) for reward in rewards]
        if played:
            episodes.append((Episode(len(episodes), 0, info, played), leaf))
    return episodes


@pytest.mark.parametrize(
    ("game", "conversation"), [("kuhn_poker", None), ("leduc_poker", None), ("kuhn_poker", "openenv")]
)
@pytest.mark.parametrize("opponent", ["random", "first", "self"])
def test_the_mean_gradient_over_all_games_is_that_of_the_expected_score(
    game: str, conversation: str | None, opponent: str
) -> None:
    tree = build_tree(find_variant(game=game), rules=False, conversation=conversation)
    policy, seat = SoftmaxPolicy(tree, 1), 1
    find = TreeValues(tree, policy, conversing=conversation is not None)  # type: ignore[arg-type]

    def tables() -> list[Any]:
        learner = [policy.chances(str(state.text)).tolist() for state in tree.states]
        other = learner if opponent == "self" else [OPPONENTS[opponent](len(s.legal)) for s in tree.states]
        return [other, learner]

    reach = tree.reach(tree.edge_probabilities(tables()))
    games = [(episode, leaf) for episode, leaf in list_episodes(tree, seat, opponent) if reach[leaf] > 0]
    found = find([episode for episode, _ in games])
    gradient = {text: np.zeros_like(logits) for text, logits in policy.logits.items()}
    for episode, leaf in games:
        node = 0
        advantages = iter(found[episode.index].advantages)
        for action in episode.info["history"]:
            child = tree.find_child(node, action)
            if tree.movers[node] == seat:
                text = str(tree.states[tree.state_of[node]].text)
                score = -policy.chances(text)
                score[tree.places[child]] += 1
                gradient[text] += reach[leaf] * next(advantages) * score
            node = child
    other, held = tables()[0], policy.logits
    drawn = np.random.default_rng(0).permutation(len(policy.texts))[:24]
    mine = {str(state.text) for state in tree.states if state.seat == seat}
    for text in [policy.texts[i] for i in drawn if policy.texts[i] in mine]:
        ends = []
        for step in (1e-4, -1e-4):
            policy.logits = held | {text: held[text] + step * np.eye(len(held[text]))[0]}
            ends.append(tree.expected_scores([other, tables()[1]])[seat])
        policy.logits = held
        assert gradient[text][0] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=1e-8)


@pytest.mark.parametrize("all_actions", [False, True])
def test_kuhn_poker_against_an_opponent_that_always_passes(all_actions: bool) -> None:
    # A bet wins the ante (score 3/4). A pass is a showdown: the jack loses (1/4), the queen wins half.
    config = resolve("tiny", overrides=[
        ("env.game", "kuhn_poker"), ("env.opponent", "first"), ("ppo.batch_size", "64"),
        ("ppo.advantages", "exact"), ("ppo.advantage_scale", "0.5"),
        ("ppo.all_actions", str(all_actions).lower()),
    ])  # fmt: skip
    model = make_algorithm(config)
    episodes = model.make_collector().collect(model.env, lambda dones, learned: True)  # type: ignore[arg-type]
    buffer = model.rollout_buffer
    assert episodes is not None and buffer.advantages is not None and buffer.returns is not None
    opening = [
        (episode, rows[:2])
        for episode, rows in zip(episodes, buffer.list_episodes(), strict=True)
        if episode.info["seat"] == 0
    ]
    assert {episode.info["history"][0] for episode, _ in opening} == {0, 1, 2}
    for episode, rows in opening:
        showdown = {0: 0.25, 1: 0.5, 2: 0.75}[episode.info["history"][0]]
        chances = model.policy.distribution([episode.turns[0].observation], [[0, 1]])[0]
        value = chances[0] * showdown + chances[1] * 0.75
        gains = (np.array([showdown, 0.75]) - value) / 0.5
        if all_actions:  # two rows per turn, over which the loss is a mean
            assert buffer.advantages[rows] == pytest.approx(2 * chances * gains, abs=1e-6)
            log_probs = [buffer.decisions[row].log_probs[0] for row in rows]
            assert log_probs == pytest.approx(np.log(chances), abs=1e-5)
        else:
            assert buffer.advantages[rows[0]] == pytest.approx(gains[episode.turns[0].action], abs=1e-6)
        assert buffer.returns[rows[0]] == pytest.approx(value, abs=1e-6)


def test_probabilities_along_an_actions_path() -> None:
    # Half of the probability begins with the digit 1, of which 2/5 end there and 3/5 go on with a 2.
    trie = ActionTrie.build({1: (11, 99), 2: (22, 99), 12: (11, 22, 99)})
    chances = {1: 0.2, 2: 0.5, 12: 0.3}
    assert np.exp(trie.path_log_probs(1, chances)) == pytest.approx([0.5, 0.4])
    assert np.exp(trie.path_log_probs(2, chances)) == pytest.approx([0.5])
    assert np.exp(trie.path_log_probs(12, chances)) == pytest.approx([0.5, 0.6])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gamma": 0.9}, "ppo.gamma is 0.9"),
        ({"opponent": "mcts:10"}, "'mcts:10'"),
        ({"game": "hex"}, "histories"),
        ({"reward": "upstream"}, "env.reward is 'upstream'"),
        ({"stages": [{"name": "a", "opponent": "first"}]}, "curriculum"),
        ({"decode": "text"}, "env.decode is 'text'"),
    ],
)
def test_what_no_tree_can_say_is_left_to_gae(changes: dict[str, Any], reason: str) -> None:
    config = from_dict({"game": "kuhn_poker", "gamma": 1.0, **changes})
    assert reason in str(find_tree(config))
    with pytest.raises(InvalidValueError, match=r"ppo\.advantages") as raised:
        make_algorithm(from_dict({"game": "kuhn_poker", "gamma": 1.0, "advantages": "exact", **changes}))
    assert reason in str(raised.value)


def test_auto_reads_a_tree_of_twice_the_turns_of_a_step() -> None:
    # Leduc poker has 936 information states, and 2.06 turns per game and seat under uniform play.
    config = resolve("tiny", overrides=[("ppo.batch_size", "256")])
    assert isinstance(find_tree(config), GameTree)
    config = resolve("tiny", overrides=[("ppo.batch_size", "128")])
    assert "936 information states" in str(find_tree(config))


def test_a_reward_that_is_not_the_score_is_an_error() -> None:
    tree = build_tree(find_variant(game="kuhn_poker"))
    (episode, _), *_ = list_episodes(tree, 0, "random")
    episode.turns[-1].reward += 0.5
    with pytest.raises(InvalidValueError, match=r"ppo\.advantages"):
        TreeValues(tree, SoftmaxPolicy(tree, 0))([episode])  # type: ignore[arg-type]
