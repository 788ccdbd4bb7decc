"""Plays opponents against each other: `python -m benchmarks.matches othello mcts-fast:50x20 mcts:50x20`.

Is one as strong as the other, and what does a move of each cost? The first opponent plays each of the
others in a game of two players. Games come in pairs: both have the same chance events, and the first
opponent has one seat in each. A pair's mean score (1 for a win, 0.5 for a draw) is one value of the interval.
CPU seconds are those of a move; before the games, each opponent makes one that does not count. With
`--positions` no games are played: both move in as many states of a game between random players.

Are they equally strong? Two one-sided tests (TOST) at 5% say so for every margin from `equal_within` on: the
90% interval of the score lies within 0.5 ± that margin. 0.1 is some 70 Elo.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`. With ``--keep`` the rows
join those that are kept; of the same match, the new one is kept. ``--continue`` plays on from that one until
there are as many games as asked: a number that was chosen before, or the tests mean less. Its CPU seconds are
of all machines that played, of which the row names the last.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import game_gym.opponents  # noqa: F401  (registers the searches)
from benchmarks.ending import Row, end, machine, make_parser, parse, rows_there
from benchmarks.loops import CHANCE, TERMINAL
from game_gym.games import DECLARED, TABLE
from game_gym.prompts import SeatView
from game_gym.spec import State, Variant, load_variant
from gamespiel.measure.means import estimate_mean
from task_gym.errors import OpponentError
from task_gym.opponents import Opponent, make_opponent
from task_gym.seeding import Stream

NAME = "matches"

SEARCHED = tuple(name for name in TABLE if DECLARED[name].budget is not None)
"""The games that declare a budget."""


class Played(NamedTuple):
    """A game: the first opponent's score, and moves and CPU seconds of both."""

    score: float
    moves: tuple[int, int]
    seconds: tuple[float, float]


@dataclass
class Tally:
    """The games of a match so far: the first opponent's scores in order, both's moves and CPU seconds."""

    scores: list[float] = field(default_factory=list)
    moves: list[int] = field(default_factory=lambda: [0, 0])
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, games: Iterable[Played]) -> None:
        """Adds games."""
        for game in games:
            self.scores.append(game.score)
            for which in (0, 1):
                self.moves[which] += game.moves[which]
                self.seconds[which] += game.seconds[which]


def round_digits(seconds: float) -> float:
    """Returns a number with three digits."""
    return float(f"{seconds:.3g}")


def load(name: str, config: int) -> Variant:
    """Returns a game of two players.

    Raises:
        ValueError: it has more.
    """
    variant = load_variant(DECLARED[name], DECLARED[name].params(config))
    if variant.players != 2:
        raise ValueError(f"{name} has {variant.players} players; two opponents meet in games of two")
    return variant


def make_opponents(variant: Variant, opponents: tuple[str, str], seat: int) -> list[Opponent]:
    """Returns both opponents, of which the first has the seat."""
    seats = seat, 1 - seat
    return [
        make_opponent(name, variant.game, variant.spec, bot_seat)
        for name, bot_seat in zip(opponents, seats, strict=True)
    ]


def play_game(name: str, config: int, opponents: tuple[str, str], number: int, seat: int) -> Played:
    """Plays one game of a pair.

    Args:
        name: The game.
        config: The number of its variant.
        opponents: Names.
        number: The pair's number, from which chance and both opponents are seeded.
        seat: The first opponent's seat.
    """
    variant = load(name, config)
    state, chance = variant.game.new_initial_state(), Stream(number)
    bots = make_opponents(variant, opponents, seat)
    for which, bot in enumerate(bots):
        bot.restart(1000 * number + 100 * which)
    moves, seconds = [0, 0], [0.0, 0.0]
    while (player := _pass_chance(state, chance)) != TERMINAL:
        which = int(player != seat)
        view = SeatView(variant, player, rules=False)
        view.state = state
        begun = time.thread_time()
        action = bots[which].act(view)
        seconds[which] += time.thread_time() - begun
        moves[which] += 1
        state.apply_action(action)
    returns = state.returns()
    difference = returns[seat] - returns[1 - seat]
    score = 0.5 if difference == 0 else float(difference > 0)
    return Played(score, (moves[0], moves[1]), (seconds[0], seconds[1]))


