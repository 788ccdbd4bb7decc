"""The opponent ``ismcts``: information-set Monte-Carlo tree search, blind to what its seat cannot see."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf, log, sqrt
from typing import Any

import pyspiel

from game_gym.opponents.mcts import check_search, name_search, random_where_simultaneous, read_budget
from game_gym.opponents.search_processes import choose
from game_gym.spec import Game, State
from task_gym.errors import OpponentError
from task_gym.opponents import Seating, SeatView, register_opponent

EXPLORATION = 0.7
"""Exploration, in units of the range of the returns met.

It is the paper's constant for returns in [0, 1], and upstream's 1.414 for returns in [-1, 1].
"""

DRAWN = ("bargaining", "bridge", "gin_rummy", "hearts", "kuhn_poker", "leduc_poker", "universal_poker")
"""The games for which worlds can be drawn.

OpenSpiel draws them for ten games in which players move one at a time. A draw counts if its distribution
follows only from what the seat knows. Three games are left out, because their worlds keep what the seat
cannot see: in euchre the cards that nobody was dealt and the dealer's discard, in oh_hell the cards that
nobody was dealt, and in colored_trails the offer of the other proposer.
"""

Key = Callable[[State, int], str]
"""(state, player) to a text that identifies the player's information set."""


class IsmctsOpponent:
    """Information-set Monte-Carlo tree search (Cowling, Powley & Whitehouse, 2012), and honest.

    Each simulation draws a world that its seat cannot tell from the true state, and plays on in it. All
    worlds share one tree. Its nodes are the information sets of the player to move ("multiple observer"), so
    that a plan never relies on what the seat would not know. The search uses only what the seat sees of the
    true state: its information set, its legal actions and the worlds that are consistent with them.

    OpenSpiel's ISMCTSBot would not do: it breaks ties in the order of a hash table, so that the same seed
    plays other moves each time, and an address would no longer be one game.

    Its limits: it ignores what the others' moves say about their cards, assumes that they search as it does,
    and does not bluff on purpose. With hidden cards it settles on one move, even if a mixture is best. It
    needs games for which OpenSpiel draws worlds soundly (``DRAWN``), and takes a few times as
    long as ``mcts`` with the same budget. In bridge a world takes a good part of a second, because every deal
    is solved: give it a small budget there.
    """

    def __init__(self, seating: Seating) -> None:
        check_search(seating, "ismcts")
        _check_hidden(seating)
        self._budget = read_budget(seating, "ismcts")
        self.argument = f"{self._budget.simulations}x{self._budget.rollouts}"
        self._key = _key_of(seating.game.get_type())
        self._rollouts, self._search = random.Random(), random.Random()

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root. No tree is kept between moves."""
        self._rollouts.seed(seed + 3)
        self._search.seed(seed + 4)

    def act(self, view: SeatView) -> int:
        """Returns the move that was visited most; of several, the one with the best mean return.

        Raises:
            RuntimeError: OpenSpiel drew a world that the seat could tell from the true state.
        """
        legal = view.legal_actions()
        return legal[0] if len(legal) < 2 else choose(self, view.state, view.seat)

    def choose(self, state: State, seat: int) -> int:
        """Searches in this process; see ``PythonSearch``."""
        known = self._key(state, seat)
        tree = _Tree(self._key, self._budget.rollouts, self._rollouts, self._search)
        root = tree.nodes[seat, known] = {}
        for _ in range(self._budget.simulations):
            world = draw_world(state, seat, self._search.random)
            if world.current_player() != seat or self._key(world, seat) != known:
                raise RuntimeError(f"ismcts: the world that was drawn is not one that seat {seat} may be in")
            tree.simulate(world)
        legal = state.legal_actions(seat)
        best: int = max(legal, key=lambda action: root[action].rank() if action in root else (0, 0.0))
        return best

    def generators(self) -> Any:
        """Returns where both generators stand."""
        return [generator.getstate() for generator in (self._rollouts, self._search)]

    def set_generators(self, states: Any) -> None:
        """Puts both generators there."""
        for generator, state in zip((self._rollouts, self._search), states, strict=True):
            generator.setstate(state)


class _Arm:
    """A move at a node.

    Attributes:
        visits: Times that it was chosen.
        offered: Times that it could have been chosen.
        total: The sum of the returns to its player.
    """

    __slots__ = ("offered", "total", "visits")

    def __init__(self) -> None:
        self.visits = self.offered = 0
        self.total = 0.0

    def bound(self, width: float) -> float:
        """Returns the upper confidence bound, for moves that are not on offer in every world of a node."""
        return self.total / self.visits + width * sqrt(log(self.offered) / self.visits)

    def rank(self) -> tuple[int, float]:
        """Returns the visits and the mean return."""
        return self.visits, self.total / self.visits


class _Tree:
    """One search's tree.

    Attributes:
        nodes: (player to move, what that player knows) to the moves tried there.
    """

    def __init__(self, key: Key, rollouts: int, playing: random.Random, choosing: random.Random) -> None:
        self.nodes: dict[tuple[int, str], dict[int, _Arm]] = {}
        self._key, self._rollouts = key, rollouts
        self._playing, self._choosing = playing, choosing
        self._low, self._high = inf, -inf  # of the returns met

    def simulate(self, state: State) -> None:
        """Plays down the tree to its first new node, averages rollouts from there, and credits the moves.

        ``state`` is changed.
        """
        path: list[tuple[int, _Arm]] = []
        returns: list[float] | None = None
        while returns is None:
            if state.is_terminal():
                returns = state.returns()
            elif state.is_chance_node():
                state.apply_action(_chance(state, self._choosing))
            else:
                player = state.current_player()
                place = player, self._key(state, player)
                node, legal = self.nodes.get(place), state.legal_actions()
                if node is None or not legal:  # no legal move: OpenSpiel has left the game, see _play_out
                    self.nodes.setdefault(place, {})
                    returns = self._evaluate(state)
                else:
                    action = self._choose(node, legal)
                    path.append((player, node[action]))
                    state.apply_action(action)
        self._low, self._high = min(self._low, *returns), max(self._high, *returns)
        for player, arm in path:
            arm.total += returns[player]

    def _choose(self, node: dict[int, _Arm], legal: list[int]) -> int:
        """Returns a random untried move, else the one with the greatest bound, and counts its visit."""
        untried = [action for action in legal if action not in node]
        if untried:
            action = untried[int(self._choosing.random() * len(untried))]
            node[action] = _Arm()
        else:
            width = EXPLORATION * (self._high - self._low)
            action = max(legal, key=lambda option: node[option].bound(width))
        for option in legal:
            if option in node:
                node[option].offered += 1
        # Counted on the way down: if players forget, a path can meet a node twice.
        node[action].visits += 1
        return action

    def _evaluate(self, state: State) -> list[float]:
        """Returns the mean returns of random play from here, one per seat."""
        ends = [_play_out(state.clone(), self._playing) for _ in range(self._rollouts)]
        return [sum(values) / len(ends) for values in zip(*ends, strict=True)]


def _play_out(state: State, rng: random.Random) -> list[float]:
    """Plays uniform moves, and chance by its probabilities, to the end or until nothing is legal.

    OpenSpiel's own rollouts end the process if nothing is legal before the end (gin_rummy with hands of
    eight; see ``LocalBackend``).

    Returns:
        The returns, one per seat.
    """
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(_chance(state, rng))
        else:
            legal = state.legal_actions()
            if not legal:
                break
            state.apply_action(legal[int(rng.random() * len(legal))])
    returns: list[float] = state.returns()
    return returns


def _chance(state: State, rng: random.Random) -> int:
    """Draws a chance outcome by its probability, only with ``random()``, which Python promises to keep."""
    outcomes: list[tuple[int, float]] = state.chance_outcomes()
    left = rng.random()
    for outcome, probability in outcomes:
        left -= probability
        if left < 0:
            return outcome
    return outcomes[-1][0]  # the probabilities were rounded down


def _key_of(kind: pyspiel.GameType) -> Key:
    """Returns the information state as the key, or the observation if a game has no other string."""
    if kind.provides_information_state_string:
        return lambda state, player: str(state.information_state_string(player))
    return lambda state, player: str(state.observation_string(player))


def has_worlds(game: Game) -> bool:
    """Returns whether ``draw_world`` can draw for this game's states."""
    name = game.get_type().short_name
    if name == "bargaining":  # the draw takes every chance outcome to be the first one: no early end
        return bool(game.get_parameters()["prob_end"] == 0)
    if name == "universal_poker":  # with more players the draw ends the process
        return bool(game.num_players() == 2)
    return name in DRAWN


