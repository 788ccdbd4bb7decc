"""Exact advantages: what each turn's action was worth, from the whole game's tree in the place of a critic.

In these games most of a score is luck: cards, and the other seat's moves. A local game is a tree that knows
their probabilities. So with the policy's own probabilities in all information states, which are read once a
step, the value of each action there follows exactly.

At ratio 1, and before clipping and bonuses, the mean gradient is that of the expected score: ``exact`` and
``gae`` with λ = 1 are unbiased, and λ < 1 is biased by the critic's error. In self-play each seat's gradient
is that of its own score with the other's policy held fixed; the two are not the gradient of one objective.

After Burch et al. 2018 (AIVAT), Schmid et al. 2019 (arXiv:1809.03057), and Baisero and Amato 2022
(arXiv:2105.11674) on critics that know more than the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from game_gym.exact import OPPONENTS
from game_gym.tree import Floats, GameTree
from gamespiel.agents.learning.advantages import FindValues, KnownValues
from gamespiel.config import Config, InvalidValueError
from gamespiel.kinds import declaration_of, kind_of
from task_gym.errors import TaskGymError
from task_gym.opponents import SELF

if TYPE_CHECKING:  # environments need no learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.rollout import Episode

MOST_STATES = 2
"""``auto`` reads a tree of at most so many information states per turn that a step plays."""

TOLERANCE = 1e-9
"""The largest difference between an episode's reward and the tree's score of its end."""


class TreeValues:
    """Finds the advantages of a step's turns, as ``gamespiel.agents.learning.advantages.FindValues``.

    Args:
        tree: The game.
        policy: The policy that plays and learns.
        conversing: Whether its prompts are conversations.
    """

    def __init__(self, tree: GameTree, policy: LLMPolicy, *, conversing: bool = False) -> None:
        self._tree, self._policy, self._conversing = tree, policy, conversing
        self._starts = tree.action_starts

    def __call__(self, episodes: Sequence[Episode]) -> Mapping[int, KnownValues]:
        """Returns each episode's advantages, in scores.

        Raises:
            InvalidValueError: an episode was not played as the tree has it.
        """
        learner = self._tree.tabulate(self._policy.distribution, self._conversing)
        known: dict[tuple[int, str], tuple[Floats, Floats]] = {}
        values = {}
        for episode in episodes:
            seat, opponent = int(episode.info["seat"]), str(episode.info["opponent"])
            if (seat, opponent) not in known:
                other = learner if opponent == SELF else self._play_as(opponent)
                edges = self._tree.edge_probabilities([learner, other] if seat == 0 else [other, learner])
                known[seat, opponent] = self._tree.information_values(edges, seat)
            values[episode.index] = self._find(episode, seat, learner, *known[seat, opponent])
        return values

    def _play_as(self, opponent: str) -> list[list[float]]:
        return [OPPONENTS[opponent](len(state.legal)) for state in self._tree.states]

    def _find(
        self, episode: Episode, seat: int, learner: list[list[float]], of_states: Floats, of_actions: Floats
    ) -> KnownValues:
        states, places, node = [], [], 0
        for action in episode.info["history"]:
            child = self._tree.find_child(node, action)
            if self._tree.movers[node] == seat:
                states.append(int(self._tree.state_of[node]))
                places.append(int(self._tree.places[child]))
            node = child
        score = float(self._tree.scores[node, seat])
        if len(states) != len(episode.turns) or abs(score - episode.total_reward) > TOLERANCE:
            raise InvalidValueError(
                f"ppo.advantages = 'exact': an episode of {len(episode.turns)} turns had a reward of "
                f"{episode.total_reward:g}, and in the game's tree it has {len(states)} turns and a score of "
                f"{score:g}; allowed: games whose only reward is their score"
            )
        gains = [
            of_actions[self._starts[state] : self._starts[state + 1]] - of_states[state] for state in states
        ]
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
    tree = find_tree(config)
    if isinstance(tree, GameTree):
        return TreeValues(tree, policy, conversing=declaration_of(config.env).uses_conversations(config.env))
    if config.ppo.advantages == "exact":
        raise InvalidValueError(f"ppo.advantages = 'exact': {tree}; allowed: gae, or auto")
    return None


def find_tree(config: Config) -> GameTree | str:
    """Returns the tree of a run's game, or why there is none that its advantages can be read from."""
    if reason := _explain_no_tree(config):
        return reason
    try:
        tree = kind_of(config.env).player.game_tree(config.env)
    except TaskGymError as error:
        return str(error)
    turns = config.ppo.batch_size * count_turns(tree, config)
    if config.ppo.advantages == "auto" and len(tree.states) > MOST_STATES * turns:
        return (
            f"the game has {len(tree.states):,} information states, more than {MOST_STATES} times the "
            f"{turns:,.0f} turns of a step"
        )
    return tree


def count_turns(tree: GameTree, config: Config) -> float:
    """Returns the mean number of turns that an episode adds under uniform play; self-play has both seats'."""
    reach = tree.reach(tree.uniform_edges())
    turns = float(reach[tree.movers >= 0].sum())
    return turns if declaration_of(config.env).plays_itself(config.env) else turns / 2


def _explain_no_tree(config: Config) -> str:
    """Returns why a run has no exact advantages, before its game is looked at; "" if nothing is known."""
    env = config.env
    if config.ppo.gamma != 1:
        return f"ppo.gamma is {config.ppo.gamma}, and the tree's values are undiscounted (1)"
    if env.decode == "text":
        return "env.decode is 'text', and the tree's values are those of choices among legal actions"
    if not declaration_of(env).has_opponents or env.env_mode != "local":
        return "trees are those of local games"
    reward, opponent = getattr(env, "reward", "score"), getattr(env, "opponent", None)
    if reward != "score":
        return f"env.reward is {reward!r}, and the tree has scores"
    if config.curriculum.stages or config.curriculum.unlist_steps is not None:
        return "a curriculum changes what is played"
    if opponent == SELF and config.self_play.learn != "both":
        return "self_play.learn is 'one', against snapshots"
    for name in [opponent] if isinstance(opponent, str) else list(opponent or ()):
        if name not in (*OPPONENTS, SELF):
            known = " and ".join(map(repr, OPPONENTS))
            return f"the policy of opponent {name!r} is not known, as that of {known} is"
    return ""