def move_once(name: str, config: int, opponents: tuple[str, str]) -> None:
    """Makes a move of each opponent, which loads what it needs."""
    variant = load(name, config)
    state = variant.game.new_initial_state()
    view = SeatView(variant, _pass_chance(state, Stream(0)), rules=False)
    view.state = state
    for bot in make_opponents(variant, opponents, 0):
        bot.restart(0)
        bot.act(view)


def _pass_chance(state: State, chance: Stream) -> int:
    """Makes the moves of chance; returns the seat to move then."""
    while (player := int(state.current_player())) == CHANCE:
        actions, probabilities = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(actions[chance.weighted(probabilities)])
    return player


def summarise(tally: Tally) -> Row:
    """Returns the figures of whole pairs."""
    games, scores = len(tally.scores), tally.scores
    pairs = [(first + second) / 2 for first, second in zip(scores[::2], scores[1::2], strict=True)]
    score = estimate_mean(pairs, (0.0, 1.0))
    low, high = score.interval()
    # Each side of the 90% interval is a test at 5%.
    equal_within = max(abs(end - 0.5) for end in score.interval(0.9))
    seconds = [tally.seconds[which] / tally.moves[which] for which in (0, 1)]
    return {
        "games": games,
        "score": round(score.mean, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "equal_within": round(equal_within, 4),
        "draws": scores.count(0.5),
        "seats": [round(2 * sum(scores[seat::2]) / games, 4) for seat in (0, 1)],
        "moves_per_game": round(sum(tally.moves) / games, 1),
        "seconds": [round_digits(mean) for mean in seconds],
        "times_cheaper": round_digits(seconds[1] / seconds[0]) if seconds[0] else None,
        "half_points": "".join(f"{2 * one:.0f}" for one in scores),
        "moves": tally.moves,
        "cpu_seconds": [round(value, 3) for value in tally.seconds],
    }


def restore(row: Row) -> Tally:
    """Returns the tally of a row that ``summarise`` made.

    Raises:
        ValueError: the row is older and has no single games.
    """
    if "half_points" not in row:
        raise ValueError("--continue: the kept match has no single games; play it anew, without --continue")
    scores = [int(digit) / 2 for digit in row["half_points"]]
    return Tally(scores, list(row["moves"]), list(row["cpu_seconds"]))


def measure(
    pool: ProcessPoolExecutor, arguments: argparse.Namespace, opponents: tuple[str, str], tally: Tally
) -> Row:
    """Plays on in a match, a few pairs at a time until there are enough or it is late."""
    limit = time.monotonic() + 60 * arguments.minutes
    game = arguments.game, arguments.config, opponents
    while (played := len(tally.scores)) < arguments.games and (played < 4 or time.monotonic() < limit):
        first = arguments.seed * 100_000 + played // 2
        pairs = min(arguments.processes, (arguments.games - played) // 2)
        numbers = [first + pair for pair in range(pairs) for _ in (0, 1)]
        tally.add(pool.map(play_game, *map(repeat, game), numbers, [0, 1] * pairs))
    return {**identify(arguments, opponents), **summarise(tally), "machine": machine()}


def identify(arguments: argparse.Namespace, opponents: tuple[str, str]) -> Row:
    """Returns the fields that identify a match in the results."""
    return {
        "game": arguments.game,
        "params": DECLARED[arguments.game].params(arguments.config),
        "opponents": list(opponents),
        "seed": arguments.seed,
    }


def measure_moves(arguments: argparse.Namespace, opponents: tuple[str, str]) -> Row:
    """Has both opponents move in states of a game of random moves, evenly over its length."""
    variant, stream = load(arguments.game, arguments.config), Stream(arguments.seed)
    state, states = variant.game.new_initial_state(), list[State]()
    while _pass_chance(state, stream) != TERMINAL:
        states.append(state.clone())
        state.apply_action(stream.choice(state.legal_actions()))
    seconds = [0.0, 0.0]
    for number in range(arguments.positions):
        state = states[len(states) * number // arguments.positions]
        view = SeatView(variant, state.current_player(), rules=False)
        view.state = state
        for which, name in enumerate(opponents):
            bot = make_opponent(name, variant.game, variant.spec, view.seat)
            bot.restart(number)
            begun = time.thread_time()
            bot.act(view)
            seconds[which] += time.thread_time() - begun
    return {
        **identify(arguments, opponents),
        "positions": arguments.positions,
        "seconds": [round_digits(total / arguments.positions) for total in seconds],
        "times_cheaper": round_digits(seconds[1] / seconds[0]) if seconds[0] else None,
        "machine": machine(),
    }


def is_same_match(one: Row, other: Row) -> bool:
    """Returns whether two rows are of the same games, or of the same states on such a machine."""
    same = all(one.get(key) == other[key] for key in ("game", "params", "opponents", "seed"))
    if "positions" not in other:
        return same and "positions" not in one
    alike = all(one["machine"][key] == other["machine"][key] for key in ("cpu", "cores"))
    return same and "positions" in one and alike


def describe(row: Row) -> str:
    """Returns a row in words."""
    said = f"{row['game']} {row['params']}: {' against '.join(row['opponents'])}: "
    if "games" in row:
        said += (
            f"{row['score']:.3f} ({row['low']:.3f} to {row['high']:.3f}) in {row['games']} games, "
            f"equal within {row['equal_within']:.3f}, by seats {row['seats']}; "
        )
    return said + f"CPU s a move {row['seconds']}, a ratio of {row['times_cheaper']}"


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Plays the matches and returns the results."""
    parser = make_parser(NAME, __doc__)
    parser.add_argument("game", choices=SEARCHED, metavar="GAME", help=", ".join(SEARCHED))
    parser.add_argument("first", metavar="OPPONENT", help="the one that plays all others")
    parser.add_argument("others", nargs="+", metavar="OTHER", help="as mcts or mcts:50x20")
    parser.add_argument("--config", type=int, default=0, metavar="N", help="the variant [0]")
    parser.add_argument("--games", type=int, default=200, metavar="N", help="of a match, even [200]")
    parser.add_argument("--minutes", type=float, default=600, help="of a match; then no pair is begun [600]")
    parser.add_argument("--positions", type=int, metavar="N", help="measure moves in N states instead")
    parser.add_argument("--continue", dest="resume", action="store_true", help="play on from the kept match")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="[1]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the games [0]")
    arguments = parse(parser, argv)
    if arguments.games < 4 or arguments.games % 2 or arguments.processes < 1 or arguments.seed < 0:
        parser.error("--games is even and at least 4, --processes at least 1, --seed at least 0")
    if arguments.positions is not None and arguments.positions < 1:
        parser.error("--positions is at least 1")
    if arguments.resume and (arguments.out is None or arguments.positions is not None):
        parser.error("--continue plays on in a file: name it by --keep or --out, without --positions")
    rows = rows_there(arguments.out, NAME)
    tallies = {}
    try:
        variant = load(arguments.game, arguments.config)
        for other in arguments.others:
            make_opponents(variant, (arguments.first, other), 0)
            same = identify(arguments, (arguments.first, other))
            before = [row for row in rows if arguments.resume and is_same_match(row, same)]
            tallies[other] = restore(before[0]) if before else Tally()
    except (ValueError, OpponentError) as error:
        parser.error(str(error))
    for other in arguments.others:
        move_once(arguments.game, arguments.config, (arguments.first, other))
    # Forked, they have what was loaded. No thread has begun.
    with ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("fork")) as pool:
        for other in arguments.others:
            opponents = arguments.first, other
            if arguments.positions is None:
                row = measure(pool, arguments, opponents, tallies[other])
            else:
                row = measure_moves(arguments, opponents)
            print(describe(row), flush=True)
            rows = [*(match for match in rows if not is_same_match(match, row)), row]
    return end({"benchmark": NAME, "rows": rows}, arguments.out)


if __name__ == "__main__":
    main()
