"""Exact advantages: what each turn's action was worth, from the whole game's tree in the place of a critic.

In these games most of a score is luck: cards, and the other seat's moves. A local game is a tree that knows
their probabilities. So with the policy's own probabilities in all information states, the value of each
action there follows exactly. A step reads them anew in the states that were played, and in a part of the
others (``ppo.tree_share``), one part after the other. The rest is as it was when it was read.

At ratio 1, and before clipping and bonuses, the mean gradient is that of the expected score: ``exact``, if a
step reads the whole tree, and ``gae`` with λ = 1 are unbiased. A share below 1 is biased by what has changed
since elsewhere, and λ < 1 by the critic's error. In self-play each seat's gradient is that of its own score
with the other's policy held fixed; the two are not the gradient of one objective.

After Burch et al. 2018 (AIVAT), Schmid et al. 2019 (arXiv:1809.03057), and Baisero and Amato 2022
(arXiv:2105.11674) on critics that know more than the policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from game_gym.exact import OPPONENTS
from game_gym.spec import Variant
from game_gym.task import decode
from game_gym.tree import Floats, GameTree, Policy, Table, build_tree
from gamespiel.agents.learning.advantages import FindValues, KnownValues
from gamespiel.agents.models import NEWEST
from gamespiel.config import Config, InvalidValueError
from gamespiel.environments.curriculum import add_stage_tasks, stage_opponents
from gamespiel.kinds import kind_of
from gamespiel.kinds.games.keys import find_form
from gamespiel.kinds.keys import names_of
from task_gym.errors import TaskGymError
from task_gym.opponents import SELF, find_opponent

if TYPE_CHECKING:  # environments need no learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.rollout import Episode

MOST_HISTORIES = 300_000
"""The most histories of a game that ``auto`` looks at, which takes seconds."""

MOST_VARIANTS = 32
"""The most games, with their parameters, whose trees a run reads."""

MOST_STATES = 4
"""``auto`` reads at most so many information states per turn that a step plays, and then learns from."""

TOLERANCE = 1e-9
"""The largest difference between an episode's reward and the tree's score of its end."""


Trees = Mapping[str, GameTree]
"""Games by ``key_of`` their variants."""

Walk = tuple[str, list[int], list[int]]
"""An episode's game, and at each of its turns the information state and the place of the action."""


