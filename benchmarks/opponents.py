"""Measures what opponents that search cost a trainer: `python -m benchmarks.opponents`.

- **Moves.** CPU seconds per move of `mcts` at upstream's budget, in each variant of the 18 games that declare
  one, against random play: the mean over whole games, or over the first moves if the time is short, and the
  slowest move.
- **Rounds.** Wall-clock seconds of the same episodes in the trainer's vector in three ways, which take turns:
  `waits` (one thread, and the model waits), `threads` (a thread per core, and the model waits) and `parts`
  (the model decides for one half of the episodes while the opponents of the other half search). The model is
  `none`, `sleep` (its forwards sleep, as those of a GPU leave the cores alone) or `tiny` (the embedded
  model's forwards, on the same cores).
- **The estimate** max(forwards, turns · searches / cores), beside the seconds of `parts` that were measured.
- **Projections** of that estimate for more cores. Nothing of them is measured but the moves.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.ending import end, parse
from benchmarks.machine import busy_seconds, machine
from benchmarks.search_moves import Row, measure_apart, round_digits
from benchmarks.searches import SEARCHED
from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED
from gamespiel.agents.rollout import Decide, Masks, play
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.cores import count_cores

WAYS = ("waits", "threads", "parts")
MODELS = ("none", "sleep", "tiny")

#: The cores of projections.
PROJECTED = (16, 64, 640)

# -- rounds ------------------------------------------------------------------------------------------------


class Model:
    """A model whose forwards cost nothing, sleep or are real, and the seconds that it took.

    Args:
        kind: One of ``MODELS``.
        sleep: Seconds per turn that a forward of ``sleep`` takes.
    """

    def __init__(self, kind: str, env: TextVecEnv, sleep: float = 0.0) -> None:
        self.kind, self.sleep, self.turns, self.seconds = kind, sleep, 0, 0.0
        self._policy: Any = None
        if kind == "tiny":
            from gamespiel.agents.policy import LLMPolicy

            self._policy = LLMPolicy(env.observation_space, env.action_space, lambda remaining: 1e-3)

    def decide(self, texts: list[str], masks: Masks, episodes: list[int], turn: int) -> list[Answer]:
        begun = time.perf_counter()
        self.turns += len(texts)
        if self._policy is not None:
            drawn = [Address(0, Purpose.ACTIONS, 0, turn, episode) for episode in episodes]
            decisions = self._policy.decide(texts, masks, drawn)
            answers = [self._policy.answer_of(decision) for decision in decisions]
        else:
            legal = [mask.nonzero()[0] for mask in masks]
            answers = [
                Answer(int(own[(7 * episode + 3 * turn) % len(own)]), None)
                for own, episode in zip(legal, episodes, strict=True)
            ]
            time.sleep(self.sleep * len(texts))
        self.seconds += time.perf_counter() - begun
        return answers


@dataclass
class Played:
    """Episodes as they were played: wall-clock and CPU seconds, those in the model, and decisions.

    ``others`` are the CPU seconds of all other processes meanwhile.
    """

    wall: float
    cpu: float
    forwards: float
    turns: int
    others: float


def play_once(envs: TextVecEnv, model: Model, episodes: int, parts: int) -> Played:
    """Plays the same episodes each time."""
    model.turns, model.seconds = 0, 0.0
    decide: Decide = model.decide
    wall, cpu, busy = time.perf_counter(), time.process_time(), busy_seconds() or 0.0
    play(envs, range(episodes), decide, lambda turns: True, parts=parts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Played(wall, cpu, model.seconds, model.turns, max(0.0, (busy_seconds() or 0.0) - busy - cpu))


def share_of_others(lap: dict[str, Played], cores: int) -> float:
    """Returns the share of the cores that other processes took in a lap."""
    return sum(one.others for one in lap.values()) / sum(one.wall * cores for one in lap.values())


def measure_rounds(given: argparse.Namespace, kind: str, opponent: str, sleep: float = 0.0) -> Row:
    """Plays the episodes in every way, in turns; returns the medians of seconds and of ratios.

    A lap in which other processes took more than ``given.busy`` of the cores is played again, whatever it
    came to. If ``given.tries`` laps per round were too few, the rest are those with the least of it.
    """
    make = partial(
        GameSpielEnv, game=given.searched, opponent=opponent, max_turns=given.max_turns, rules=False
    )
    cores = count_cores()
    threads = {"waits": 1, "threads": cores, "parts": cores}
    tried: list[dict[str, Played]] = []
    vectors = {way: TextVecEnv([make] * given.episodes, count) for way, count in threads.items()}
    model = Model(kind, vectors["waits"], sleep)
    for lap in range(given.rounds * given.tries + 1):
        order = WAYS[lap % len(WAYS) :] + WAYS[: lap % len(WAYS)]
        own = {}
        for way in order:
            parts = vectors[way].parts if way == "parts" else 1
            own[way] = play_once(vectors[way], model, given.episodes, parts)
        if lap:  # the first loads games and warms the model up
            tried.append(own)
        if sum(share_of_others(own, cores) <= given.busy for own in tried) == given.rounds:
            break
    for envs in vectors.values():
        envs.close()
    laps = sorted(tried, key=lambda own: share_of_others(own, cores))[: given.rounds]
    medians = {way: statistics.median(lap[way].wall for lap in laps) for way in WAYS}
    searching = statistics.median(lap["waits"].cpu for lap in laps)  # of the process, the model's included
    turns, forwards = laps[0]["waits"].turns, statistics.median(lap["waits"].forwards for lap in laps)
    return {
        "game": given.searched,
        "opponent": opponent,
        "model": kind,
        "episodes": given.episodes,
        "turns": turns,
        "cores": cores,
        "forward_s": round_digits(forwards),
        "cpu_s": round_digits(searching),
        "seconds": {way: round_digits(seconds) for way, seconds in medians.items()},
        "laps_tried": len(tried),
        "others_share": round(max(share_of_others(own, cores) for own in laps), 3),
        "threads_over_waits": _ratio(laps, "waits", "threads"),
        "parts_over_threads": _ratio(laps, "threads", "parts"),
        "parts_over_waits": _ratio(laps, "waits", "parts"),
    }


def _ratio(laps: Sequence[dict[str, Played]], slow: str, fast: str) -> float:
    return round(statistics.median(lap[slow].wall / lap[fast].wall for lap in laps), 3)


def measure_ways(given: argparse.Namespace) -> Iterator[Row]:
    """Measures every model, and for `sleep` the estimate beside what was measured.

    The forwards of `sleep` take as long as the searches do in threads, half as long, and twice as long.
    """
    alone = measure_rounds(given, "none", given.opponent)
    yield alone
    cores, searches = alone["cores"], alone["cpu_s"]
    for share in (0.5, 1.0, 2.0):
        forwards = share * searches / cores
        row = measure_rounds(given, "sleep", given.opponent, forwards / alone["turns"])
        estimate = max(row["forward_s"], searches / cores)
        row |= {"forwards_over_searches": share, "estimate_s": round_digits(estimate)}
        yield row | {"measured_over_estimate": round(row["seconds"]["parts"] / estimate, 3)}
    for opponent in (given.opponent, *given.lighter):
        yield measure_rounds(given, "tiny", opponent)


# -- projections -------------------------------------------------------------------------------------------


def project(row: Row, episodes: int, turns_per_second: float) -> Row:
    """Returns the estimated seconds of a training step's episodes, by cores.

    More cores than episodes are of no use: an episode searches for one move at a time.
    """
    turns = episodes * row["turns_per_game"]
    forwards = turns / turns_per_second
    by_cores = {
        str(cores): round(max(forwards, turns * row["seconds_per_turn"] / min(cores, episodes)), 1)
        for cores in PROJECTED
    }
    return {"forwards": round(forwards, 1), **by_cores}


# -- the run -----------------------------------------------------------------------------------------------


def print_moves(console: Console, rows: Sequence[Row], episodes: int, turns_per_second: float) -> None:
    table = Table(title="CPU seconds per move of `mcts` at upstream's budget", title_justify="left")
    for heading in ("game", "parameters", "budget"):
        table.add_column(heading)
    for heading in ("per move", "slowest", "moves", "per turn", *(f"{cores} cores" for cores in PROJECTED)):
        table.add_column(heading, justify="right")
    for row in rows:
        params = ", ".join(str(value) for value in row["params"].values())
        if row["crashed"]:
            table.add_row(row["game"], params, row["budget"], row["crashed"])
            continue
        mark = "" if row["games"] else "~"
        shown = [mark + f"{row['seconds_per_move']:.3g}", f"{row['slowest_move']:.3g}", str(row["moves"])]
        turn = "" if row["seconds_per_turn"] is None else f"{row['seconds_per_turn']:.3g}"
        projected = [
            f"{row['projected'][str(cores)]:,.0f}" if row["projected"] else "" for cores in PROJECTED
        ]
        table.add_row(row["game"], params, row["budget"], *shown, turn, *projected)
    console.print(table)
    console.print("~ of the first moves of a game: the whole game was too long")
    console.print(
        f"16, 64 and 640 cores: a projection, not a measurement, of the seconds in which {episodes} whole "
        f"episodes are played: max(forwards at {turns_per_second:g} turns per second, turns x seconds per "
        "turn / cores), with at most one core per episode"
    )


def print_rounds(console: Console, rows: Sequence[Row]) -> None:
    table = Table(title="Seconds of the same episodes, and ratios", title_justify="left")
    for heading in ("opponent", "model"):
        table.add_column(heading)
    for heading in ("forwards", *WAYS, "by threads", "by parts", "estimate", "measured / estimate", "others"):
        table.add_column(heading, justify="right")
    for row in rows:
        seconds = [f"{row['seconds'][way]:.2f}" for way in WAYS]
        estimate = [str(row.get(key, "")) for key in ("estimate_s", "measured_over_estimate")]
        ratios = [f"{row[key]:.2f}" for key in ("threads_over_waits", "parts_over_threads")]
        seconds = [f"{row['forward_s']:.2f}", *seconds, *ratios, *estimate, f"{row['others_share']:.1%}"]
        table.add_row(row["opponent"], row["model"], *seconds)
    console.print(table)
    console.print("others: the largest share of the cores that other processes took in a lap that counts")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opponents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--games", nargs="*", default=SEARCHED, choices=SEARCHED, metavar="GAME", help="of the moves [all]"
    )
    parser.add_argument("--minutes", type=float, default=15.0, help="for the moves of all variants [15]")
    parser.add_argument("--searched", default="othello", metavar="GAME", help="of the rounds [othello]")
    parser.add_argument("--opponent", default="mcts:20x5", metavar="NAME", help="[mcts:20x5]")
    parser.add_argument(
        "--lighter", nargs="*", default=["mcts:5x1"], metavar="NAME", help="for `tiny` too [mcts:5x1]"
    )
    parser.add_argument("--episodes", type=int, default=32, metavar="N", help="of a round [32]")
    parser.add_argument("--max_turns", type=int, default=6, metavar="N", help="of an episode [6]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each way; 0 for none [5]")
    parser.add_argument(
        "--busy", type=float, default=0.03, metavar="SHARE", help="of the cores, that others may take [0.03]"
    )
    parser.add_argument("--tries", type=int, default=4, metavar="N", help="laps per round, at most [4]")
    parser.add_argument("--turns_per_second", type=float, default=100.0, help="of the projected model [100]")
    parser.add_argument("--batch", type=int, default=256, metavar="N", help="projected episodes [256]")
    return parser


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures and returns the results."""
    given, console = parse(make_parser(), argv), Console(width=140)
    named = [(name, config) for name in given.games for config in range(DECLARED[name].variants)]
    moves = []
    for name, config in named:
        row = measure_apart(name, config, 60 * given.minutes / len(named))
        row["projected"] = project(row, given.batch, given.turns_per_second) if row["games"] else None
        measured = row["crashed"] or f"{row['seconds_per_move']} s per move"
        print(f"{name} {row['params']}: {measured}", flush=True)
        moves.append(row)
    if moves:
        print_moves(console, moves, given.batch, given.turns_per_second)
    rounds = []
    if given.rounds:
        with closing(measure_ways(given)) as ways:
            for row in ways:
                print(row, flush=True)
                rounds.append(row)
        print_rounds(console, rounds)
    results = {
        "benchmark": "opponents",
        "machine": machine(),
        "minutes": given.minutes,
        "moves": moves,
        "rounds": rounds,
        "projection": {"episodes": given.batch, "turns_per_second": given.turns_per_second},
    }
    return end(results, given.out)


if __name__ == "__main__":
    main()
