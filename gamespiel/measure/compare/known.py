"""The part of a comparison that needs no sampling, and the estimators for the part that does.

An agent is exact in a game if the game is enumerated within seconds, its opponent is a fixed policy, and
the agent's own probabilities are known. If one of these is missing, the game is played, and what is known
takes luck out of the scores (``game_gym.aivat``). Which of the two it is follows from the question alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gamespiel.exact_comparison import AGENTS
from gamespiel.kinds import kind_of
from gamespiel.kinds.kind import Deal
from gamespiel.measure.agents import Agent
from gamespiel.measure.compare.options import CompareOptions
from gamespiel.measure.play import is_open
from gamespiel.tracks import MASKED
from task_gym.errors import TaskGymError

if TYPE_CHECKING:
    from game_gym.aivat import Estimator
    from game_gym.exact import Policy
    from game_gym.tree import GameTree, Table
    from gamespiel.agents.policy import LLMPolicy

BLIND = r"(ismcts|openai)(:.*)?"
"""Opponents and baselines that see what their seat sees; other searches read the true state."""


@dataclass(frozen=True)
class ExactCell:
    """An agent's exact values in a game against the opponent.

    Attributes:
        scores: Its expected score from each seat.
        best: A best response's expected returns from each seat.
        values: Its own expected returns.
        share: The share of best response.
        exploitability: Half of what best responses to it gain.
    """

    scores: tuple[float, float]
    best: tuple[float, float]
    values: tuple[float, float]
    share: float
    exploitability: float

    @property
    def score(self) -> float:
        """The mean over the seats."""
        return sum(self.scores) / 2

    def to_dict(self) -> dict[str, Any]:
        """Returns the values as plain data."""
        return asdict(self) | {"score": self.score}


@dataclass(frozen=True)
class Knowledge:
    """The facts about an agent in a game that are known before anything is played.

    Attributes:
        cell: Its exact values; None if it has to play.
        estimators: The estimators of its score by seat; None if the score itself counts.
        reason: Why there is no exact value; "" if there is one.
    """

    cell: ExactCell | None = None
    estimators: tuple[Estimator, Estimator] | None = None
    reason: str = ""


Trees = dict[str, "GameTree | str"]
"""Games as arrays by configuration; in the place of one that there is not, why."""


def find_knowledge(
    agent: Agent, deals: Sequence[Deal], options: CompareOptions, policy: LLMPolicy | None, trees: Trees
) -> Knowledge:
    """Returns what is known of an agent in a game.

    Args:
        agent: The agent.
        deals: The game's deals.
        options: The options.
        policy: The agent's policy, if it is a checkpoint.
        trees: Keeps the games, which agents share that are asked alike.
    """
    if len({deal.address.task.variant for deal in deals}) > 1:
        return Knowledge(reason="the deals have several sets of parameters")
    kind = kind_of(agent.config.env)
    env: Any = kind.choose_deal(agent.config.env, deals[0])
    key = repr(env)
    if key not in trees:
        try:
            trees[key] = kind.game_tree(env)
        except TaskGymError as error:
            trees[key] = str(error)
    tree = trees[key]
    if isinstance(tree, str):
        return Knowledge(reason=tree)
    odds = _find_policy(agent, options, policy)
    known = env.opponent if isinstance(env.opponent, str) else ""
    mine, theirs = (
        None if one is None else tree.tabulate(one, bool(env.conversation))
        for one in (odds, AGENTS.get(known))
    )
    if mine is not None and theirs is not None:
        return Knowledge(_solve(tree, mine, theirs, known))
    missing = (
        "its probabilities are not known" if odds is None else f"those of {known or 'the mixture'!r} are not"
    )
    sees = agent.checkpoint is not None or re.fullmatch(BLIND, agent.name) is not None
    if mine is not None:
        sees = re.fullmatch(BLIND, known) is not None
    return Knowledge(None, _make_estimators(tree, mine, theirs, blind=sees), missing)


def _find_policy(agent: Agent, options: CompareOptions, policy: LLMPolicy | None) -> Policy | None:
    """Returns an agent's policy as a function, if its probabilities are known."""
    from game_gym import exact

    if policy is None:
        return AGENTS.get(agent.name)
    if options.track(agent) != MASKED:
        return None
    distribution: Policy = partial(policy.distribution)
    return exact.greedy(distribution) if options.greedy else distribution


def _solve(tree: GameTree, table: Table, other: Table, opponent: str) -> ExactCell:
    from game_gym import exact

    values = exact.evaluate_table(tree, table, opponent)
    first, second = (
        float(tree.back_up(tree.edge_probabilities(tables), seat)[0])
        for seat, tables in enumerate(([table, other], [other, table]))
    )
    return ExactCell((first, second), values.best, values.values, values.share, values.exploitability)


def _make_estimators(
    tree: GameTree, mine: Table | None, theirs: Table | None, *, blind: bool
) -> tuple[Estimator, Estimator]:
    from game_gym.aivat import make_estimator

    blind |= is_open(tree.variant.game)
    first = make_estimator(tree, 0, [mine, theirs], blind=blind)
    return first, make_estimator(tree, 1, [theirs, mine], blind=blind)
