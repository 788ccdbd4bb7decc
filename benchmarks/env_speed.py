"""Measures how fast the environments are: `python -m benchmarks.env_speed`.

The agent's decisions per second, in one process and one thread, every seat drawing uniformly, of

- `bare`: a plain loop over pyspiel with the same strings and masks, drawn from the same streams,
- `raw`: GameSpiel-v0 without wrappers, `rules=False`, seeded once,
- `gym_make`: the same as `gym.make` returns it,
- `reseeded`: the same as `raw`, with `reset(seed=)` at every episode,
- `rl_environment`: OpenSpiel's own, which shows tensors.

The first four play the same games. The texts and masks of `bare` and `raw` are compared to the byte before
any timing. All take turns in short rounds. A ratio is the median over the rounds, of CPU time.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import gymnasium as gym
from open_spiel.python import rl_environment
from rich.console import Console
from rich.table import Table

from benchmarks.ending import end, machine, make_parser, parse
from benchmarks.loops import (
    RecordingAgent,
    UniformAgent,
    play_bare,
    play_environment,
    play_rl_environment,
)
from game_gym.games import DECLARED, TABLE
from game_gym.spec import Variant, load_variant
from game_gym.task import encode

#: Contenders that play exactly the games of `bare`, which is the first.
SAME_GAMES = ("bare", "raw", "gym_make", "reseeded")

#: Rounds of a game, and the least number if episodes are longer than a round (bridge solves its deals).
ROUNDS, FEW_ROUNDS = 40, 5

#: Episodes compared to the byte before a game is timed.
CHECKED = 3

Play = Callable[[int, int, UniformAgent], int]
"""(first seed, episodes, agent) -> decisions."""


@dataclass(frozen=True)
class Round:
    """One contender's round. A round without any decision counts as one decision."""

    decisions: int
    cpu: float
    wall: float


# -- the contenders ----------------------------------------------------------------------------------------


def find_variant(name: str) -> Variant:
    """Returns config 0 of a table game."""
    return load_variant(DECLARED[name], DECLARED[name].params(0))


def make_env(name: str) -> gym.Env[Any, Any]:
    """Returns the environment of config 0, with the wrappers of ``gym.make``."""
    return gym.make("GameSpiel-v0", task_id=encode(name, 0), opponent="random", rules=False)


def contenders(name: str) -> dict[str, Play]:
    """Returns all contenders on this machine, by key."""
    variant, wrapped = find_variant(name), make_env(name)
    return {
        "bare": partial(play_bare, variant),
        "raw": partial(play_environment, wrapped.unwrapped),
        "gym_make": partial(play_environment, wrapped),
        "reseeded": partial(play_environment, wrapped.unwrapped, reseed=True),
        "rl_environment": partial(play_rl_environment, rl_environment.Environment(variant.game)),
    }


def check_same(name: str, episodes: int) -> int:
    """Plays the same games bare and in the environment.

    Returns:
        The number of decisions. At each, both showed the same text, mask and actions.

    Raises:
        ValueError: they differ, so their times could not be compared.
    """
    bare, env = RecordingAgent(0), RecordingAgent(0)
    play_bare(find_variant(name), 0, episodes, bare)
    play_environment(make_env(name).unwrapped, 0, episodes, env)
    if bare.seen != env.seen:
        same = [one == other for one, other in zip(bare.seen, env.seen, strict=False)]
        where = same.index(False) if False in same else len(same)
        raise ValueError(f"{name}: the bare loop and the environment differ, first at decision {where}")
    return len(bare.seen)


# -- the clock ---------------------------------------------------------------------------------------------


def time_round(play: Play, seed: int, episodes: int) -> Round:
    agent = UniformAgent(seed)
    wall, cpu = time.perf_counter(), time.process_time()
    decisions = play(seed, episodes, agent)
    return Round(max(1, decisions), time.process_time() - cpu, time.perf_counter() - wall)


def episodes_in(play: Play, seconds: float) -> int:
    """Returns the number of episodes that take about ``seconds`` of CPU time; at least one."""
    episodes = 1
    while (spent := time_round(play, 0, episodes).cpu) < seconds / 2:
        episodes *= 2
    return max(1, round(episodes * seconds / spent))


