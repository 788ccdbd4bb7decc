"""Exact advantages: their mean gradient is the game's, and a game that is worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import pytest

from game_gym.exact import OPPONENTS, find_variant
from game_gym.opponents.simple import FirstOpponent
from game_gym.tree import GameTree, build_tree
from gamespiel.agents.models import NEWEST
from gamespiel.agents.rollout import Episode, Turn
from gamespiel.agents.tokens.constraints import ActionTrie
from gamespiel.assembly import make_algorithm
from gamespiel.config import InvalidValueError, from_dict, resolve
from gamespiel.environments.tree_values import TreeValues, find_trees
from task_gym.opponents import register_opponent

NO_MASK = np.ones(0, dtype=np.bool_)


@cache
def tree_of(game: str, conversation: str | None = None) -> GameTree:
    return build_tree(find_variant(game=game), rules=False, conversation=conversation)


SNAPSHOT = "pool-000004"
"""An earlier policy that plays the other seat."""


class SoftmaxPolicy:
    """A policy with a logit for each action of each prompt."""

    def __init__(self, tree: GameTree, seed: int) -> None:
        self.texts = sorted({str(state.text) for state in tree.states})
        drawn = np.random.default_rng(seed)
        legal = {str(state.text): state.legal for state in tree.states}
        self.logits = {text: drawn.normal(size=len(legal[text])) for text in self.texts}

    def distribution(
        self, texts: Sequence[str], legal: Sequence[Sequence[int]], adapters: str = NEWEST
    ) -> list[Any]:
        return [self.chances(text, adapters) for text in map(str, texts)]

    def chances(self, text: str, adapters: str = NEWEST) -> Any:
        """Returns the probabilities of a prompt's actions; other adapters have the opposite logits."""
        odds = np.exp(self.logits[text] if adapters == NEWEST else -self.logits[text])
        return odds / odds.sum()


def list_episodes(tree: GameTree, seat: int, opponent: str) -> list[tuple[Episode, list[int], int]]:
    """Returns every game of a seat, with the edges of its moves and the last node."""
    episodes = []
    for leaf in np.flatnonzero(tree.movers == -4).tolist():
        edges, node = list[int](), leaf
        while node:
            edges.insert(0, node - 1)
            node = int(tree.parents[node - 1])
        moves = [edge for edge in edges if tree.movers[tree.parents[edge]] == seat]
        info: dict[str, Any] = {"seat": seat, "opponent": opponent, "history": tree.actions[edges].tolist()}
        if opponent == SNAPSHOT:
            info |= {"opponent": "self", "snapshot": SNAPSHOT}
        if moves:
            played = [Turn("", NO_MASK, 0, reward=0.0) for _ in moves]
            played[-1].reward = float(tree.scores[leaf, seat])
            episodes.append((Episode(len(episodes), 0, info, played), moves, leaf))
    return episodes


