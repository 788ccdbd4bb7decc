"""The backend that plays games in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from operator import index
from typing import Any

import pyspiel

from game_gym.backends.base import Ending, GameTurn
from game_gym.prompts import SeatView, render_end, render_turn
from game_gym.protocols import LAST_STREAM, PROTOCOLS
from game_gym.score import forfeit_returns, outcome, seat_scores
from game_gym.spec import State, Variant
from game_gym.task import Task
from task_gym.errors import (
    OpponentActionError,
    OpponentFaultError,
    SeedError,
    StateTextError,
    illegal_action,
    quote,
)
from task_gym.opponents import OPEN, Opponent, find_opponent, make_opponent, playing_name
from task_gym.seeding import DRAWN_LIMIT, SEED_LIMIT, Stream

CHANCE: int = int(pyspiel.PlayerId.CHANCE)
SIMULTANEOUS: int = int(pyspiel.PlayerId.SIMULTANEOUS)
TERMINAL: int = int(pyspiel.PlayerId.TERMINAL)

MakeOpponent = Callable[[str, Any, Any, int], Opponent]

_MATCHES = 64
"""Matches kept. All are dropped at this limit, and rebuilt when needed."""


@dataclass(frozen=True, slots=True)
class Match:
    """The parts that all episodes of one game against one opponent share.

    Attributes:
        variant: The game.
        opponent: The opponent as asked for.
        playing: The opponent that really plays.
        rule: Its rule for illegal actions.
        bots: One per seat; empty if every seat is the caller's.
        views: Their views, one per seat.
    """

    variant: Variant
    opponent: str
    playing: str
    rule: str
    bots: list[Opponent]
    views: list[SeatView]


def _draw(state: State, chance: Stream) -> None:
    """Makes a move of chance."""
    actions, probabilities = zip(*state.chance_outcomes(), strict=True)
    state.apply_action(actions[chance.weighted(probabilities)])


@lru_cache(maxsize=64)
def _deal(variant: Variant, seed: int) -> State:
    """Returns the state after the moves of chance with which a game begins."""
    state, chance = variant.game.new_initial_state(), Stream(seed)
    while state.current_player() == CHANCE:
        _draw(state, chance)
    return state


class LocalBackend:
    """Plays OpenSpiel games: chance, simultaneous moves and one bot per opposing seat.

    Args:
        seeding: "openenv" or "evaluate": how a seed becomes a seat, chance outcomes and bots.
        rules: Whether observations begin with the rules.
        texts: Whether turns have an observation and the actions' names; for an agent that reads only the
            state, both are empty.
        make_bot: Returns an opponent, as ``task_gym.opponents.make_opponent`` does.

    Attributes:
        state: The live ``pyspiel.State``; None before the first episode.
    """

    def __init__(
        self, seeding: str, rules: bool, *, texts: bool = True, make_bot: MakeOpponent = make_opponent
    ) -> None:
        self._protocol = PROTOCOLS[seeding]
        self._rules, self._texts, self._make_bot = rules, texts, make_bot
        self._chance = Stream()
        # Until chance draws: seeding takes longer than most moves, and most games have no chance.
        self._chance_seed: int | None = None
        self._matches: dict[tuple[Variant, str], Match] = {}
        self._match: Match
        self.state: State = None
        self._seat = 0
        self._simultaneous = False  # whether the caller's turn is at a simultaneous node
        # With open seats, the moves collected so far at a simultaneous node, by seat.
        self._chosen: list[int] = []
        # Illegal actions by opponents in this episode; None if they are not counted.
        self._illegal: int | None = None

    @property
    def playing(self) -> str:
        """The opponent of this episode, or its stand-in."""
        return self._match.playing

    @property
    def seat(self) -> int:
        """The caller's seat."""
        return self._seat

    def start(self, task: Task, seed: int, opponent: str, seat: int | None = None) -> GameTurn:
        """Begins an episode and plays up to the caller's first turn.

        Another ``seat`` than the seed's leaves the seed's chance and bots as they are: a deal can be played
        from every seat.
        """
        self._begin(task.variant, seed, opponent, seat)
        try:
            return self._next_turn()
        except (OpponentFaultError, StateTextError) as error:
            return self._stuck(str(error))

    def _begin(self, variant: Variant, seed: int, opponent: str, seat: int | None) -> None:
        self._match = match = self._matches.get((variant, opponent)) or self._new_match(variant, opponent)
        self._seat = self._protocol.seat(seed, variant.players) if seat is None else seat
        if seed >= DRAWN_LIMIT:
            self._require_streams(seed)
        self._chosen.clear()
        self._illegal = None if match.rule == "raise" else 0
        self._chance_seed = self._protocol.chance(seed)
        for seat, bot in enumerate(match.bots):
            if seat != self._seat:
                bot.restart(self._protocol.bot(seed, seat, variant.players))
        if variant.spec.slow_deal:
            self.state = _deal(variant, self._chance_seed).clone()
        else:
            self.state = variant.game.new_initial_state()
        for view in match.views:
            view.state = self.state

    def _require_streams(self, seed: int) -> None:
        """Checks that all random streams of an episode have a seed that NumPy takes.

        Raises:
            SeedError: one is above; upstream's own call fails there too.
        """
        match, protocol = self._match, self._protocol
        highest = protocol.chance(seed)
        for seat, bot in enumerate(match.bots):
            if seat != self._seat:
                last = getattr(bot, "last_stream", LAST_STREAM)
                highest = max(highest, protocol.bot(seed, seat, match.variant.players) + last)
        if highest >= SEED_LIMIT:
            raise SeedError(
                f"seed: {seed} was given, from which this protocol seeds a stream with {highest}; allowed "
                f"here: 0 … {SEED_LIMIT - 1 - (highest - seed)}"
            )

    def _require_chance(self) -> Stream:
        """Returns the chance stream of the episode."""
        if self._chance_seed is not None:
            self._chance.seed(self._chance_seed)
            self._chance_seed = None
        return self._chance

    def play(self, action: int) -> GameTurn:
        """Makes a legal move and plays up to the caller's next turn."""
        try:
            return self._play(action)
        except (OpponentFaultError, StateTextError) as error:
            return self._stuck(str(error))

    def _play(self, action: int) -> GameTurn:
        if not self._simultaneous:
            try:
                self.state.apply_action(action)
            except pyspiel.SpielError:
                return self._stuck()
        elif self._match.bots:
            if (given_up := self._apply_joint(action)) is not None:
                return given_up
        else:
            self._chosen.append(action)
        return self._next_turn()

    def forfeit(self) -> GameTurn:
        """Ends the game as a loss for the seat to move, with its least return and score 0."""
        variant, seat = self._match.variant, self._seat
        returns = forfeit_returns(self.state.returns(), seat, variant.zero_sum, variant.low)
        scores = seat_scores(variant, returns)
        scores[seat] = 0.0
        return self._end(0.0, Ending(0.0, scores, returns, "loss", self.history()))

    def cut(self) -> Ending:
        """Stops a game that could have gone on: score 0, the returns so far."""
        returns = self.state.returns()
        return Ending(0.0, [0.0] * len(returns), returns, "cut", self.history())

    def history(self) -> list[int]:
        """Returns every action so far, by chance and opponents too."""
        actions: list[int] = self.state.history()
        return actions

    def close(self) -> None:
        """Does nothing: everything is in this process."""

    def _new_match(self, variant: Variant, opponent: str) -> Match:
        seats = range(variant.players)
        bots = []
        playing = playing_name(opponent, variant.game) if variant.players > 1 else opponent
        if playing != OPEN and variant.players > 1:
            bots = [self._make_bot(playing, variant.game, variant.spec, seat) for seat in seats]
        rule = "raise" if playing == OPEN else find_opponent(playing).illegal
        views = [SeatView(variant, seat, self._rules) for seat in seats]
        match = Match(variant, opponent, playing, rule, bots, views)
        if len(self._matches) >= _MATCHES:
            self._matches.clear()
        self._matches[variant, opponent] = match
        return match

    def _next_turn(self) -> GameTurn:
        """Plays chance and the opponents until the caller is to move or the game is over."""
        state, bots, views = self.state, self._match.bots, self._match.views
        while (player := state.current_player()) != TERMINAL:
            if player == CHANCE:
                _draw(state, self._require_chance())
            elif player == SIMULTANEOUS:
                legal = state.legal_actions(self._seat) if bots else self._open_choice()
                if legal:
                    self._simultaneous = True
                    return self._turn(legal)
                if (given_up := self._apply_joint(pyspiel.INVALID_ACTION)) is not None:
                    return given_up
            elif bots and player != self._seat:
                view = views[player]
                view.asked = None
                moves = state.move_number()
                try:
                    action = bots[player].act(view)
                except Exception:
                    if state.legal_actions():
                        raise
                    return self._stuck()
                if state.move_number() != moves:
                    raise self._meddled(player)
                legal = view.asked or state.legal_actions()
                move: int | None = action
                if type(action) is not int or action not in legal:
                    if not legal:
                        return self._stuck()
                    move = self._checked(player, action, legal)
                    if move is None:
                        return self._given_up(player)
                try:
                    state.apply_action(move)
                except pyspiel.SpielError:
                    return self._stuck()
            else:
                self._seat, self._simultaneous = player, False
                legal = state.legal_actions()
                return self._turn(legal) if legal else self._stuck()
        return self._over(state.returns())

    def _meddled(self, seat: int) -> OpponentActionError:
        """Returns the error of an opponent that made moves in the game's own state."""
        match = self._match
        return OpponentActionError(
            f"opponent {match.opponent!r} in {match.variant.spec.name!r}, seat {seat}: it made moves in "
            "view.state, which is the game itself; allowed: moves in a view.state.clone()"
        )

    def _checked(self, seat: int, action: Any, legal: list[int]) -> int | None:
        """Returns an opponent's action as an int; None if it was illegal, and gives the game up.

        Raises:
            OpponentActionError: the action is illegal, and the opponent was registered with "raise".
        """
        number: int | None
        try:
            number = index(action)
        except TypeError:
            number = None
        if number in legal:
            return number
        whole = f"{action!r:.80}, which is not a whole number," if number is None else quote(number)
        if self._illegal is None:
            match = self._match
            who = f"opponent {match.opponent!r} in {match.variant.spec.name!r}, seat {seat}"
            raise OpponentActionError(illegal_action(f"{who}: action {whole} was given", legal))
        self._illegal += 1
        return None

    def _given_up(self, seat: int) -> GameTurn:
        """Returns the end if an opponent gave the game up: its least return, and score 0."""
        variant, caller_seat = self._match.variant, self._seat
        returns = forfeit_returns(self.state.returns(), seat, variant.zero_sum, variant.low)
        # In games that are not zero-sum, another seat may tie with it: -inf puts the forfeiting seat last.
        placed = [-inf if other == seat else value for other, value in enumerate(returns)]
        scores = seat_scores(variant, placed)
        scores[seat] = 0.0
        score, result = scores[caller_seat], outcome(placed, caller_seat, scores[caller_seat])
        return self._end(score, Ending(score, scores, returns, result, self.history()))

    def _stuck(self, reason: str = "") -> GameTurn:
        """Returns the end of a game that cannot go on: a fault.

        Without a reason, OpenSpiel left it without an end and without a legal move. Two cases are known. In
        gin_rummy with hands of eight, a knock with three melds of three leaves no card to discard. In oware,
        OpenSpiel refuses the 1001st move.
        """
        if not reason:
            name = self._match.variant.spec.name
            reason = (
                f"OpenSpiel left {name!r} without a legal action for player {self.state.current_player()}"
            )
        scores, returns = [0.0] * self._match.variant.players, self.state.returns()
        return self._end(0.0, Ending(None, scores, returns, "fault", self.history(), reason))

    def _end(self, reward: float, ending: Ending) -> GameTurn:
        """Returns the closing turn of a game that OpenSpiel did not end."""
        text = render_end(self._match.variant, self._seat, ending.returns, ending.score, ending.result)
        return GameTurn(self._seat, text, [], [], reward, ending, self._illegal)

    def _turn(self, legal: list[int]) -> GameTurn:
        variant, seat = self._match.variant, self._seat
        text, names = "", list[str]()
        if self._texts:
            text, names = render_turn(variant, self.state, seat, self._rules, legal)
        reward = self.state.rewards()[seat] if variant.pays_moves else 0.0
        return GameTurn(seat, text, legal, names, reward, None, self._illegal)

    def _open_choice(self) -> list[int]:
        """Returns the legal actions of the next seat that has a choice; none if all have chosen."""
        while len(self._chosen) < self._match.variant.players:
            legal: list[int] = self.state.legal_actions(len(self._chosen))
            if legal:
                self._seat = len(self._chosen)
                return legal
            self._chosen.append(pyspiel.INVALID_ACTION)
        return []

    def _apply_joint(self, action: int) -> GameTurn | None:
        """Makes a simultaneous move: the caller's action joined with each opponent's, in seat order.

        Returns:
            The end if an opponent gave the game up, else None.
        """
        state = self.state
        joint = self._chosen.copy()
        self._chosen.clear()
        for seat, bot in enumerate(self._match.bots):
            if seat == self._seat:
                joint.append(action)
            elif legal := state.legal_actions(seat):
                moves, chosen = state.move_number(), bot.act(self._match.views[seat])
                if state.move_number() != moves:
                    raise self._meddled(seat)
                move = self._checked(seat, chosen, legal)
                if move is None:
                    return self._given_up(seat)
                joint.append(move)
            else:
                joint.append(pyspiel.INVALID_ACTION)
        state.apply_actions(joint)
        return None

    def _over(self, returns: Sequence[float]) -> GameTurn:
        """Returns the end of a game that OpenSpiel ended."""
        score, scores, result, text = summarize_end(self._match.variant, self._seat, tuple(returns))
        ending = Ending(score, scores.copy(), list(returns), result, self.history())
        return GameTurn(self._seat, text, [], [], score, ending, self._illegal)


@lru_cache(maxsize=4096)
def summarize_end(
    variant: Variant, seat: int, returns: tuple[float, ...]
) -> tuple[float, list[float], str, str]:
    """Returns a seat's score, all scores, the result and the closing text.

    Games end in few ways, so these are kept.
    """
    scores = seat_scores(variant, returns)
    score = scores[seat]
    result = outcome(returns, seat, score)
    return score, scores, result, render_end(variant, seat, returns, score, result)
