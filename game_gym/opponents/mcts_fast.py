"""The opponent ``mcts-fast``: the search of ``mcts`` with compiled rules, in a small part of its time.

It is for training. It is the same algorithm with the same budget, so it plays as well;
``benchmarks/results/matches.json`` has the games of one against the other. Its random numbers are others, and
so are its moves: scores that are compared with others' are those against ``mcts``.
"""

from __future__ import annotations

import os
import tempfile
from pickle import UnpicklingError
from typing import Any

from game_gym.opponents.mcts import UCT_C, check_search, name_search, read_budget
from task_gym.errors import OpponentError
from task_gym.opponents import Seating, SeatView, register_opponent

NAME = "mcts-fast"

GAMES = ("backgammon", "checkers", "chess", "gin_rummy", "othello", "quoridor")
"""The games whose rules are compiled, each by a module of ``game_gym.opponents.fast``."""


class FastMctsOpponent:
    """Searches the game from the true state, as ``mcts`` does.

    Every move is a search of its own, addressed by the seed and the number of moves before it. It keeps
    nothing, and its tree is gone when it has moved.

    Raises:
        OpponentError: the game's rules are not compiled, Numba is not installed, the game cannot be searched,
            or the argument is no budget.
    """

    def __init__(self, seating: Seating) -> None:
        check_search(seating, NAME)
        name = seating.spec.name
        if name not in GAMES:
            raise OpponentError(
                f"opponent: {NAME!r} was given for {name!r}, whose rules are not compiled; allowed: "
                f"{name_search(seating.game)} there, and {NAME!r} in {', '.join(GAMES)}"
            )
        self._rules, self._search = _load(name)
        try:
            self._rules.read(seating.game.new_initial_state())
        except ValueError as error:
            raise OpponentError(f"opponent: {NAME!r} was given for {name!r}: {error}") from error
        self._budget = read_budget(seating, NAME)
        self._seed = 0

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root."""
        self._seed = seed

    def act(self, view: SeatView) -> int:
        """Returns the move that the search visited most, or proved best."""
        from game_gym.opponents.fast.rules import make_noise

        start, budget = self._rules.read(view.state), self._budget
        try:
            noise = make_noise(self._seed, view.state.move_number())
            return int(self._search(start, budget.simulations, budget.rollouts, UCT_C, noise))
        except (UnpicklingError, EOFError) as error:  # the first call reads what was compiled earlier
            folder = self._search.stats.cache_path
            raise OpponentError(
                f"opponent: {NAME!r} was given, and a file of Numba's cache in {folder!r} cannot be read "
                f"({error}), as after a full disk: remove that folder, and the next search compiles again"
            ) from error


def _load(name: str) -> Any:
    """Returns a game's compiled rules, and the search in them."""
    if (disabled := os.environ.get("NUMBA_DISABLE_JIT", "0")) not in ("", "0"):
        raise OpponentError(
            f"opponent: {NAME!r} was given, and NUMBA_DISABLE_JIT={disabled} lets Numba compile nothing; "
            "allowed: 0, or without the variable"
        )
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        try:  # Numba itself would take another folder without a word
            os.makedirs(folder, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise OpponentError(
                f"opponent: {NAME!r} was given, and NUMBA_CACHE_DIR={folder!r} takes no files ({error}); "
                "allowed: a folder that can be written"
            ) from error
    try:
        from game_gym.opponents.fast.tree import load_search

        return load_search(name)
    except ImportError as error:
        raise OpponentError(
            f"opponent: {NAME!r} was given, which needs Numba ({error}); pip install 'gamespiel[fast]'"
        ) from error
    except RuntimeError as error:
        raise OpponentError(
            f"opponent: {NAME!r} was given, and Numba has no folder for what it compiles ({error}); "
            "NUMBA_CACHE_DIR names one"
        ) from error


register_opponent(
    NAME,
    FastMctsOpponent,
    usage=f"{NAME}[:SIMS[xROLLOUTS]]",
    takes_argument=True,
    searches=True,  # compiled code lets Python's lock go
)