@pytest.mark.parametrize(
    ("game", "conversation"),
    [
        ("kuhn_poker", None),
        pytest.param("leduc_poker", None, marks=[pytest.mark.families, pytest.mark.sample]),
        ("kuhn_poker", "openenv"),
    ],
)
@pytest.mark.parametrize("opponent", ["random", "first", "self", SNAPSHOT])
def test_the_mean_gradient_over_all_games_is_that_of_the_expected_score(
    game: str, conversation: str | None, opponent: str
) -> None:
    tree = tree_of(game, conversation)
    policy, seat = SoftmaxPolicy(tree, 1), 1
    find = TreeValues({game: tree}, policy, conversing=conversation is not None)  # type: ignore[arg-type]

    def tabulate(adapters: str = NEWEST) -> list[Any]:
        return [policy.chances(str(state.text), adapters).tolist() for state in tree.states]

    if opponent in OPPONENTS:
        other = [OPPONENTS[opponent](len(state.legal)) for state in tree.states]
    else:
        other = tabulate(NEWEST if opponent == "self" else SNAPSHOT)
    reach = tree.reach(tree.edge_probabilities([other, tabulate()]))
    games = [game for game in list_episodes(tree, seat, opponent) if reach[game[2]] > 0]
    values = find([episode for episode, _, _ in games])
    gradient = {text: np.zeros_like(logits) for text, logits in policy.logits.items()}
    chances = {text: policy.chances(text) for text in policy.texts}
    for episode, edges, leaf in games:
        for edge, advantage in zip(edges, values[episode.index].advantages, strict=True):
            text = str(tree.states[tree.state_of[tree.parents[edge]]].text)
            score = -chances[text]
            score[tree.places[edge]] += 1
            gradient[text] += reach[leaf] * advantage * score
    held = policy.logits
    drawn = np.random.default_rng(0).permutation(len(policy.texts))[:24]
    mine = {str(state.text) for state in tree.states if state.seat == seat}
    for text in [policy.texts[i] for i in drawn if policy.texts[i] in mine]:
        ends = []
        for step in (1e-4, -1e-4):
            policy.logits = held | {text: held[text] + step * np.eye(len(held[text]))[0]}
            ends.append(tree.back_up(tree.edge_probabilities([other, tabulate()]), seat)[0])
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
    episodes = model.play_step(model.env, lambda dones, learned: True)  # type: ignore[arg-type]
    buffer = model.rollout_buffer
    assert episodes is not None and buffer.advantages is not None and buffer.weights is not None
    assert buffer.weights.mean() == pytest.approx(1.0)
    opening: dict[int, list[Turn]] = {}
    for episode in episodes:
        if episode.info["seat"] == 0:
            opening.setdefault(episode.info["history"][0], []).append(episode.turns[0])
    assert opening.keys() == {0, 1, 2}
    for card, turns in opening.items():
        showdown = {0: 0.25, 1: 0.5, 2: 0.75}[card]
        chances = model.policy.distribution([turns[0].observation], [[0, 1]])[0]
        value = chances[0] * showdown + chances[1] * 0.75
        gains = (np.array([showdown, 0.75]) - value) / 0.5
        played = np.bincount([turn.action for turn in turns], minlength=2)
        counts = len(turns) * chances if all_actions else played  # a row stands for so many turns
        assert turns[0].decision is not None and turns[0].decision.prompt is not None
        trie = turns[0].decision.constraint
        rows = {
            buffer.decisions[row].tokens: row
            for row in range(len(buffer))
            if buffer.decisions[row].prompt == turns[0].decision.prompt
        }
        assert len(rows) == np.count_nonzero(counts)
        for action in np.flatnonzero(counts):
            row = rows[trie.tokens[action]]  # type: ignore[attr-defined]
            assert buffer.weights[row] * buffer.turns / len(buffer) == pytest.approx(counts[action], rel=1e-5)
            assert buffer.advantages[row] == pytest.approx(gains[action], abs=1e-6)
            assert buffer.returns is not None and buffer.returns[row] == pytest.approx(value, abs=1e-6)
            assert buffer.decisions[row].log_probs == pytest.approx([np.log(chances[action])], abs=1e-5)


def test_probabilities_along_an_actions_path() -> None:
    # Half of the probability begins with the digit 1, of which 2/5 end there and 3/5 go on with a 2.
    trie = ActionTrie.build({1: (11, 99), 2: (22, 99), 12: (11, 22, 99)})
    chances = {1: 0.2, 2: 0.5, 12: 0.3}
    assert np.exp(trie.path_log_probs(1, chances)) == pytest.approx([0.5, 0.4])
    assert np.exp(trie.path_log_probs(2, chances)) == pytest.approx([0.5])
    assert np.exp(trie.path_log_probs(12, chances)) == pytest.approx([0.5, 0.6])


def test_what_no_tree_can_say_is_left_to_gae() -> None:
    changes: dict[str, Any]
    for changes, reason in (
        ({"gamma": 0.9}, "ppo.gamma is 0.9"),
        ({"opponent": "mcts:10"}, "'mcts:10'"),
        ({"game": "hex"}, "histories"),
        ({"reward": "upstream"}, "env.reward is 'upstream'"),
        ({"stages": [{"name": "a", "opponent": "mcts:10"}]}, "'mcts:10'"),
        ({"decode": "text"}, "env.decode is 'text'"),
    ):
        assert reason in str(find_trees(from_dict({"game": "kuhn_poker", "gamma": 1.0, **changes})))
    exact = {"game": "kuhn_poker", "gamma": 0.9, "advantages": "exact"}
    with pytest.raises(InvalidValueError, match=r"ppo\.advantages.* ppo\.gamma is 0\.9"):
        make_algorithm(from_dict(exact))


def test_auto_reads_as_many_states_as_four_times_the_turns_of_a_step() -> None:
    # Leduc poker has 936 information states, and 2.06 turns per game and seat under uniform play.
    for games, share, states in ((128, 1, None), (96, 1, 936), (96, 0.5, None), (4, 0.1, 94)):
        changes = ("ppo.batch_size", str(games)), ("ppo.tree_share", str(share))
        trees = find_trees(resolve("tiny", overrides=changes))
        assert not isinstance(trees, str) if states is None else f"{states} information states" in str(trees)