def measure(plays: Mapping[str, Play], seconds: float) -> dict[str, list[Round]]:
    """Measures rounds of every contender, about ``seconds`` per contender. The order rotates every round."""
    keys = list(plays)
    episodes = {key: episodes_in(plays[key], seconds / ROUNDS) for key in keys if key not in SAME_GAMES[1:]}
    spent = time_round(plays["bare"], 0, episodes["bare"]).cpu
    taken: dict[str, list[Round]] = {key: [] for key in keys}
    for number in range(min(ROUNDS, max(FEW_ROUNDS, round(seconds / spent)))):
        # Descriptions are cached: the first contender would pay for all that play the same games.
        time_round(plays["bare"], number, episodes["bare"])
        first = number % len(keys)
        for key in keys[first:] + keys[:first]:
            count = episodes["bare" if key in SAME_GAMES else key]
            taken[key].append(time_round(plays[key], number, count))
    return taken


def summary(taken: Mapping[str, Sequence[Round]]) -> dict[str, Any]:
    """Returns one game's rounds as plain data: decisions, rates, and medians of the ratios per round."""

    def ratio(key: str, other: str) -> float:
        return median(
            (first.decisions / first.cpu) / (second.decisions / second.cpu)
            for first, second in zip(taken[key], taken[other], strict=True)
        )

    return {
        "decisions": {key: sum(r.decisions for r in rounds) for key, rounds in taken.items()},
        "per_cpu_second": {key: median(r.decisions / r.cpu for r in rounds) for key, rounds in taken.items()},
        "per_second": {key: median(r.decisions / r.wall for r in rounds) for key, rounds in taken.items()},
        "over_bare": {key: ratio(key, "bare") for key in SAME_GAMES[1:]},
        "raw_over": {key: ratio("raw", key) for key in taken if key not in SAME_GAMES},
    }


def median(values: Iterable[float]) -> float:
    """Returns the median to four digits, which is its precision."""
    return float(f"{statistics.median(values):.4g}")


# -- the run -----------------------------------------------------------------------------------------------


def print_rates(console: Console, games: Mapping[str, Any], overall: Mapping[str, Any]) -> None:
    others = list(dict.fromkeys(key for one in games.values() for key in one["raw_over"]))
    table = Table(title="Decisions a CPU second, and ratios", title_justify="left")
    table.add_column("game")
    for heading in ("bare", "raw", *(f"{key} / bare" for key in SAME_GAMES[1:])):
        table.add_column(heading, justify="right")
    for key in others:
        table.add_column(f"raw / {key}", justify="right")
    for name, one in games.items():
        rates = [f"{one['per_cpu_second'][key]:,.0f}" for key in ("bare", "raw")]
        shares = [f"{share:.2f}" for share in one["over_bare"].values()]
        table.add_row(name, *rates, *shares, *(f"{one['raw_over'][key]:.1f}" for key in others))
    table.add_section()
    for name in ("least", "median"):
        shares = [f"{overall[key][name]:.2f}" for key in SAME_GAMES[1:]]
        table.add_row(name, "", "", *shares, *(f"{overall[key][name]:.1f}" for key in others))
    console.print(table)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = make_parser("env_speed", __doc__)
    parser.add_argument(
        "--games", nargs="+", default=TABLE, choices=TABLE, metavar="GAME", help="of the task-id table [all]"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of a contender and game [1]")
    arguments = parse(parser, argv)

    games = {}
    for name in arguments.games:
        decisions = check_same(name, CHECKED)
        print(f"{name}: {decisions} decisions alike", flush=True)
        games[name] = summary(measure(contenders(name), arguments.seconds))
    overall = overview(games)
    print_rates(Console(width=120), games, overall)
    results = {
        "benchmark": "env_speed",
        "machine": machine() | {name: version(name) for name in ("gymnasium", "open-spiel", "numpy")},
        "opponent": "random",
        "rules": False,
        "seconds": arguments.seconds,
        "games": games,
        "overall": overall,
    }
    return end(results, arguments.out)


def overview(games: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the least and the median of every ratio over the games."""
    ratios: dict[str, list[float]] = {}
    for one in games.values():
        for key, ratio in (one["over_bare"] | one["raw_over"]).items():
            ratios.setdefault(key, []).append(ratio)
    return {key: {"least": min(values), "median": median(values)} for key, values in ratios.items()}


if __name__ == "__main__":
    main()
