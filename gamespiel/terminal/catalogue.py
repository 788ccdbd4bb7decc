"""``gamespiel games``: the declared games with their sizes."""

from __future__ import annotations

from typing import Any

import pyspiel
from rich.console import Console

from game_gym.games import DECLARED, TABLE
from game_gym.spec import GameSpec, load_variant
from game_gym.task import encode
from gamespiel.report.tables import Grid
from gamespiel.report.text import print_json


def _describe_game(spec: GameSpec) -> dict[str, Any]:
    variants = [load_variant(spec, spec.params(config)) for config in range(spec.variants)]
    kind = variants[0].game.get_type()
    actions = [variant.actions for variant in variants]
    lengths = [variant.game.max_game_length() for variant in variants]
    return {
        "game": spec.name,
        "first_task_id": encode(spec.name, 0) if spec.name in TABLE else None,
        "players": variants[0].players,
        "perfect_information": kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION,
        "chance": kind.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC,
        "simultaneous": kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS,
        "actions": [min(actions), max(actions)],
        "moves_at_most": [min(lengths), max(lengths)],
        "variants": [spec.params(config) for config in range(spec.variants)],
        "parameters": {name: list(values) for name, values in spec.allowed.items()},
        "budget": None if spec.budget is None else [spec.budget.simulations, spec.budget.rollouts],
    }


def show_games(console: Console, *, as_json: bool) -> None:
    """Prints the declared games as a table, or as JSON: those of the task-id table, then the others."""
    games = [_describe_game(DECLARED[name]) for name in dict.fromkeys([*TABLE, *DECLARED])]
    if as_json:
        print_json(games)
        return
    columns = ("seats", "infor-\nmation", "actions", "moves", "vari-\nants", "search")
    table = Grid("game", columns, least=max(len(game["game"]) for game in games))
    for game in games:
        marks = "".join(mark for mark, key in (("c", "chance"), ("s", "simultaneous")) if game[key])
        information = "perfect" if game["perfect_information"] else "hidden"
        table.add_row(
            game["game"],
            str(game["players"]),
            f"{information} {marks}".rstrip(),
            *("-".join(map(str, dict.fromkeys(game[key]))) for key in ("actions", "moves_at_most")),
            str(len(game["variants"])),
            "-" if game["budget"] is None else "x".join(map(str, game["budget"])),
        )
    console.print(table)
    console.print(
        "c: with chance; s: simultaneous moves. moves: at most, by all players. search: simulations x "
        "rollouts per move of the opponent mcts. Any other OpenSpiel game is played by its name too."
    )
