"""Measures a batch of games in one process: `python -m benchmarks.vector_speed`.

- **Steps per second** of `gym.make_vec("GameSpiel-v0")`, of Gymnasium's `SyncVectorEnv` and of one
  environment of `gym.make`. All play the same game with random legal actions, in short rounds that take
  turns. A step is one move or one reset of one game. Drawing an action from `infos["legal_actions"]` is part
  of it. The ratios are medians over the rounds, of CPU time: how many times the steps of the batch are those
  of the other.
- **Seconds** in which a batch with `mcts` as the opponent makes the same steps with one thread and with
  several, of wall-clock time, in rounds that take turns.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import game_gym  # noqa: F401  (registers GameSpiel-v0)
from benchmarks.ending import end, parse
from benchmarks.machine import machine

Clock = Callable[[], float]


class Player:
    """A batch that plays random legal actions."""

    def __init__(self, **arguments: Any) -> None:
        self.batch = gym.make_vec("GameSpiel-v0", rules=False, **arguments)
        self.restart()

    def restart(self) -> None:
        """Begins the same games again."""
        self.random = random.Random(0)
        _, self.infos = self.batch.reset(seed=0)

    def play(self, steps: int, clock: Clock) -> float:
        """Returns the seconds that so many steps take."""
        draw, begun = self.random.random, clock()
        for _ in range(steps):
            actions = [
                legal[int(draw() * len(legal))] if legal else 0 for legal in self.infos["legal_actions"]
            ]
            *_, self.infos = self.batch.step(np.array(actions))
        return clock() - begun


class Alone:
    """One environment that plays random legal actions, and begins anew when an episode has ended."""

    def __init__(self, **arguments: Any) -> None:
        self.env = gym.make("GameSpiel-v0", rules=False, **arguments)
        self.random = random.Random(0)
        _, self.info = self.env.reset(seed=0)
        self.over = False

    def play(self, steps: int, clock: Clock) -> float:
        """Returns the seconds that so many steps take."""
        draw, begun = self.random.random, clock()
        for _ in range(steps):
            if self.over:
                _, self.info = self.env.reset()
                self.over = False
                continue
            legal = self.info["legal_actions"]
            _, _, terminated, truncated, self.info = self.env.step(legal[int(draw() * len(legal))])
            self.over = terminated or truncated
        return clock() - begun


def measure_steps(game: str, num_envs: int, rounds: int, steps: int) -> dict[str, Any]:
    """Returns steps per CPU second of one environment and of both kinds of batch, and medians of ratios."""
    alone = Alone(game=game)
    sync = Player(game=game, num_envs=num_envs, vectorization_mode="sync")
    batch = Player(game=game, num_envs=num_envs, vectorization_mode="vector_entry_point")
    made = num_envs * steps
    clock = time.process_time
    taken = [
        (alone.play(made, clock), sync.play(steps, clock), batch.play(steps, clock)) for _ in range(rounds)
    ]
    return {
        "game": game,
        "num_envs": num_envs,
        "alone_per_second": round(made / statistics.median(one for one, _, _ in taken)),
        "sync_per_second": round(made / statistics.median(slow for _, slow, _ in taken)),
        "batch_per_second": round(made / statistics.median(fast for _, _, fast in taken)),
        "ratio": round(statistics.median(slow / fast for _, slow, fast in taken), 2),
        "ratio_alone": round(statistics.median(one / fast for one, _, fast in taken), 2),
    }


def measure_threads(game: str, opponent: str, threads: int, num_envs: int, rounds: int) -> dict[str, Any]:
    """Returns the wall-clock seconds of the same games with one thread and with several."""
    arguments = {"game": game, "opponent": opponent, "num_envs": num_envs}
    one, several = Player(threads=1, **arguments), Player(threads=threads, **arguments)
    taken = []
    for _ in range(rounds):
        one.restart()
        several.restart()
        taken.append((one.play(4, time.perf_counter), several.play(4, time.perf_counter)))
    return {
        "game": game,
        "opponent": opponent,
        "num_envs": num_envs,
        "threads": threads,
        "one_thread_s": round(statistics.median(alone for alone, _ in taken), 3),
        "threads_s": round(statistics.median(together for _, together in taken), 3),
        "ratio": round(statistics.median(alone / together for alone, together in taken), 2),
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures and returns the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--games", nargs="+", default=["leduc_poker", "tic_tac_toe"], metavar="NAME")
    parser.add_argument("--num_envs", nargs="+", type=int, default=[16, 64, 256], metavar="N")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="rounds of each pair [20]")
    parser.add_argument("--steps", type=int, default=30, metavar="N", help="steps of a round [30]")
    parser.add_argument(
        "--searched", default="othello", metavar="NAME", help="the game of searches [othello]"
    )
    parser.add_argument("--opponent", default="mcts:100x5", metavar="NAME", help="[mcts:100x5]")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="[2]")
    given = parse(parser, argv)
    steps = [
        measure_steps(game, num_envs, given.rounds, given.steps)
        for game in given.games
        for num_envs in given.num_envs
    ]
    for row in steps:
        print(row)
    search = measure_threads(
        given.searched, given.opponent, given.threads, num_envs=8, rounds=max(1, given.rounds // 5)
    )
    print(search)
    return end(
        {"benchmark": "vector_speed", "steps": steps, "search": search, "machine": machine()}, given.out
    )


if __name__ == "__main__":
    main()