def test_a_reward_that_is_not_the_score_is_an_error() -> None:
    tree = tree_of("kuhn_poker")
    (episode, *_), *_ = list_episodes(tree, 0, "random")
    episode.turns[-1].reward += 0.5
    with pytest.raises(InvalidValueError, match=r"ppo\.advantages"):
        TreeValues({"": tree}, SoftmaxPolicy(tree, 0))([episode])  # type: ignore[arg-type]


def test_a_cut_episode_has_the_values_of_the_whole_game() -> None:
    # Kuhn poker against an opponent that always passes, cut after seat 0's pass with a king: 3/4 either way.
    tree = tree_of("kuhn_poker")
    info = {"seat": 0, "opponent": "first", "history": [2, 0, 0]}
    episode = Episode(0, 0, info, [Turn("", NO_MASK, 0)], truncated=True)
    values = TreeValues({"": tree}, SoftmaxPolicy(tree, 0))([episode])[0]  # type: ignore[arg-type]
    assert values.advantages == pytest.approx([0.0]) and values.values == pytest.approx([0.75])


def test_a_step_reads_what_it_played_and_its_part_of_the_tree() -> None:
    tree = tree_of("kuhn_poker")  # of 12 information states, a quarter are numbers 0 to 2, and then 3 to 5
    policy, later = SoftmaxPolicy(tree, 1), SoftmaxPolicy(tree, 2)
    episode, edges, _ = next(one for one in list_episodes(tree, 0, "self") if len(one[1]) == 2)
    make = partial(TreeValues, {"kuhn": tree}, policy)
    find, twin, whole = make(share=0.25), make(share=0.25), make()

    def values_by(finder: TreeValues) -> list[float]:
        return finder([episode])[episode.index].values.tolist()

    assert values_by(find) == values_by(whole) and values_by(find) and whole.state_dict() == {}
    twin.load_state_dict(find.state_dict())
    earlier, policy.logits = policy.logits, later.logits
    by_parts = [values_by(find), values_by(twin)]
    numbers = {3, 4, 5, *tree.state_of[tree.parents[edges]].tolist()}
    texts = {str(tree.states[number].text) for number in numbers}
    policy.logits = {text: (later.logits if text in texts else earlier)[text] for text in earlier}
    assert by_parts == [values_by(whole)] * 2
    find.load_state_dict({"kuhn": np.ones(3)})  # another game's: the tree is read whole
    assert values_by(find) == by_parts[0]
    with pytest.raises(ValueError, match="no probabilities"):
        find.load_state_dict({"kuhn": np.ones(24)})


def test_an_opponent_may_say_its_probabilities() -> None:
    class First:
        """The policy of "first", asked by prompts without rules."""

        form: ClassVar[dict[str, Any]] = {"rules": False}

        def list_probabilities(self, texts: Sequence[str], legal: Sequence[Sequence[int]]) -> Any:
            assert not any("rules" in text.lower() for text in texts)
            return [[1.0] + [0.0] * (len(actions) - 1) for actions in legal]

    register_opponent("says", FirstOpponent, find_policy=lambda argument: First())
    tree = build_tree(find_variant(game="kuhn_poker"))
    find = TreeValues({"": tree}, SoftmaxPolicy(tree, 0))  # type: ignore[arg-type]
    (one, *_), *_ = list_episodes(tree, 0, "first")
    (other, *_), *_ = list_episodes(tree, 0, "says")
    assert find([one])[0].values.tolist() == find([other])[0].values.tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"opponent": {"random": 1, "first": 2}},
        {"stages": [{"name": "a", "opponent": "first"}, {"name": "b"}], "failure_replay_prob": 0.5},
        {"opponent": "self", "learn": "one"},
        {"game": "leduc_poker", "max_turns": 2},
        {"game": None, "task_ids": [200_000_000, 200_000_017]},
    ],
)
@pytest.mark.trains
@pytest.mark.sample
def test_runs_that_trees_hold(changes: dict[str, Any]) -> None:
    """All turns of a step have advantages, whose mean over the policy that played is 0 in each state."""
    config = from_dict({"game": "kuhn_poker", "rules": False, "gamma": 1.0, "batch_size": 8,
                        "advantages": "exact", "all_actions": True, **changes})  # fmt: skip
    model = make_algorithm(config)
    episodes = model.play_step(model.env, lambda dones, learned: True)  # type: ignore[arg-type]
    buffer = model.rollout_buffer
    assert episodes and buffer.advantages is not None and buffer.weights is not None
    assert buffer.turns == sum(len(episode.turns) for episode in episodes)
    assert float(buffer.weights @ buffer.advantages) == pytest.approx(0.0, abs=1e-5)