class TreeValues:
    """Finds the advantages of a step's turns, as ``gamespiel.agents.learning.advantages.FindValues``.

    Args:
        trees: The games.
        policy: The policy that plays and learns.
        conversing: Whether its prompts are conversations.
        share: The part of each tree that a step reads anew, besides the states that it played.
    """

    def __init__(
        self, trees: Trees, policy: LLMPolicy, *, conversing: bool = False, share: float = 1.0
    ) -> None:
        self._trees, self._policy, self._conversing = trees, policy, conversing
        self._share = share
        self._others: dict[tuple[str, str], Table] = {}  # those that played in the last step
        self._newest: dict[str, list[list[float]]] = {}  # the learner, as it was when each state was read
        self._next: dict[str, int] = {}  # the first state of the part that is read next

    def __call__(self, episodes: Sequence[Episode]) -> Mapping[int, KnownValues]:
        """Returns each episode's advantages, in scores.

        Raises:
            InvalidValueError: an episode was not played as the tree has it.
        """
        walks = {episode.index: self._walk(episode) for episode in episodes}
        turn_states: dict[str, set[int]] = {}
        for key, states, _ in walks.values():
            turn_states.setdefault(key, set()).update(states)
        for key in turn_states:
            self._read(key, turn_states[key])
        tables: dict[tuple[str, str], Table] = {(key, NEWEST): self._newest[key] for key in turn_states}
        worth: dict[tuple[str, str, int], tuple[Floats, Floats]] = {}
        values = {}
        for episode in episodes:
            walk, other, seat = walks[episode.index], _opponent_of(episode), int(episode.info["seat"])
            key, tree = walk[0], self._trees[walk[0]]
            if (key, other) not in tables:
                known = self._others.get((key, other))
                tables[key, other] = self._tabulate(tree, other) if known is None else known
            learner, against = tables[key, NEWEST], tables[key, other]
            if (key, other, seat) not in worth:
                edges = tree.edge_probabilities([learner, against] if seat == 0 else [against, learner])
                worth[key, other, seat] = tree.information_values(edges, seat)
            values[episode.index] = _find_values(walk, tree, learner, *worth[key, other, seat])
        self._others = {place: table for place, table in tables.items() if place[1] != NEWEST}
        return values

    def state_dict(self) -> dict[str, Floats]:
        """Returns each game's probabilities one after the other, and the first state that is read next.

        There is nothing if every step reads all.
        """
        if self._share == 1:
            return {}
        rows = {
            key: np.concatenate([np.asarray(row) for row in table]) for key, table in self._newest.items()
        }
        return rows | {f"{key} next": np.array([float(self._next[key])]) for key in rows}

    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Goes on with such probabilities. A game without them, or with others' shape, is read whole.

        Raises:
            ValueError: they are no probabilities.
        """
        self._newest, self._others = {}, {}
        for key, tree in self._trees.items():
            starts, rows = tree.action_starts, state.get(key, np.zeros(0))
            if rows.shape != (starts[-1],):
                continue
            if not (rows.min() >= 0 and np.allclose(np.add.reduceat(rows, starts[:-1]), 1)):  # NaN is neither
                raise ValueError(f"{key}: the numbers of ppo.tree_share are no probabilities")
            self._newest[key] = [row.tolist() for row in np.split(rows, starts[1:-1])]
            self._next[key] = int(state[f"{key} next"][0]) % len(tree.states)

    def _read(self, key: str, turn_states: set[int]) -> None:
        """Reads the policy in the states that were played, and in the next part of all."""
        tree, count = self._trees[key], len(self._trees[key].states)
        distribution: Policy = partial(self._policy.distribution, adapters=NEWEST)
        if self._share == 1 or key not in self._newest:
            self._newest[key], self._next[key] = tree.tabulate(distribution, self._conversing), 0
            return
        first = self._next[key]
        end = first + math.ceil(self._share * count)
        self._next[key] = end % count
        # In the order of the walk, in which neighbours' prompts have the longest common beginnings.
        numbers = sorted({*turn_states, *(number % count for number in range(first, end))})
        for number, row in zip(numbers, tree.tabulate(distribution, self._conversing, numbers), strict=True):
            self._newest[key][number] = row

    def _tabulate(self, tree: GameTree, player: str) -> Table:
        """Returns the probabilities of an opponent, or of a snapshot of the policy."""
        if player in OPPONENTS:
            return tree.tabulate_fixed(OPPONENTS[player])
        if (find_policy := _policy_of(player)) is not None:
            policy = find_policy(player.partition(":")[2])
            states = build_tree(tree.variant, merge=True, **policy.form).states
            texts, legal = [str(state.text) for state in states], [state.legal for state in states]
            return [list(row) for row in policy.list_probabilities(texts, legal)]
        distribution: Policy = partial(self._policy.distribution, adapters=player)
        return tree.tabulate(distribution, self._conversing)

    def _walk(self, episode: Episode) -> Walk:
        """Returns an episode's way through its game's tree, whose turns and score must be the episode's."""
        key = next(iter(self._trees))
        if len(self._trees) > 1:
            key = key_of(decode(episode.info["task_id"]).variant)
        tree, seat = self._trees[key], int(episode.info["seat"])
        states, places, node = tree.find_turns(episode.info["history"], seat)
        score = episode.total_reward if episode.truncated else float(tree.scores[node, seat])
        if len(states) != len(episode.turns) or abs(score - episode.total_reward) > TOLERANCE:
            raise InvalidValueError(
                f"ppo.advantages = 'exact': an episode of {len(episode.turns)} turns had a reward of "
                f"{episode.total_reward:g}, and in the game's tree it has {len(states)} turns and a score of "
                f"{score:g}; allowed: games whose only reward is their score"
            )
        return key, states, places


def _opponent_of(episode: Episode) -> str:
    """Returns an episode's opponent, or the name of the adapters that played the other seat."""
    opponent = str(episode.info["opponent"])
    return str(episode.info.get("snapshot", NEWEST)) if opponent == SELF else opponent


def _find_values(
    walk: Walk, tree: GameTree, learner: Table, of_states: Floats, of_actions: Floats
) -> KnownValues:
    """Returns what an episode's turns were worth. One that was cut has the values of the whole game."""
    _, states, places = walk
    starts = tree.action_starts
    gains = [of_actions[starts[state] : starts[state + 1]] - of_states[state] for state in states]
    return KnownValues(
        advantages=np.array([row[place] for row, place in zip(gains, places, strict=True)]),
        values=of_states[np.asarray(states, dtype=np.int64)],
        chances=[np.asarray(learner[state]) for state in states],
        gains=gains,
    )


