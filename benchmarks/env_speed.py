"""Measures how fast the environments are: `python -m benchmarks.env_speed`.

The agent's decisions per second, in one process and one thread, every seat drawing uniformly, of

- `bare`: a plain loop over pyspiel with the same strings and masks, drawn from the same streams,
- `raw`: GameSpiel-v0 without wrappers, `rules=False`, seeded once,
- `gym_make`: the same as `gym.make` returns it,
- `reseeded`: the same as `raw`, with `reset(seed=)` at every episode,
- `rl_environment`: OpenSpiel's own, which shows tensors,
- `shimmy`: Shimmy's PettingZoo environment, which shows tensors, if it is installed.

The first four play the same games. The texts and masks of `bare` and `raw` are compared to the byte before
any timing. All take turns in short rounds. A ratio is the median over the rounds, of CPU time.

The second table divides the time of `raw`. With `--search`, the third has the cost per move of `mcts` and
`mcts-python`.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import gymnasium as gym
from open_spiel.python import rl_environment
from rich.console import Console
from rich.table import Table

from benchmarks.ending import end, parse
from benchmarks.loops import (
    RecordingAgent,
    UniformAgent,
    look_away,
    play_bare,
    play_environment,
    play_reseeded,
    play_rl_environment,
    play_shimmy,
)
from benchmarks.machine import machine
from benchmarks.searches import SEARCHED, SEARCHES, measure_search
from game_gym.backends import Turn
from game_gym.games import DECLARED, TABLE
from game_gym.prompts import render_turn
from game_gym.spec import State, Variant, load_variant
from game_gym.task import encode

HEADLINE = ("leduc_poker", "othello", "chess")
ORDER = (*HEADLINE, *(name for name in TABLE if name not in HEADLINE))

#: Contenders that play exactly the games of `bare`, which is the first.
SAME_GAMES = ("bare", "raw", "gym_make", "reseeded")

#: Rounds of a game, and the least number if episodes are longer than a round (bridge solves its deals).
ROUNDS, FEW_ROUNDS = 40, 5

#: Episodes compared to the byte before a game is timed.
CHECKED = 3

#: The number of decisions whose parts are timed, and how often they are timed.
PROFILED, LAPS = 500, 9

#: Above this many CPU seconds, a search's cost is scaled up from fewer simulations.
SEARCH_LIMIT = 15.0

Play = Callable[[int, int, UniformAgent], int]
"""(first seed, episodes, agent) -> decisions."""

Position = tuple[State, int, list[int]]
"""A state, the agent's seat, its legal actions."""


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
    plays: dict[str, Play] = {
        "bare": partial(play_bare, variant),
        "raw": partial(play_environment, wrapped.unwrapped),
        "gym_make": partial(play_environment, wrapped),
        "reseeded": partial(play_reseeded, wrapped.unwrapped),
        "rl_environment": partial(play_rl_environment, rl_environment.Environment(variant.game)),
    }
    if installed("shimmy") is not None:
        from shimmy import OpenSpielCompatibilityV0

        # It reloads its game at every reset, from the name.
        shimmy = OpenSpielCompatibilityV0(game_name=name, config=DECLARED[name].params(0))
        plays["shimmy"] = partial(play_shimmy, shimmy)
    return plays


