"""``ismcts``: information-set Monte-Carlo tree search, which never reads what its seat cannot see."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf, log, sqrt

import pyspiel

from game_gym.opponents.mcts import check_search, random_where_simultaneous, read_budget
from game_gym.spec import State
from game_gym.worlds import DRAWN, draw_world, has_worlds
from task_gym.errors import OpponentError
from task_gym.opponents import Seating, SeatView, register_opponent

#: Exploration, in units of the range of the returns met: the paper's constant for returns in [0, 1], and
#: upstream's 1.414 for returns in [-1, 1].
EXPLORATION = 0.7

#: (state, player) to what tells the player's information sets apart.
Key = Callable[[State, int], str]


class IsmctsOpponent:
    """Information-set Monte-Carlo tree search (Cowling, Powley & Whitehouse, 2012), and honest.

    Each simulation draws a world that its seat cannot tell from the true state and plays on in that one. All
    worlds share one tree, whose nodes are the information sets of whoever is to move there ("multiple
    observer"), so that a plan never rests on what the seat would not know. Of the true state only what the
    seat sees is used: its information set, its legal actions and, by drawing, what is consistent with them.

    It is not OpenSpiel's ISMCTSBot, which breaks ties in the order of a hash table: with one seed that one
    plays other moves each time, and an address would no longer be one game.

    Its limits: it takes nothing that others did for evidence of what they hold, supposes that they search as
    it does, and does not bluff on purpose; with hidden cards it settles on one move where a mixture is best.
    It plays where OpenSpiel draws worlds soundly (:mod:`game_gym.worlds`), and takes a few times as long as
    ``mcts`` with the same budget. In bridge a world takes a good part of a second, as every deal is solved:
    give it a small budget there.
    """

    def __init__(self, seating: Seating) -> None:
        check_search(seating, "ismcts")
        _check_hidden(seating)
        self._budget = read_budget(seating, "ismcts")
        self._key = _key_of(seating.game.get_type())
        self._rollouts, self._search = random.Random(), random.Random()

    def restart(self, seed: int) -> None:
        """Begin an episode from a bot root. No tree is kept between moves."""
        self._rollouts.seed(seed + 3)
        self._search.seed(seed + 4)

    def act(self, view: SeatView) -> int:
        """The move that was visited most; of several, the one with the best mean return.

        Raises:
            RuntimeError: OpenSpiel drew a world that the seat could tell from the true state.
        """
        legal = view.legal_actions()
        if len(legal) < 2:
            return legal[0]
        seat, known = view.seat, self._key(view.state, view.seat)
        tree = _Tree(self._key, self._budget.rollouts, self._rollouts, self._search)
        root = tree.nodes[seat, known] = {}
        for _ in range(self._budget.simulations):
            world = draw_world(view.state, seat, self._search.random)
            if world.current_player() != seat or self._key(world, seat) != known:
                raise RuntimeError(f"ismcts: the world that was drawn is not one that seat {seat} may be in")
            tree.simulate(world)
        return max(legal, key=lambda action: root[action].rank() if action in root else (0, 0.0))


class _Arm:
    """A move at a node: how often it was chosen and could have been, and what it returned to its player."""

    __slots__ = ("offered", "total", "visits")

    def __init__(self) -> None:
        self.visits = self.offered = 0
        self.total = 0.0

    def bound(self, width: float) -> float:
        """Upper confidence bound, for moves that are not on offer in every world of a node."""
        return self.total / self.visits + width * sqrt(log(self.offered) / self.visits)

    def rank(self) -> tuple[int, float]:
        """Visits, then the mean return."""
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
        """Play down the tree to its first new node, average rollouts from there, and credit the moves made.

        ``state`` is used up.
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
                if node is None or not legal:  # without a move OpenSpiel has left the game: see _play_out
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
        """A move not yet tried, any of them, else the one with the greatest bound; its visit is counted."""
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
        # Counted on the way down: where players forget, a node can be met twice on one path.
        node[action].visits += 1
        return action

    def _evaluate(self, state: State) -> list[float]:
        """Mean returns of random play from here, one a seat."""
        ends = [_play_out(state.clone(), self._playing) for _ in range(self._rollouts)]
        return [sum(values) / len(ends) for values in zip(*ends, strict=True)]


def _play_out(state: State, rng: random.Random) -> list[float]:
    """Uniform moves, and chance by its probabilities, to the end or to where OpenSpiel knows no move.

    OpenSpiel's own rollouts end the process there (gin_rummy with hands of eight; see ``LocalBackend``).
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
    """A chance outcome by its probability; ``random()`` is what Python promises never to change."""
    outcomes: list[tuple[int, float]] = state.chance_outcomes()
    left = rng.random()
    for outcome, probability in outcomes:
        left -= probability
        if left < 0:
            return outcome
    return outcomes[-1][0]  # the probabilities were rounded down


def _key_of(kind: pyspiel.GameType) -> Key:
    """The information state; the observation where a game has no other string, as gin_rummy."""
    if kind.provides_information_state_string:
        return lambda state, player: str(state.information_state_string(player))
    return lambda state, player: str(state.observation_string(player))


def _check_hidden(seating: Seating) -> None:
    """Raise unless something is hidden in the game, and worlds can be drawn."""
    name, information = seating.spec.name, seating.game.get_type().information
    if information == pyspiel.GameType.Information.PERFECT_INFORMATION:
        raise OpponentError(
            f"opponent: 'ismcts' was given for {name!r}, where nothing is hidden; "
            "allowed there: 'mcts', 'random', 'first', 'open'"
        )
    if not has_worlds(seating.game):
        raise OpponentError(
            f"opponent: 'ismcts' was given for {name!r} with {seating.game.get_parameters()!r}, where "
            "OpenSpiel does not draw what is hidden without looking at it; allowed there: 'mcts' (which "
            f"looks), 'random', 'first', 'open'; 'ismcts' plays {', '.join(map(repr, DRAWN))}"
        )


register_opponent(
    "ismcts",
    IsmctsOpponent,
    usage="ismcts[:SIMS[xROLLOUTS]]",
    takes_argument=True,
    stand_in=random_where_simultaneous("ismcts"),
)
