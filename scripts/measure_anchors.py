"""Measures the ratings of the benchmark's anchors: `python -m scripts.measure_anchors BOARD [--play ROUNDS]`.

The anchors play the benchmark as agents, on a board that is made or gone on with. From their scores against
each other follows the scale of each game, in which `random` has 0: the other anchors' ratings, and how often
equals tie. It is written to `gamespiel/measure/board/anchors.json`, which is a part of the benchmark: whoever
changes it changes everybody's ratings.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from game_gym.spec import Variant
from gamespiel.measure.board.benchmark import (
    ANCHORS,
    GAMES,
    SCALES_FILE,
    SIMULTANEOUS_ANCHORS,
    list_anchors,
    load_task,
)
from gamespiel.measure.board.file import Board, load_board
from gamespiel.measure.board.run import BoardOptions, play_board
from gamespiel.measure.ratings import ELO

SPREAD = 4.0
"""The deviation of a normal prior of logarithmic strengths: it matters where one anchor loses every game."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("board", type=Path)
    parser.add_argument("--play", type=int, metavar="ROUNDS", help="deals of each game to play first")
    options = parser.parse_args(argv)
    agents = tuple(dict.fromkeys((*ANCHORS, *SIMULTANEOUS_ANCHORS)))
    if options.play:
        play_board(BoardOptions(options.board, agents, options.play))
    board = load_board(options.board)
    scales = {}
    for game in GAMES:
        variant = load_task(board.deals.list_matches(game, 0)[0].task_id or 0).variant
        if variant.players > 1:
            scales[game] = fit_scale(board, game, variant)
    SCALES_FILE.write_text(json.dumps(scales, indent=1) + "\n")
    return 0


def fit_scale(board: Board, game: str, variant: Variant) -> dict[str, Any]:
    """Returns the values of a game's ``Scale``, and the matches that they follow from."""
    names = list_anchors(variant)
    scores, counts, ties = (np.zeros((len(names), len(names))) for _ in range(3))
    outcomes: set[float] = set()
    for agent, name in enumerate(names):
        for unit in board.list_counted(name):
            rows = board.played[unit] if unit[1] == game else []
            for place, row in enumerate(rows):
                if row["score"] is not None:
                    at = agent, place * len(names) // len(rows)
                    scores[at] += row["score"]
                    counts[at] += 1
                    ties[at] += row["score"] == 0.5
                    outcomes.add(row["score"])
    tied = outcomes <= {0.0, 0.5, 1.0} and bool(ties.any())
    sides = variant.players == 2

    def lose(values: np.ndarray) -> float:
        strengths, tie, bias = np.append(0.0, values[2:]), values[0], 0.0 if sides else values[1]
        half = (strengths[:, None] - strengths[None, :] + bias) / 2
        total = np.log(np.exp(half) + np.exp(-half) + (np.exp(tie) if tied else 0.0))
        likelihood = (2 * scores - counts) * half - counts * total + (ties * tie if tied else 0.0)
        return float(-likelihood.sum() + (values**2).sum() / (2 * SPREAD**2))

    tie, bias, *strengths = minimize(lose, np.zeros(len(names) + 1), method="BFGS").x.tolist()
    return {
        "anchors": [0.0, *(round(ELO * value, 1) for value in strengths)],
        "ties": round(math.exp(tie), 3) if tied else 0.0,
        "bias": 0.0 if sides else round(ELO * bias, 1),
        "matches": int(counts.sum()),
    }


if __name__ == "__main__":
    raise SystemExit(main())
