"""``gamespiel verify --replay_models``: a random share of a model's deals, played again by the model itself.

Who verifies draws the share. An author who knew which deals are drawn would forge only the others.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from gamespiel.errors import InvalidValueError
from gamespiel.measure.agents import Agent
from gamespiel.measure.board.agents import describe, read_agents
from gamespiel.measure.board.file import Board
from gamespiel.measure.board.players import Opened, make_player, play_deal
from gamespiel.measure.board.replays import DIGITS, find_first_difference
from gamespiel.measure.journal import Row
from gamespiel.measure.options import EndpointOptions
from gamespiel.report.text import print_plain
from task_gym.errors import nearest, quote

OPTION = "--replay_models"

NEAR, ALIKE = 0.01, 2.0
"""How far a probability may be off, and by which factor: other processors and types round in another way.

The factor is 5% of the logarithm of the least probability, 1e-6.
"""

FORGED = 0.05
"""The share of forged deals whose chance to be found is said."""


def read_models(models: Sequence[str], share: float, data: Mapping[str, Any]) -> list[Agent]:
    """Returns the agents of a board that play again.

    Args:
        models: As NAME=AGENT: the board's name for it, and a run's folder or ``model:PRESET``.
        share: The share of its deals that each plays, in (0, 1].
        data: The board as plain data.

    Raises:
        InvalidValueError: the share is out of range, the board has no such model, or it is none.
    """
    if not 0 < share <= 1:
        raise InvalidValueError(f"--share must be above 0 and at most 1, not {share}")
    entries = [entry for entry in data["agents"] if entry["kind"] != "meeting"]
    names = sorted((entry["name"] for entry in entries), key=len, reverse=True)
    agents = []
    for model in models:
        name = next((name for name in names if model.startswith(f"{name}=")), None)  # it can have a "="
        if name is None:
            raise InvalidValueError(
                f"{OPTION} {quote(model)}: the board has {', '.join(map(quote, names))}; allowed: NAME=AGENT"
                f"{nearest(model.partition('=')[0], names)}"
            )
        (agent,) = read_agents([f"model={model.removeprefix(f'{name}=')}"], data["track"], OPTION)
        if agent.config is None:
            raise InvalidValueError(
                f"{OPTION} {quote(name)}: {quote(agent.spec)} is no model that is here; allowed: NAME=AGENT "
                "with a run's folder or model:PRESET"
            )
        describe(agent, data["track"])  # raises if its files do not follow from its digest
        agents.append(dataclasses.replace(agent, name=name))
    return agents


def replay_models(
    board: Board, agents: Sequence[Agent], share: float, seed: int | None, console: Console
) -> list[str]:
    """Plays a share of the deals of each model again; returns what is not as the board says.

    A model's moves follow from its probabilities and from noise that the deal decides, so a forged move, or
    one of another model, shows as soon as its deal is drawn.

    Args:
        board: The board, whose episodes are those of its deals.
        agents: The models; see ``read_models``.
        share: The share of its deals; at least one is drawn.
        seed: Draws them; None for one that nobody knew before. It is printed.
        console: The console to print on.
    """
    seed = secrets.randbits(64) if seed is None else seed
    return [line for agent in agents for line in _replay_model(board, agent, share, seed, console)]


def _replay_model(board: Board, agent: Agent, share: float, seed: int, console: Console) -> list[str]:
    entry, here = board.entries[agent.name], describe(agent, board.track)
    keys = {*entry, *here} - {"agent", "checkpoint"}
    other = sorted(key for key in keys if entry.get(key) != here.get(key))
    if other:
        return [
            f"{quote(agent.name)}: {key} is {quote(entry.get(key))} on the board, and {quote(here.get(key))} "
            f"of {quote(agent.spec)}"
            for key in other
        ]
    units = board.list_counted(agent.name)
    if not units:
        return [f"{quote(agent.name)}: it has no deals that could be played again"]
    count = math.ceil(share * len(units))
    drawn = sorted(np.random.default_rng(seed).choice(len(units), count, replace=False).tolist())
    forged = math.ceil(FORGED * len(units))
    chance = 1 - math.comb(len(units) - forged, count) / math.comb(len(units), count)
    print_plain(
        console,
        f"{quote(agent.name)}: {count:,} of {len(units):,} deals are played again, drawn by seed {seed}; if "
        f"{forged:,} are forged, one of them is among these with {chance:.1%}",
    )
    player = make_player(agent, board.deals, board.track, Opened(EndpointOptions()))
    problems: list[str] = []
    try:
        for unit in (units[place] for place in drawn):
            matches = board.list_matches(unit)
            for match, row, played in zip(
                matches, board.played[unit], play_deal(player, matches), strict=True
            ):
                if problem := explain_difference(row, played):
                    problems.append(f"{quote(agent.name)}, {match}: {problem}")
    finally:
        player.close()
    return problems


def explain_difference(row: Row, played: Row) -> str:
    """Returns in what an episode is not the model's, with both probabilities of its choices; "" if equal."""
    theirs, ours = row.get("chances", []), played.get("chances", [])
    chances = f"; probabilities of its choices: {theirs} on the board, {ours} of the model" if theirs else ""
    for key in ("history", "replies"):
        said, plays = row.get(key) or [], played.get(key) or []
        if (at := find_first_difference(said, plays)) is not None:
            move = f"number {at} is {said[at]!r:.80} on the board, and {plays[at]!r:.80} of the model"
            return f"{key}: {move}{chances}"
        if len(said) != len(plays):
            return f"{key}: the board has {len(said)}, and the model {len(plays)}{chances}"
    if any(
        abs(a - b) > min(NEAR, (ALIKE - 1) * min(a, b) + 10**-DIGITS)
        for a, b in zip(theirs, ours, strict=False)
    ):
        return chances.removeprefix("; ")
    return ""
