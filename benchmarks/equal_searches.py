"""Plays searches against each other: `python -m benchmarks.equal_searches GAME`.

How few CPU seconds play as well as ``mcts``? A search is written SIMSxROLLOUTS@UCT_C, where "x1" and
upstream's constant of exploration may be left out; ``@puct:C`` chooses children by AlphaZero's rule.
Candidates play the reference, by default the game's declared budget. ``--scale 20`` divides the reference's simulations by 20
where whole games of the declared budget take too long; the candidates are given as they play.

Games come in pairs: both have the same chance events, and the candidate has one seat in each. A pair's mean
score (1 for a win, 0.5 for a draw) is one value of the interval. Another ``--seed`` plays other games: those
that chose a candidate do not confirm it.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`. With ``--keep`` the rows
join those that are kept; of the same match, the new one is kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from benchmarks.ending import end, parse, rows_there
from benchmarks.loops import CHANCE, TERMINAL
from benchmarks.machine import machine
from benchmarks.search_moves import round_digits
from benchmarks.searches import SEARCHED
from game_gym.games import DECLARED
from game_gym.opponents.mcts import UCT_C, make_bot, parse_budget
from game_gym.spec import Variant, load_variant
from gamespiel.statistics.means import estimate_mean
from task_gym.errors import OpponentError
from task_gym.seeding import Stream

NAME = "equal_searches"

Row = dict[str, Any]


class Search(NamedTuple):
    """A search's settings."""

    simulations: int
    rollouts: int
    uct_c: float = UCT_C
    puct: bool = False

    def __str__(self) -> str:
        constant = f"@{'puct:' * self.puct}{self.uct_c:g}"
        return f"{self.simulations}x{self.rollouts}{'' if constant == f'@{UCT_C:g}' else constant}"


class Played(NamedTuple):
    """A game: the candidate's score, and moves and CPU seconds of candidate and reference."""

    score: float
    moves: tuple[int, int]
    seconds: tuple[float, float]


def read_search(text: str) -> Search:
    """Reads a search.

    Raises:
        argparse.ArgumentTypeError: the text is none.
    """
    budget, at, rule = text.partition("@")
    constant = rule.removeprefix("puct:")
    try:
        found = parse_budget(budget, "SEARCH")
        if found is None or (at and not 0 < float(constant) < inf):
            raise ValueError(text)
        return Search(found.simulations, found.rollouts, float(constant) if at else UCT_C, constant != rule)
    except (ValueError, OpponentError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} was given, allowed: SIMS, SIMSxROLLOUTS and either with @UCT_C or @puct:C"
        ) from error