def installed(package: str) -> str | None:
    """Returns the version of a package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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
            (own.decisions / own.cpu) / (its.decisions / its.cpu)
            for own, its in zip(taken[key], taken[other], strict=True)
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


# -- where the time goes -----------------------------------------------------------------------------------

#: The parts of a decision of `raw`, in the order of the table.
PARTS = ("game", "describe", "choices", "layout", "info", "rest")


def profile(name: str, decisions: int) -> dict[str, float]:
    """Returns the CPU microseconds per decision of `raw`: "total", and each of ``PARTS``.

    "game" is the bare loop without observations: chance, opponents and moves. The next four are timed one by
    one over the positions of these games: the state in words, the actions' names and lines, the layout of the
    text, and ``info`` with its mask. "rest" is the remainder: resets, ends of games, checks and calls. It can
    be below zero, because a part that is timed alone uses the processor's caches differently.
    """
    variant, env = find_variant(name), make_env(name).unwrapped
    describe, choices = variant.spec.describe, variant.choices
    info = env._info  # type: ignore[attr-defined]
    positions, episodes = record_positions(variant, decisions)
    turns = [
        Turn(seat, "", legal, choices(state, seat, legal)[0], 0.0, None) for state, seat, legal in positions
    ]
    works: dict[str, Callable[[], Any]] = {
        "total": lambda: play_environment(env, 0, episodes, UniformAgent(0)),
        "game": lambda: play_bare(variant, 0, episodes, UniformAgent(0), look_away),
        "describe": lambda: [describe(state, seat) for state, seat, _ in positions],
        "choices": lambda: [choices(state, seat, legal) for state, seat, legal in positions],
        "layout": lambda: [
            render_turn(variant, state, seat, False, legal) for state, seat, legal in positions
        ],
        "info": lambda: [info(turn) for turn in turns],
    }
    laps = [{part: cpu_seconds(work) for part, work in works.items()} for _ in range(LAPS)]
    spent = {part: statistics.median(lap[part] for lap in laps) / len(positions) * 1e6 for part in works}
    spent["layout"] -= spent["describe"] + spent["choices"]
    spent["rest"] = spent["total"] - sum(spent[part] for part in PARTS if part != "rest")
    return {part: round(microseconds, 2) for part, microseconds in spent.items()}


def record_positions(variant: Variant, decisions: int) -> tuple[list[Position], int]:
    """Returns at least ``decisions`` positions of the agent, and the number of episodes with them."""
    positions: list[Position] = []

    def remember(variant: Variant, state: State, seat: int, legal: list[int]) -> tuple[str, Any]:
        positions.append((state.clone(), seat, legal))
        return "", None

    episodes = 1
    while play_bare(variant, 0, episodes, UniformAgent(0), remember) < decisions:
        positions.clear()
        episodes *= 2
    return positions, episodes


def cpu_seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


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
    if installed("shimmy") is None:
        console.print("shimmy: not installed (pip install shimmy pettingzoo)")


def print_profiles(console: Console, profiles: Mapping[str, Mapping[str, float]]) -> None:
    table = Table(title="The time of `raw` by part, per decision", title_justify="left")
    table.add_column("game")
    for heading in ("µs", *PARTS):
        table.add_column(heading, justify="right")
    for name, spent in profiles.items():
        shares = [f"{spent[part] / spent['total']:.0%}" for part in PARTS]
        table.add_row(name, f"{spent['total']:.1f}", *shares)
    console.print(table)


def print_searches(console: Console, searches: Mapping[str, Any]) -> None:
    table = Table(title="CPU seconds of a game's first move", title_justify="left")
    table.add_column("game")
    for heading in ("budget", *SEARCHES, "ratio"):
        table.add_column(heading, justify="right")
    for name, one in searches.items():
        shown = [f"{'~' if one[key]['extrapolated'] else ''}{one[key]['seconds']:,.3g}" for key in SEARCHES]
        table.add_row(name, one["budget"], *shown, f"{one['ratio']:,.3g}")
    console.print(table)
    console.print("~ scaled up in proportion from fewer simulations")


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.env_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--games", nargs="+", default=ORDER, choices=TABLE, metavar="GAME", help="of the task-id table [all]"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of a contender and game [1]")
    parser.add_argument("--search", action="store_true", help="measure the search opponents too (minutes)")
    given = parse(parser, argv)
    console = Console(width=120)

    games, profiles, searches = {}, {}, {}
    for name in given.games:
        decisions = check_same(name, CHECKED)
        print(f"{name}: {decisions} decisions alike", flush=True)
        games[name] = summary(measure(contenders(name), given.seconds))
        if name in HEADLINE:
            profiles[name] = profile(name, PROFILED)
    overall = overview(games)
    print_rates(console, games, overall)
    if profiles:
        print_profiles(console, profiles)
    if given.search:
        for name in given.games:
            if name in SEARCHED:
                print(f"{name}: searching", flush=True)
                searches[name] = compare_searches(name, SEARCH_LIMIT)
        print_searches(console, searches)

    packages = {
        name: installed(name) for name in ("gymnasium", "open-spiel", "numpy", "shimmy", "pettingzoo")
    }
    results = {
        "benchmark": "env_speed",
        "machine": machine() | packages,
        "opponent": "random",
        "rules": False,
        "seconds": given.seconds,
        "games": games,
        "overall": overall,
        "profile": profiles,
        "search": searches,
    }
    return end(results, given.out)


def overview(games: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Returns the least and the median of every ratio over the games."""
    ratios: dict[str, list[float]] = {}
    for one in games.values():
        for key, ratio in (one["over_bare"] | one["raw_over"]).items():
            ratios.setdefault(key, []).append(ratio)
    return {key: {"least": min(own), "median": median(own)} for key, own in ratios.items()}


def compare_searches(name: str, limit: float) -> dict[str, Any]:
    """Returns the searches' costs as plain data, and the ratio of the Python search to the C++ search."""
    budget = DECLARED[name].budget
    assert budget is not None
    costs = {key: measure_search(key, name, limit) for key in SEARCHES}
    return {
        "budget": f"{budget.simulations}x{budget.rollouts}",
        **{key: asdict(cost) for key, cost in costs.items()},
        "ratio": float(f"{costs['mcts-python'].seconds / costs['mcts'].seconds:.4g}"),
    }


if __name__ == "__main__":
    main()
