"""Measures how much luck AIVAT takes out of scores: `python -m benchmarks.luck`.

Everything is exact: the variance of the score and of its estimate, over all histories of a game, when two
policies play. The factor is that of the games that plain scores would need for the same error. The policies
are those that real comparisons have: uniform play, and a policy near an equilibrium (counterfactual regret
minimisation).

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from open_spiel.python.algorithms import cfr

from benchmarks.ending import Row, end, parse
from benchmarks.machine import machine
from game_gym.aivat import Table, expected_estimate, make_estimator
from game_gym.exact import find_variant, uniform
from game_gym.tree import GameTree, build_tree

GAMES = ("kuhn_poker", "leduc_poker")

#: Names of estimates, and whether each knows the agent's and the opponent's policies beside chance.
KNOWN = {
    "chance": (False, False),
    "chance, opponent": (False, True),
    "chance, agent": (True, False),
}


def solve(tree: GameTree, iterations: int) -> Table:
    """Returns the average policy of counterfactual regret minimisation after so many iterations."""
    solver = cfr.CFRPlusSolver(tree.variant.game)
    for _ in range(iterations):
        solver.evaluate_and_update_policy()
    average = solver.average_policy()
    found = []
    for state in tree.states:
        row = average.policy_for_key(state.key)
        chosen = [float(row[action]) for action in state.legal]
        found.append([value / sum(chosen) for value in chosen])
    return found


def measured(tree: GameTree, pair: str, tables: Sequence[Table]) -> list[Row]:
    """Returns the rows of two policies, the agent's first: by what is known, with and without mean hands."""
    rows = []
    for known, (own, other) in KNOWN.items():
        for blind in (False, True) if own != other else (False,):
            variance = plain = 0.0
            for seat in (0, 1):
                placed = list(tables) if seat == 0 else [tables[1], tables[0]]
                mine, theirs = tables[0] if own else None, tables[1] if other else None
                given = [mine, theirs] if seat == 0 else [theirs, mine]
                found = expected_estimate(make_estimator(tree, seat, given, blind=blind), placed)
                variance, plain = variance + found[1] / 2, plain + found[2] / 2
            row = {"pair": pair, "known": known, "hands": blind, "factor": plain / variance}
            rows.append(row | {"plain_sd": plain**0.5, "sd": variance**0.5})
    return rows


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=GAMES, metavar="GAME", help="[both]")
    parser.add_argument("--iterations", type=int, default=100, help="of the near equilibrium [100]")
    given = parse(parser, argv)
    started, rows = time.perf_counter(), []
    for game in given.games:
        tree = build_tree(find_variant(game=game), rules=False)
        even, near = tree.tabulate(uniform), solve(tree, given.iterations)
        for pair, tables in (
            ("near equilibrium, uniform", (near, even)),
            ("near equilibrium, itself", (near, near)),
        ):
            rows += [{"game": game, **row} for row in measured(tree, pair, tables)]
    for row in rows:
        hands = ", mean over hands" if row["hands"] else ""
        print(f"{row['game']}, {row['pair']}, {row['known']}{hands}: {row['factor']:.2f}")
    seconds = round(time.perf_counter() - started, 1)
    return end({"benchmark": "luck", "rows": rows, "seconds": seconds, "machine": machine()}, given.out)


if __name__ == "__main__":
    main()
