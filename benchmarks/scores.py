"""Measures what simple players score in each game: `python -m benchmarks.scores`.

A uniformly random player and a search of 50 simulations play every game of the task-id table against a random
opponent, 50 episodes per seat over all of the game's variants. The thresholds of a curriculum can be chosen
from the success rates. Searches take minutes to hours per game: `--games` and `--agents` measure a part, and
with `--keep` or `--out` the part takes the place of the same rows in the results that are there.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from benchmarks.ending import Row, end, join_rows, machine, make_parser, parse, rows_there
from game_gym.games import TABLE
from task_gym.errors import OpponentError

AGENTS = ("random", "mcts:50x1")

#: Episodes per seat.
EPISODES = 50


def measured(game: str, agent: str, episodes: int, seed: int) -> Row:
    """Returns the row of a player in a game: shares with 95% intervals, or why it cannot play the game."""
    from gamespiel.config import resolve  # here, because the page that shows the results needs no PyTorch
    from gamespiel.measure.episodes import measure_agent

    overrides = [
        ("env.allowed_game_indices", str(TABLE.index(game))),
        ("env.opponent", "random"),
        ("run.seed", str(seed)),
    ]
    row: Row = {"game": game, "agent": agent, "opponent": "random", "seed": seed}
    started = time.perf_counter()
    try:
        group = measure_agent(resolve(overrides=overrides), agent, episodes, Console(stderr=True)).get("all")
    except OpponentError as error:
        return row | {"refused": str(error)}
    row |= {"seconds": round(time.perf_counter() - started, 1), "episodes_per_seat": episodes}
    if group is None:
        return row | {"refused": "every episode was a fault"}
    return row | {
        "episodes": group.episodes,
        "faults": group.faults,
        "score": list(group.score),
        "success": list(group.success),
        "turns": group.length,
    }


def place_of(row: Row) -> tuple[int, int, str]:
    """Returns a row's place in the results: by game, and then the agents of ``AGENTS`` before others."""
    agent = row["agent"]
    return TABLE.index(row["game"]), AGENTS.index(agent) if agent in AGENTS else len(AGENTS), agent


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = make_parser("scores", __doc__)
    parser.add_argument("--games", nargs="+", choices=TABLE, default=TABLE, metavar="GAME", help="[all]")
    parser.add_argument("--agents", nargs="+", default=AGENTS, metavar="NAME", help=f"[{' '.join(AGENTS)}]")
    parser.add_argument("--episodes", type=int, default=EPISODES, help=f"episodes per seat [{EPISODES}]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    arguments = parse(parser, argv)
    before = [row for row in rows_there(arguments.out, "scores") if row["game"] in TABLE]
    rows = [
        measured(game, agent, arguments.episodes, arguments.seed) | {"machine": machine()}
        for game in arguments.games
        for agent in arguments.agents
    ]
    return end({"benchmark": "scores", "rows": join_rows(before, rows, place_of)}, arguments.out)


if __name__ == "__main__":
    main()
