"""Games played in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyspiel

from game_gym.backends.base import Ending, Turn
from game_gym.prompts import SeatView, render_end, render_turn
from game_gym.protocols import PROTOCOLS
from game_gym.score import forfeit_returns, outcome, seat_score
from game_gym.spec import State, Variant
from game_gym.task import Task
from task_gym.opponents import OPEN, Opponent, make_opponent, playing_name
from task_gym.seeding import Stream

CHANCE: int = int(pyspiel.PlayerId.CHANCE)
SIMULTANEOUS: int = int(pyspiel.PlayerId.SIMULTANEOUS)
TERMINAL: int = int(pyspiel.PlayerId.TERMINAL)


#: Tables kept; an environment that draws from more games and opponents than this builds some again.
_TABLES = 64


@dataclass(frozen=True, slots=True)
class _Table:
    """What lasts across the episodes of one game against one opponent.

    ``bots`` has one entry a seat; it is empty where every seat is the caller's. ``views`` are what they see.
    """

    variant: Variant
    bots: list[Opponent]
    views: list[SeatView]


class LocalBackend:
    """Plays OpenSpiel games: chance, simultaneous moves and one bot an opposing seat.

    Args:
        seeding: "openenv" or "evaluate": how a seed becomes a seat, chance outcomes and bots.
        rules: Whether observations begin with the rules.
    """

    def __init__(self, seeding: str, rules: bool) -> None:
        self._protocol = PROTOCOLS[seeding]
        self._rules = rules
        self._chance = Stream()
        self._tables: dict[tuple[Variant, str], _Table] = {}
        self._table: _Table
        #: The live ``pyspiel.State``; None before the first episode.
        self.state: State = None
        self._seat = 0
        #: Moves already chosen at a simultaneous node whose seats are all the caller's.
        self._chosen: list[int] = []

    def start(self, task: Task, seed: int, opponent: str) -> Turn:
        """Begin an episode and play up to the caller's first turn."""
        variant = task.variant
        self._table = table = self._tables.get((variant, opponent)) or self._sit(variant, opponent)
        self.state = state = variant.game.new_initial_state()
        self._seat = self._protocol.seat(seed, variant.players)
        self._chosen.clear()
        self._chance.seed(self._protocol.chance(seed))
        for view in table.views:
            view.state = state
        for seat, bot in enumerate(table.bots):
            if seat != self._seat:
                bot.restart(self._protocol.bot(seed, seat, variant.players))
        return self._next_turn()

    def play(self, action: int) -> Turn:
        """Make a legal move and play up to the caller's next turn."""
        if self.state.current_player() != SIMULTANEOUS:
            if not self._apply(action):
                return self._stuck()
        elif self._table.bots:
            self._apply_joint(action)
        else:
            self._chosen.append(action)
        return self._next_turn()

    def forfeit(self) -> Turn:
        """Give the game up for the seat to move: its least return and score 0, a loss."""
        variant, seat = self._table.variant, self._seat
        returns = forfeit_returns(self.state.returns(), seat, variant.zero_sum, variant.low)
        scores = _scores(variant, returns)
        scores[seat] = 0.0
        text = render_end(variant, seat, returns, 0.0, "loss")
        return Turn(seat, text, [], [], 0.0, Ending(0.0, scores, returns, "loss", self.state.history()))

    def cut(self) -> Ending:
        """Stop a game that could have gone on: score 0, the returns so far."""
        returns = self.state.returns()
        return Ending(0.0, [0.0] * len(returns), returns, "cut", self.state.history())

    def _sit(self, variant: Variant, opponent: str) -> _Table:
        seats = range(variant.players)
        bots = []
        if opponent != OPEN and variant.players > 1:
            playing = playing_name(opponent, variant.game)
            bots = [make_opponent(playing, variant.game, variant.spec, seat) for seat in seats]
        table = _Table(variant, bots, [SeatView(variant, seat, self._rules) for seat in seats])
        if len(self._tables) >= _TABLES:
            self._tables.clear()
        self._tables[variant, opponent] = table
        return table

    def _next_turn(self) -> Turn:
        """Play chance and the opponents until the caller is to move or the game is over."""
        state, bots, views = self.state, self._table.bots, self._table.views
        while (player := state.current_player()) != TERMINAL:
            if player == CHANCE:
                actions, probabilities = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(actions[self._chance.weighted(probabilities)])
            elif player == SIMULTANEOUS:
                legal = state.legal_actions(self._seat) if bots else self._open_choice()
                if legal:
                    return self._turn(legal)
                self._apply_joint(pyspiel.INVALID_ACTION)
            elif bots and player != self._seat:
                try:
                    action = bots[player].act(views[player])
                except Exception:
                    if state.legal_actions():
                        raise
                    return self._stuck()
                if not self._apply(action):
                    return self._stuck()
            else:
                self._seat = player
                legal = state.legal_actions()
                return self._turn(legal) if legal else self._stuck()
        return self._over()

    def _apply(self, action: int) -> bool:
        """Make a legal move; whether OpenSpiel took it."""
        try:
            self.state.apply_action(action)
        except pyspiel.SpielError:
            return False
        return True

    def _stuck(self) -> Turn:
        """A game that OpenSpiel left without an end, and without a legal move that it takes: a fault.

        Known of gin_rummy with hands of eight, where a knock with three melds of three leaves no card to
        discard, and of oware, which refuses its 1001st move.
        """
        variant, state = self._table.variant, self.state
        returns = state.returns()
        text = render_end(variant, self._seat, returns, None, "fault")
        ending = Ending(None, [0.0] * variant.players, returns, "fault", state.history())
        return Turn(self._seat, text, [], [], 0.0, ending)

    def _turn(self, legal: list[int]) -> Turn:
        variant, seat = self._table.variant, self._seat
        text, names = render_turn(variant, self.state, seat, self._rules, legal)
        reward = self.state.rewards()[seat] if variant.pays_moves else 0.0
        return Turn(seat, text, legal, names, reward, None)

    def _open_choice(self) -> list[int]:
        """The choice of the next seat that has one, or none where all have chosen; others are passed over."""
        while len(self._chosen) < self._table.variant.players:
            legal: list[int] = self.state.legal_actions(len(self._chosen))
            if legal:
                self._seat = len(self._chosen)
                return legal
            self._chosen.append(pyspiel.INVALID_ACTION)
        return []

    def _apply_joint(self, action: int) -> None:
        """Make a simultaneous move: what the caller chose, and the opponents' draws after it."""
        state = self.state
        joint = self._chosen.copy()
        self._chosen.clear()
        for seat, bot in enumerate(self._table.bots):
            if seat == self._seat:
                joint.append(action)
            else:
                some = state.legal_actions(seat)
                joint.append(bot.act(self._table.views[seat]) if some else pyspiel.INVALID_ACTION)
        state.apply_actions(joint)

    def _over(self) -> Turn:
        returns = self.state.returns()
        score, scores, result, text = _outcome(self._table.variant, self._seat, tuple(returns))
        ending = Ending(score, scores.copy(), returns, result, self.state.history())
        return Turn(self._seat, text, [], [], score, ending)


@lru_cache(maxsize=4096)
def _outcome(variant: Variant, seat: int, returns: tuple[float, ...]) -> tuple[float, list[float], str, str]:
    """Score of a seat, scores of all, result and closing text; games end in few ways, so these are kept."""
    scores = _scores(variant, returns)
    own = scores[seat]
    result = outcome(returns, seat, own)
    return own, scores, result, render_end(variant, seat, returns, own, result)


def _scores(variant: Variant, returns: Sequence[float]) -> list[float]:
    return [
        seat_score(returns, seat, variant.zero_sum, variant.low, variant.high)
        for seat in range(variant.players)
    ]
