"""The opponent ``mcts-fast``: the search of ``mcts`` with compiled rules, in a small part of its time.

It is for training. It is the same algorithm with the same budget, so it plays as well;
``benchmarks/results/matches.json`` has the games of one against the other. Its random numbers are others, and
so are its moves: scores that are compared with others' are those against ``mcts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
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
        OpponentError: the game's rules are not compiled, Numba is not installed or has no cache, the game
            cannot be searched, or the argument is no budget.
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
        with _name_cache(self._search):
            self._rules.read(seating.game.new_initial_state())
        self._budget = read_budget(seating, NAME)
        self._seed = 0

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root."""
        self._seed = seed

    def act(self, view: SeatView) -> int:
        """Returns the move that the search visited most, or proved best."""
        from game_gym.opponents.fast.rules import make_noise

        budget = self._budget
        with _name_cache(self._search):
            start, noise = self._rules.read(view.state), make_noise(self._seed, view.state.move_number())
            return int(self._search(start, budget.simulations, budget.rollouts, UCT_C, noise))


@contextmanager
def _name_cache(search: Any) -> Iterator[None]:
    """Names Numba's cache in an error of reading or writing it, as the first call of a function does."""
    try:
        yield
    except Exception as error:  # what is damaged is unpickled into errors of every kind
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        if not any(frame.f_globals.get("__name__") == "numba.core.caching" for frame in frames):
            raise
        raise OpponentError(
            f"opponent: {NAME!r} was given, and Numba's cache in {search.stats.cache_path!r} cannot be read "
            f"or written ({type(error).__name__}: {error}), as after a full disk: make room and remove that "
            "folder, and the next search compiles again"
        ) from error


def _load(name: str) -> Any:
    """Returns a game's compiled rules, and the search in them."""
    from game_gym.opponents import fast

    try:
        from numba import config
        from numba.core.caching import CacheImpl
    except ImportError as error:
        raise OpponentError(
            f"opponent: {NAME!r} was given, which needs Numba ({error}); pip install 'gamespiel[fast]'"
        ) from error
    config.reload_config()  # the environment may have changed since Numba was imported
    if config.DISABLE_JIT:
        raise OpponentError(
            f"opponent: {NAME!r} was given, and NUMBA_DISABLE_JIT={config.DISABLE_JIT}, or disable_jit in "
            ".numba_config.yaml, lets Numba compile nothing; allowed: 0, or without it"
        )
    if config.CACHE_DIR:
        try:  # where this fails, Numba itself takes its next place without a word
            CacheImpl._locator_classes[0](_load, fast.__file__).ensure_cache_path()
        except OSError as error:
            raise OpponentError(
                f"opponent: {NAME!r} was given, and NUMBA_CACHE_DIR={config.CACHE_DIR!r} takes no files "
                f"({error}); allowed: a folder that can be written, with all in it"
            ) from error
    try:
        from game_gym.opponents.fast.tree import load_search

        return load_search(name)
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