def scale_down(game: str, by: int) -> Search:
    """Returns a game's declared search with ``by`` times fewer simulations."""
    budget = DECLARED[game].budget
    assert budget is not None
    return Search(max(2, budget.simulations // by), budget.rollouts)


def play_game(name: str, config: int, searches: tuple[Search, Search], number: int, seat: int) -> Played:
    """Plays one game of a pair.

    Args:
        name: The game.
        config: The number of its variant.
        searches: Candidate and reference.
        number: The pair's number, from which chance and both searches are seeded.
        seat: The candidate's seat.
    """
    variant = load_variant(DECLARED[name], DECLARED[name].params(config))
    state, chance = variant.game.new_initial_state(), Stream(number)
    bots = [
        make_bot(
            variant.game, own.simulations, own.rollouts, 1000 * number + 100 * which, own.uct_c, own.puct
        )
        for which, own in enumerate(searches)
    ]
    moves, seconds = [0, 0], [0.0, 0.0]
    while (player := state.current_player()) != TERMINAL:
        if player == CHANCE:
            actions, probabilities = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(actions[chance.weighted(probabilities)])
            continue
        which = int(player != seat)
        begun = time.thread_time()
        action = bots[which].step(state)
        seconds[which] += time.thread_time() - begun
        moves[which] += 1
        state.apply_action(action)
    returns = state.returns()
    difference = returns[seat] - returns[1 - seat]
    score = 0.5 if difference == 0 else float(difference > 0)
    return Played(score, (moves[0], moves[1]), (seconds[0], seconds[1]))


def require_two_players(name: str, config: int) -> Variant:
    """Returns a variant of two players.

    Raises:
        ValueError: it has more.
    """
    variant = load_variant(DECLARED[name], DECLARED[name].params(config))
    if variant.players != 2:
        raise ValueError(f"{name} has {variant.players} players; two searches meet in games of two")
    return variant


def summarise(games: Sequence[Played]) -> Row:
    """Returns the figures of whole pairs.

    CPU seconds are those of a move, the mean over games in which both play nearly as many.
    """
    pairs = [(first.score + second.score) / 2 for first, second in zip(games[::2], games[1::2], strict=True)]
    score = estimate_mean(pairs, (0.0, 1.0))
    low, high = score.interval()
    moves = [sum(game.moves[which] for game in games) for which in (0, 1)]
    seconds = [sum(game.seconds[which] for game in games) / moves[which] for which in (0, 1)]
    return {
        "games": len(games),
        "score": round(score.mean, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "draws": sum(game.score == 0.5 for game in games),
        "seats": [round(2 * sum(game.score for game in games[seat::2]) / len(games), 4) for seat in (0, 1)],
        "moves_per_game": round(moves[0] / len(games), 1),
        "seconds": round_digits(seconds[0]),
        "reference_seconds": round_digits(seconds[1]),
        "times_cheaper": round_digits(seconds[1] / seconds[0]),
    }


def play_pairs(
    pool: ProcessPoolExecutor, name: str, config: int, searches: tuple[Search, Search], first: int, pairs: int
) -> Iterator[Played]:
    """Plays pairs of games in all processes; yields the games in order."""
    rows = [(name, config, searches, first + pair, seat) for pair in range(pairs) for seat in (0, 1)]
    yield from pool.map(play_game, *zip(*rows, strict=True))


def measure(
    pool: ProcessPoolExecutor, given: argparse.Namespace, candidate: Search, late: Callable[[], bool]
) -> Row:
    """Plays a candidate's games, a few pairs at a time until there are enough or it is late."""
    games: list[Played] = []
    while len(games) < given.games and not (games and late()):
        pairs = min(given.processes, (given.games - len(games)) // 2)
        searches = candidate, given.reference
        found = play_pairs(
            pool, given.game, given.config, searches, given.seed * 100_000 + len(games) // 2, pairs
        )
        games += islice(found, None)
    return {
        "game": given.game,
        "params": DECLARED[given.game].params(given.config),
        "reference": str(given.reference),
        "candidate": str(candidate),
        "seed": given.seed,
        **summarise(games),
        "machine": machine(),
    }


def is_same_match(one: Row, other: Row) -> bool:
    """Returns whether two rows are of the same games."""
    return all(one.get(key) == other[key] for key in ("game", "params", "reference", "candidate", "seed"))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{NAME}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("game", choices=SEARCHED, metavar="GAME", help=", ".join(SEARCHED))
    parser.add_argument("--candidates", nargs="+", type=read_search, required=True, metavar="SEARCH")
    parser.add_argument("--reference", type=read_search, metavar="SEARCH", help="[the declared budget]")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="of the declared budget [1]")
    parser.add_argument("--config", type=int, default=0, metavar="N", help="the variant [0]")
    parser.add_argument("--games", type=int, default=200, metavar="N", help="per candidate, even [200]")
    parser.add_argument(
        "--minutes", type=float, default=600, help="per candidate; then no pair is begun [600]"
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="[1]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the games [0]")
    return parser


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Plays the matches and returns the results."""
    parser = make_parser()
    given = parse(parser, argv)
    if given.games < 4 or given.games % 2 or given.scale < 1 or given.processes < 1 or given.seed < 0:
        parser.error(
            "--games is even and at least 4, --scale and --processes are at least 1, --seed at least 0"
        )
    try:
        require_two_players(given.game, given.config)
    except ValueError as error:
        parser.error(str(error))
    given.reference = given.reference or scale_down(given.game, given.scale)
    rows = rows_there(given.out, NAME)
    # Forked: a new interpreter would import PyTorch. No thread has begun.
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("fork")) as pool:
        for candidate in given.candidates:
            limit = time.monotonic() + 60 * given.minutes
            row = measure(pool, given, candidate, lambda limit=limit: time.monotonic() > limit)
            print(
                f"{row['game']}: {row['candidate']} against {row['reference']}: {row['score']:.3f} "
                f"({row['low']:.3f} to {row['high']:.3f}) in {row['games']} games, seats {row['seats']}, "
                f"{row['seconds']:g} s a move for {row['reference_seconds']:g} s: "
                f"{row['times_cheaper']:g} times cheaper",
                flush=True,
            )
            rows = [*(kept for kept in rows if not is_same_match(kept, row)), row]
    return end({"benchmark": NAME, "rows": rows}, given.out)


if __name__ == "__main__":
    main()
