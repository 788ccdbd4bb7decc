"""Processes in which searches think, apart from the one that plays.

A search runs in one of them for one of three reasons. Its caller may leave (``CALLER``), and within a process
no search can be interrupted: there its process is ended, also after its time. Or the search is written in
Python and threads share the cores: within one process Python's lock lets one of them think at a time. Or it
may end its process. All other searches stay in the process that plays, where they are fastest.

The processes make the same moves as a search here does. A request has all that a move follows from, so any
process may answer it, and a request whose process has died is made again. A bot of OpenSpiel keeps its
process while its game goes on, because its generators cannot be read. Its request has every state that it was
asked about, for a new process.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple, Protocol

import pyspiel

from game_gym.spec import Game, State
from task_gym.caller import CALLER, Caller
from task_gym.errors import OpponentError, OpponentFaultError, SearchTimeError
from task_gym.opponents import Seating
from task_gym.processes import OFFERED, EndedError, Nursery, Pool, count_cores, shares_cores

nursery = Nursery(("game_gym.opponents", "open_spiel.python.algorithms.mcts"))
"""The process that forks the others."""

KEEPING = Pool(nursery, 512)
"""Processes that keep a bot between two moves, by its number."""

SPARE = Pool(nursery, count_cores())
"""Processes of no bot."""

_numbers = count()
_bots: dict[int, tuple[Any, int]] = {}  # in the other process: its bot by number, and how often it was asked


class Step(NamedTuple):
    """A request for the move of a bot that its process keeps."""

    number: int
    module: str
    name: str
    settings: tuple[Any, ...]
    states: tuple[str, ...]

    def answer(self) -> int:
        bot, asked = _bots.pop(self.number, (None, 0))
        action = -1
        if bot is None or asked != len(self.states) - 1:
            game, _ = pyspiel.deserialize_game_and_state(self.states[0])
            bot, asked = getattr(import_module(self.module), self.name)(game, *self.settings), 0
        for text in self.states[asked:]:
            action = bot.step(pyspiel.deserialize_game_and_state(text)[1])
        _bots[self.number] = bot, len(self.states)
        return action


def is_native(game: Game) -> bool:
    """Returns whether a game is in C++, with the game that it may be made of.

    Another process does not know one that was written in Python in this one, and OpenSpiel's own search ends
    its process in it.
    """
    inner = [dict(value) for value in game.get_parameters().values() if isinstance(value, dict)]
    return type(game).__module__.startswith(pyspiel.__name__) and all(
        is_native(pyspiel.load_game(each.pop("name"), each)) for each in inner if "name" in each
    )


def runs_apart(state: State, wanted: bool) -> bool:
    """Returns whether a search from this state runs in another process.

    Args:
        state: The state.
        wanted: Whether it should, even if its caller does not leave.
    """
    return OFFERED and (wanted or CALLER.get() is not None) and is_native(state.get_game())


class ProcessBot:
    """A bot of OpenSpiel in a process of its own, which is asked with every state that it was asked about.

    Args:
        make: A function of a module, from a game and the settings to the bot.
        settings: What else the bot follows from.
    """

    def __init__(self, make: Callable[..., Any], settings: tuple[Any, ...]) -> None:
        self._make, self._settings = make, settings
        self._number = next(_numbers)
        self._states: list[str] = []
        weakref.finalize(self, KEEPING.end, self._number)

    def step(self, state: State) -> int:
        """Returns the bot's move, as its own ``step`` does.

        Raises:
            SearchTimeError: it takes more processor time than its caller allows.
            OpponentFaultError: two processes died of the request.
            CallerLeftError: the caller has left.
        """
        self._states.append(pyspiel.serialize_game_and_state(state.get_game(), state))
        make, states = self._make, tuple(self._states)
        request = Step(self._number, make.__module__, make.__qualname__, self._settings, states)
        # A new process makes all moves once more, for which the caller does not pay.
        return int(_ask(request, KEEPING, self._number, len(states)))


class PythonSearch(Protocol):
    """An opponent that searches in Python.

    Its class takes a ``Seating``. With ``argument`` it must need neither ``spec`` nor anything but the game.
    """

    argument: str
    """The budget as text, which makes an equal search in another process."""

    def choose(self, state: State, seat: int) -> int:
        """Returns the move, and moves the generators on."""

    def generators(self) -> Any:
        """Returns where its random generators stand, which can be pickled."""

    def set_generators(self, states: Any) -> None:
        """Puts its random generators there."""


class _Choice(NamedTuple):
    """A request for the move of a search written in Python, and where its generators stand after it."""

    module: str
    name: str
    argument: str
    state: str
    seat: int
    generators: Any

    def answer(self) -> tuple[int, Any]:
        game, state = pyspiel.deserialize_game_and_state(self.state)
        make = getattr(import_module(self.module), self.name)
        search: PythonSearch = make(Seating(game, None, self.seat, self.argument))
        search.set_generators(self.generators)
        return search.choose(state, self.seat), search.generators()


def choose(search: PythonSearch, state: State, seat: int) -> int:
    """Returns the move of a search: in another process if its caller may leave or threads share the cores.

    A game that is written in Python is searched here, because another process does not know it.
    """
    if not runs_apart(state, shares_cores()):
        return search.choose(state, seat)
    kind = type(search)
    text = pyspiel.serialize_game_and_state(state.get_game(), state)
    request = _Choice(kind.__module__, kind.__qualname__, search.argument, text, seat, search.generators())
    action, states = _ask(request, SPARE)
    search.set_generators(states)
    return int(action)


def close() -> None:
    """Ends all idle processes, and the one that they come from."""
    KEEPING.idle.clear()
    SPARE.close()


def _ask(request: Step | _Choice, pool: Pool, number: int | None = None, times: int = 1) -> Any:
    """Returns an answer.

    Args:
        request: The request.
        pool: The processes that are asked.
        number: The number of the bot whose process is asked; None for any process.
        times: The number of searches that a new process makes for it.
    """
    caller = CALLER.get() or Caller()
    seconds = caller.search_time()
    if seconds <= 0:
        raise _make_time_error(caller)
    try:
        answer, failure, spent = pool.ask(request, seconds, caller, number, times)
    except EndedError as error:
        if error.is_late:
            caller.spend(seconds)
            raise _make_time_error(caller) from error
        raise OpponentFaultError(
            f"opponent: the search {request.name} ended its process twice (status {error.status})"
        ) from error
    except OSError as error:
        raise OpponentFaultError(f"opponent: no process for its search can be started: {error}") from error
    caller.spend(spent)
    if failure:
        raise OpponentError(f"opponent: the search {request.name} failed in its process: {failure}")
    return answer


def _make_time_error(caller: Caller) -> SearchTimeError:
    return SearchTimeError(
        f"opponent: its search takes more than {caller.search_s:g} s of processor time, which is the most "
        "here; allowed: a smaller budget, as 'mcts:SIMSxROLLOUTS', or a server with a greater --search_s"
    )
