"""The opponent ``mcts``: OpenSpiel's C++ Monte-Carlo tree search with random rollouts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyspiel

from game_gym.opponents.search_processes import ProcessBot, is_native, runs_apart
from game_gym.spec import Budget, Game, State
from task_gym.errors import OpponentError, OpponentFaultError, SearchTimeError
from task_gym.opponents import Seating, SeatView, parse_counts, register_opponent
from task_gym.processes import OFFERED

UCT_C = 1.414
"""Upstream's exploration constant."""

_MEMORY_MB = 1000
"""The size at which the tree is cut back. These budgets never reach it (a node is about 100 bytes)."""


def read_budget(seating: Seating, name: str) -> Budget:
    """Returns the budget of an opponent's argument; without one, the game's own.

    Raises:
        OpponentError: the argument is no budget, or the game cannot be searched.
    """
    check_search(seating, name)
    budget: Budget | None = parse_budget(seating.argument, name) or seating.spec.budget
    if budget is None:
        raise OpponentError(
            f"opponent: {name!r} was given for {seating.spec.name!r}, which declares no budget; "
            f"allowed: '{name}:SIMS' and '{name}:SIMSxROLLOUTS'"
        )
    return budget


def check_search(seating: Seating, name: str) -> None:
    """Raises OpponentError unless players move one at a time and are paid at the end."""
    kind = seating.game.get_type()
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        why = "whose moves are simultaneous"
    elif kind.reward_model != pyspiel.GameType.RewardModel.TERMINAL:
        why = "which pays move by move"
    else:
        return
    raise OpponentError(
        f"opponent: {name!r} was given for {seating.spec.name!r}, {why}; "
        "allowed there: 'random', 'first', 'open'"
    )


def parse_budget(argument: str, name: str) -> Budget | None:
    """Reads "SIMS" (one rollout each) or "SIMSxROLLOUTS"; returns None for "".

    Two simulations are the least: MCTS's first only looks at the root, and leaves no move to choose.

    Raises:
        OpponentError: the argument is anything else.
    """
    if not argument:
        return None
    counts = parse_counts(argument, "x", f"{name}:SIMS or {name}:SIMSxROLLOUTS", least=(2, 1))
    return Budget(counts[0], counts[1] if len(counts) > 1 else 1)


def random_where_simultaneous(name: str) -> Callable[[Game, str], str]:
    """Returns a search's stand-in: "random" in games of simultaneous moves, as upstream plays them."""

    def stand_in(game: Game, argument: str) -> str:
        parse_budget(argument, name)  # an unreadable argument is an error in every game
        sequential = game.get_type().dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
        return "" if sequential else "random"

    return stand_in


def name_search(game: Game) -> str:
    """Returns the search that plays a game with its true state, quoted for messages."""
    return "'mcts'" if is_native(game) else "'mcts-python'"


def stand_in_for_mcts(game: Game, argument: str) -> str:
    """Returns upstream's search in games written in Python, where OpenSpiel's would end the process."""
    random = random_where_simultaneous("mcts")(game, argument)
    if random or is_native(game):
        return random
    return f"mcts-python:{argument}" if argument else "mcts-python"


class MctsOpponent:
    """Searches the game from the true state.

    In games with hidden information it cheats, as upstream's search does: it searches from the cards that
    were dealt, its opponent's included. ``ismcts`` is the honest one. In games of simultaneous moves
    ``random`` plays in its place, as in upstream, and in games written in Python ``mcts-python``;
    ``info["opponent"]`` says so.

    OpenSpiel's C++ search ends its process at a state without legal actions. If a game's declaration says
    that there may be one, the search runs in a process of its own, and such an episode is a fault. So does
    every search whose caller may leave (``task_gym.caller``), as on a server.
    """

    def __init__(self, seating: Seating) -> None:
        if not is_native(seating.game):  # whoever asks for the stand-in does not come here
            raise OpponentError(
                f"opponent: 'mcts' was given for {seating.spec.name!r}, which is written in Python, where it "
                "would end the process; allowed there: 'mcts-python'"
            )
        self._game = seating.game
        self._may_crash = seating.spec.may_strand(seating.game.get_parameters())
        if self._may_crash and not OFFERED:
            raise OpponentError(
                f"opponent: 'mcts' was given for {seating.game}, where its search may end its process, and "
                f"{sys.platform} has no processes for searches; allowed there: 'mcts-python' and 'ismcts'"
            )
        self._budget = read_budget(seating, "mcts")
        self._seed = 0
        self._bot: Any = None

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root; the bot is built at its first move."""
        self._seed, self._bot = seed, None

    def act(self, view: SeatView) -> int:
        """Returns the move that the search visited most, or proved best.

        Raises:
            OpponentFaultError: the search ended its process, or took longer than its caller allows.
        """
        if self._bot is None:
            self._bot = self._make_bot(view.state)
        try:
            return int(self._bot.step(view.state))
        except SearchTimeError:
            raise
        except OpponentFaultError as error:
            name = self._game.get_type().short_name
            raise OpponentFaultError(
                f"{error}, as it does at a state of {name!r} without legal actions; allowed there: "
                "'mcts-python' and 'ismcts', which go on"
            ) from error

    def _make_bot(self, state: State) -> Any:
        settings = self._budget.simulations, self._budget.rollouts, self._seed
        if runs_apart(state, self._may_crash):
            return ProcessBot(make_bot, settings)
        return make_bot(self._game, *settings)


def make_bot(game: Game, simulations: int, rollouts: int, seed: int) -> Any:
    """Returns OpenSpiel's C++ search, seeded from a bot's root."""
    evaluator = pyspiel.RandomRolloutEvaluator(rollouts, _signed(seed + 3))
    solve = True  # proven wins and losses are not searched again, as in upstream
    return pyspiel.MCTSBot(game, evaluator, UCT_C, simulations, _MEMORY_MB, solve, _signed(seed + 4), False)


def _signed(seed: int) -> int:
    """Returns a 32-bit seed as the C++ int of the same bits."""
    return seed - 2**32 if seed >= 2**31 else seed


register_opponent(
    "mcts",
    MctsOpponent,
    usage="mcts[:SIMS[xROLLOUTS]]",
    takes_argument=True,
    stand_in=stand_in_for_mcts,
    searches=True,  # in OpenSpiel's C++, which lets Python's lock go
)
