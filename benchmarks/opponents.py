"""Measures what a move of an opponent that searches costs: `python -m benchmarks.opponents`.

CPU seconds per move at upstream's budget, in each variant of the 18 games that declare one, against random
play: the mean over whole games, or over the first moves if the time is short, and the slowest move. Each
variant has a process of its own.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

import game_gym.opponents  # noqa: F401  (registers the searches)
from benchmarks.ending import Row, end, make_parser, parse
from benchmarks.loops import CHANCE, TERMINAL, UniformAgent
from benchmarks.machine import machine
from game_gym.games import DECLARED, TABLE
from game_gym.prompts import SeatView
from game_gym.spec import Variant, load_variant
from game_gym.task import encode
from task_gym.opponents import make_opponent
from task_gym.seeding import Stream

#: Every table game that can be searched.
SEARCHED = tuple(name for name in TABLE if DECLARED[name].budget is not None)

#: The searches that are measured.
SEARCHES = ("mcts", "mcts-python")


@dataclass
class Game:
    """A game against the search.

    Attributes:
        seconds: CPU seconds of each of its moves.
        turns: Turns of the other player.
    """

    seconds: list[float]
    turns: int = 0


def play_game(search: str, variant: Variant, number: int, until: Callable[[], bool]) -> tuple[Game, bool]:
    """Plays one game of a uniform player in the last seat; returns it, and whether it came to its end."""
    state, chance, agent = variant.game.new_initial_state(), Stream(100 + number), UniformAgent(number)
    seat, game = variant.players - 1, Game([])
    # In this process, whose seconds are measured, also if the search may end it.
    spec = replace(variant.spec, may_strand=lambda params: False)
    bots = [make_opponent(search, variant.game, spec, other) for other in range(seat)]
    for other, bot in enumerate(bots):
        bot.restart(1000 * number + other)
    while (player := state.current_player()) != TERMINAL:
        if player == CHANCE:
            actions, probabilities = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(actions[chance.weighted(probabilities)])
            continue
        legal = state.legal_actions()
        if not legal:  # OpenSpiel has left the game
            break
        if player == seat:
            game.turns += 1
            state.apply_action(agent.act("", None, legal))
            continue
        if game.seconds and until():
            return game, False
        view = SeatView(variant, player, rules=False)
        view.state = state
        begun = time.thread_time()
        action = bots[player].act(view)
        game.seconds.append(time.thread_time() - begun)
        state.apply_action(action)
    return game, True


def measure_moves(search: str, name: str, config: int, seconds: float) -> Row:
    """Measures a search's moves in one variant, in whole games if the seconds allow at least one."""
    variant = load_variant(DECLARED[name], DECLARED[name].params(config))
    limit = time.monotonic() + seconds
    whole: list[Game] = []
    rest, number = Game([]), 0
    while number == 0 or time.monotonic() < limit:
        game, ended = play_game(search, variant, number, lambda: time.monotonic() > limit)
        if ended:
            whole.append(game)
        elif not whole:
            rest = game
        number += 1
    games = whole or [rest]
    moves = [move for game in games for move in game.seconds]
    turns = sum(game.turns for game in games)
    return {
        **describe_variant(name, config),
        "games": len(whole),
        "moves": len(moves),
        "seconds_per_move": round_digits(statistics.fmean(moves)) if moves else None,
        "slowest_move": round_digits(max(moves)) if moves else None,
        "opening_move": round_digits(games[0].seconds[0]) if moves else None,
        "turns_per_game": round(turns / len(whole), 1) if whole else None,
        "seconds_per_turn": round_digits(sum(moves) / turns) if turns else None,
    }


def measure_apart(search: str, name: str, config: int, seconds: float) -> Row:
    """Does as ``measure_moves`` in a child process, because OpenSpiel's search ends some of them.

    It does so in gin_rummy with hands of eight: then ``crashed`` says so, and nothing was measured.
    """
    # Forked: a new interpreter would import everything again for each variant. No thread has begun by then.
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as child:
        try:
            return child.submit(measure_moves, search, name, config, seconds).result()
        except BrokenProcessPool:
            return describe_variant(name, config) | {"games": 0, "crashed": "the search ended its process"}


def describe_variant(name: str, config: int) -> Row:
    """Returns the game, its parameters, a task id of theirs and the search's budget."""
    budget = DECLARED[name].budget
    assert budget is not None
    return {
        "game": name,
        "params": DECLARED[name].params(config),
        "task_id": encode(name, config),
        "budget": f"{budget.simulations}x{budget.rollouts}",
        "crashed": "",
    }


def round_digits(seconds: float) -> float:
    """Returns a number with three digits."""
    return float(f"{seconds:.3g}")


def describe(row: Row) -> str:
    """Returns a row in words."""
    what = f"{row['game']} {row['params']}, {row['budget']}: "
    if row["crashed"]:
        return what + row["crashed"]
    whole = f"in {row['games']} games" if row["games"] else "of the first moves of a game"
    return what + f"{row['seconds_per_move']} s per move, {row['slowest_move']} s at most, {whole}"


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures and returns the results."""
    parser = make_parser("opponents", __doc__)
    parser.add_argument(
        "--games", nargs="+", default=SEARCHED, choices=SEARCHED, metavar="GAME", help="[all]"
    )
    parser.add_argument("--search", default="mcts", choices=SEARCHES, help="[mcts]")
    parser.add_argument("--minutes", type=float, default=15.0, help="for all variants together [15]")
    given = parse(parser, argv)
    named = [(name, config) for name in given.games for config in range(DECLARED[name].variants)]
    moves = []
    for name, config in named:
        row = measure_apart(given.search, name, config, 60 * given.minutes / len(named))
        print(describe(row), flush=True)
        moves.append(row)
    results = {
        "benchmark": "opponents",
        "machine": machine(),
        "search": given.search,
        "minutes": given.minutes,
        "moves": moves,
    }
    return end(results, given.out)


if __name__ == "__main__":
    main()