def make_find_values(config: Config, policy: LLMPolicy) -> FindValues | None:
    """Returns what finds a run's advantages; None for ``gae``.

    Raises:
        InvalidValueError: ``ppo.advantages`` is "exact", and they cannot be found.
    """
    if config.ppo.advantages == "gae":
        return None
    trees = find_trees(config)
    if not isinstance(trees, str):
        conversing = kind_of(config.env).uses_conversations(config.env)
        return TreeValues(trees, policy, conversing=conversing, share=config.ppo.tree_share)
    if config.ppo.advantages == "exact":
        raise InvalidValueError(f"ppo.advantages = 'exact': {trees}; allowed: gae, or auto")
    return None


def find_trees(config: Config) -> Trees | str:
    """Returns the trees of a run's games, or why there are none that its advantages can be read from."""
    if reason := _explain_no_tree(config):
        return reason
    try:
        env: Any = add_stage_tasks(config).env
        kind: Any = kind_of(env)
        variants = {key_of(one): one for one in kind.task_set(env).variants}
        if len(variants) > MOST_VARIANTS:
            return f"{len(variants)} games may be drawn, allowed: {MOST_VARIANTS}"
        most = MOST_HISTORIES if config.ppo.advantages == "auto" else None
        trees = {
            key: build_tree(variant, most=most, merge=True, **find_form(env))
            for key, variant in variants.items()
        }
        for name in _list_opponents(config):
            if (find_policy := _policy_of(name)) is not None:
                find_policy(name.partition(":")[2])
    except TaskGymError as error:
        return str(error)
    states = math.ceil(config.ppo.tree_share * sum(len(tree.states) for tree in trees.values()))
    turns = config.ppo.batch_size * min(count_turns(tree, config) for tree in trees.values())
    if config.ppo.advantages == "auto" and states > MOST_STATES * turns:
        return (
            f"a step would read {states:,} information states (ppo.tree_share of all), more than "
            f"{MOST_STATES} times its {turns:,.0f} turns"
        )
    return trees


def count_turns(tree: GameTree, config: Config) -> float:
    """Returns the mean number of turns that an episode adds under uniform play; self-play has both seats'."""
    reach = tree.reach(tree.uniform_edges())
    turns = float(reach[tree.movers >= 0].sum())
    both = kind_of(config.env).plays_itself(config.env) and config.self_play.learn == "both"
    return turns if both else turns / 2


def _explain_no_tree(config: Config) -> str:
    """Returns why a run has no exact advantages, before its games are looked at; "" if nothing is known."""
    env: Any = config.env
    if config.ppo.gamma != 1:
        return f"ppo.gamma is {config.ppo.gamma}, and the tree's values are undiscounted (1)"
    if env.decode == "text":
        return "env.decode is 'text', and the tree's values are those of choices among legal actions"
    if not kind_of(env).has_opponents or env.env_mode != "local":
        return "trees are those of local games"
    if env.reward != "score":
        return f"env.reward is {env.reward!r}, and the tree has scores"
    if config.curriculum.unlist_steps is not None:
        return "curriculum.unlist_steps changes the form of prompts"
    if env.answer != "id" and env.conversation:
        return f"env.answer is {env.answer!r}, and trees of conversations ask for numbers ('id')"
    if env.context_tokens is not None:
        return "env.context_tokens cuts conversations, and those of the tree are whole"
    for name in _list_opponents(config):
        if name not in (*OPPONENTS, SELF) and _policy_of(name) is None:
            known = ", ".join(map(repr, OPPONENTS))
            return f"the policy of opponent {name!r} is not known, as those of {known} and 'policy:RUN' are"
    return ""


def _list_opponents(config: Config) -> list[str]:
    return [*names_of(config.env.opponent), *stage_opponents(config)]  # type: ignore[attr-defined]


def _policy_of(opponent: str) -> Any:
    """Returns what finds the policy of a registered opponent; None if its probabilities are not known."""
    try:
        return find_opponent(opponent).find_policy
    except TaskGymError:  # it is "self", adapters, or unknown, which others say
        return None


def key_of(variant: Variant) -> str:
    """Returns the text that tells a game with its parameters from others."""
    return f"{variant.spec.name} {sorted(variant.params.items())}"
