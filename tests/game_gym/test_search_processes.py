"""Searches written in Python, in processes of their own: the same moves, whatever becomes of a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyspiel
import pytest

from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED
from game_gym.opponents import search_processes
from game_gym.opponents.mcts import make_bot
from game_gym.opponents.search_processes import ProcessBot, choose
from task_gym.errors import OpponentError
from task_gym.opponents import Seating, make_opponent, playing_name
from task_gym.processes import share_cores, shares_cores


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    search_processes.close()  # other tests' vectors leave idle ones
    yield
    search_processes.close()


def run_in_thread(call: Any) -> Any:
    """Returns what a call does in a thread that shares the cores."""
    with ThreadPoolExecutor(1, initializer=share_cores) as pool:
        return pool.submit(call).result()


def play(game: str, opponent: str) -> list[Any]:
    """Returns the moves of two games in a row; the agent always takes the last legal action."""
    env, games = GameSpielEnv(game=game, opponent=opponent, rules=False), []
    for seed in (1, 2):
        _, info = env.reset(seed=seed)
        while "result" not in info:
            _, _, _, _, info = env.step(info["legal_actions"][-1])
        games.append((info["result"], info["history"]))
    return games


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.parametrize(
    ("game", "opponent"), [("tic_tac_toe", "mcts-python:12x2"), ("leduc_poker", "ismcts:10x2")]
)
def test_the_same_moves_also_after_a_process_was_killed(game: str, opponent: str) -> None:
    assert not shares_cores() and not search_processes.SPARE.idle
    expected = play(game, opponent)
    assert not search_processes.SPARE.idle  # all of it was played here
    assert run_in_thread(lambda: play(game, opponent)) == expected
    (process,) = search_processes.SPARE.idle.values()
    os.kill(process.pid, signal.SIGKILL)
    assert run_in_thread(lambda: play(game, opponent)) == expected
    (other,) = search_processes.SPARE.idle.values()
    assert other.pid != process.pid


class Broken:
    """A search that fails, or ends its process."""

    def __init__(self, seating: Any) -> None:
        self.argument = seating.argument

    def choose(self, state: Any, seat: int) -> int:
        if self.argument == "ends":
            os._exit(7)
        raise ArithmeticError("no move")

    def generators(self) -> Any:
        return None

    def set_generators(self, states: Any) -> None:
        pass


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("fails", r"Broken.*ArithmeticError: no move"),
        ("ends", r"the search Broken ended its process twice \(status 7\)"),
    ],
)
def test_a_search_that_fails_is_named(argument: str, message: str) -> None:
    game = pyspiel.load_game("tic_tac_toe")
    broken = Broken(Seating(game, None, 0, argument))
    with pytest.raises(OpponentError, match=message):
        run_in_thread(lambda: choose(broken, game.new_initial_state(), 0))


def walk(bot: Any, before_move: Any = lambda: None) -> list[int]:
    """Returns a bot's moves in a game of tic-tac-toe against the first legal action."""
    state, moves = pyspiel.load_game("tic_tac_toe").new_initial_state(), []
    while not state.is_terminal():
        before_move()
        moves.append(bot.step(state))
        state.apply_action(moves[-1])
        if not state.is_terminal():
            state.apply_action(state.legal_actions()[0])
    return moves


@pytest.mark.launch
def test_a_bot_in_a_process_makes_the_same_moves_whatever_becomes_of_it() -> None:
    def kill() -> None:
        for process in search_processes.KEEPING.idle.values():
            os.kill(process.pid, signal.SIGKILL)

    for seed in range(3):
        # So few simulations that the moves depend on the generators' positions.
        expected = walk(make_bot(pyspiel.load_game("tic_tac_toe"), 6, 1, seed))
        assert walk(ProcessBot(make_bot, (6, 1, seed))) == expected
        assert walk(ProcessBot(make_bot, (6, 1, seed)), kill) == expected
    assert not search_processes.SPARE.idle and not search_processes.KEEPING.idle  # they end with their bots


def test_a_game_in_python_is_searched_here() -> None:
    """Another process does not know it: OpenSpiel's tic-tac-toe in Python is registered when imported."""
    from open_spiel.python.games import tic_tac_toe  # noqa: F401

    game = pyspiel.load_game("python_tic_tac_toe")
    search: Any = make_opponent("mcts-python:10x1", game, DECLARED["tic_tac_toe"], 0)
    search.restart(1)
    run_in_thread(lambda: choose(search, game.new_initial_state(), 0))
    assert not search_processes.SPARE.idle


@pytest.mark.parametrize("text", ["python_tic_tac_toe", "misere(game=python_tic_tac_toe())"])
def test_openspiels_search_stays_out_of_games_in_python(text: str) -> None:
    """It would end the process, without a message. Upstream's plays in its place, and others name that."""
    from open_spiel.python.games import tic_tac_toe  # noqa: F401

    game, spec = pyspiel.load_game(text), DECLARED["tic_tac_toe"]
    assert [playing_name(name, game) for name in ("mcts", "mcts:9x2")] == ["mcts-python", "mcts-python:9x2"]
    assert playing_name("mcts:9x2", pyspiel.load_game("misere(game=tic_tac_toe())")) == "mcts:9x2"
    for name in ("mcts:9", "mcts-fast:9", "ismcts:9"):
        with pytest.raises(OpponentError, match=r"allowed( there)?: 'mcts-python'"):
            make_opponent(name, game, spec, 0)


def test_a_search_that_may_end_its_process_is_refused_without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: the process that it would end is the one that plays."""
    monkeypatch.setattr("game_gym.opponents.mcts.OFFERED", False)
    game, spec = pyspiel.load_game("gin_rummy", {"hand_size": 8}), DECLARED["gin_rummy"]
    with pytest.raises(OpponentError, match=r"'mcts' was given for gin_rummy\(hand_size=8\).* 'mcts-python'"):
        make_opponent("mcts:9", game, spec, 0)