def draw_world(state: State, seat: int, uniform: Callable[[], float]) -> State:
    """Draws a world, a state in which ``seat`` has seen the same; the rest does not depend on the true state.

    The draw ignores what the others' moves say about their cards; in hearts even that one of them could not
    follow suit. In gin_rummy the draw shuffles from the true order of the cards. Equal random numbers can
    then give different worlds for two states that the seat cannot tell apart, but the distribution is the
    same.

    Args:
        state: A state of a game for which ``has_worlds`` is true, with ``seat`` to move.
        seat: The seat whose knowledge is kept.
        uniform: Draws from [0, 1).
    """
    return state.resample_from_infostate(seat, uniform)


def _check_hidden(seating: Seating) -> None:
    """Raises OpponentError unless something is hidden in the game, and worlds can be drawn."""
    kind = seating.game.get_type()
    name = kind.short_name
    if kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION:
        raise OpponentError(
            f"opponent: 'ismcts' was given for {name!r}, where nothing is hidden; "
            f"allowed there: {name_search(seating.game)}, 'random', 'first', 'open'"
        )
    if not has_worlds(seating.game):
        raise OpponentError(
            f"opponent: 'ismcts' was given for {name!r} with {seating.game.get_parameters()!r}, where "
            "OpenSpiel does not draw what is hidden without looking at it; allowed there: "
            f"{name_search(seating.game)} (which looks), 'random', 'first', 'open'; 'ismcts' plays "
            f"{', '.join(map(repr, DRAWN))}"
        )


register_opponent(
    "ismcts",
    IsmctsOpponent,
    usage="ismcts[:SIMS[xROLLOUTS]]",
    takes_argument=True,
    stand_in=random_where_simultaneous("ismcts"),
    searches=True,  # in a process if threads share the cores
)
