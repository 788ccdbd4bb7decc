"""The benchmark: its tasks, their fixed deals, and the anchors that every agent meets.

Everything here follows from names by SHA-256, so that two machines have the same deals. Whatever is changed
here makes another benchmark, which needs another ``NAME``.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyspiel

from game_gym.games import DECLARED
from game_gym.opponents.costs import estimate_move
from game_gym.spec import Variant
from game_gym.task import CONFIGS, decode, encode
from gamespiel.errors import InvalidValueError
from gamespiel.measure.play import Match
from gamespiel.measure.ratings import Scale
from task_gym.errors import OpponentError, quote
from task_gym.opponents import make_opponent
from task_gym.seeding import DRAWN_LIMIT
from trace_gym.programs.base import TASKS
from trace_gym.programs.builtin import CELLS, LEVELS, NAMES, cells

NAME = "gamespiel-1"
"""The benchmark's name, a part of every seed."""

GAMES = (
    "blackjack", "leduc_poker", "liars_dice", "phantom_ttt", "goofspiel", "dots_and_boxes", "hex", "clobber",
    "euchre", "bridge", "hearts", "amazons", "oware", "go", "othello", "checkers", "solitaire", "2048",
    "quoridor", "chess", "gin_rummy", "backgammon",
)  # fmt: skip
"""The games of the task-id table, in the order in which a round plays them: those of few turns first."""

TRACE = "trace/"
"""The prefix of the name of a family of programs."""

TASK_NAMES = (*(f"{TRACE}{family}" for family in NAMES), *GAMES)
"""The tasks, in the order of a round."""

ANCHORS = ("random", "mcts/1000", "mcts/100")
"""The opponents that everybody meets: a search's number is the part of the game's own budget that it has."""

SIMULTANEOUS_ANCHORS = ("random", "first")
"""Those of a game in which players move at once, where no search can sit."""

SCALES_FILE = Path(__file__).with_name("anchors.json")
"""The anchors' ratings: constants, which ``python -m scripts.measure_anchors`` has measured."""

SCALES: Mapping[str, Scale] = {
    game: Scale(tuple(row["anchors"]), row["ties"], row["bias"])
    for game, row in json.loads(SCALES_FILE.read_text(encoding="utf-8")).items()
}
"""Game to the scale of its anchors, in their order; games for one player have none."""

MEETING_GAMES = tuple(game for game in GAMES if game in SCALES and game not in ("euchre", "bridge", "hearts"))
"""The games for two players, in which agents can also meet each other."""

NOBODY = "none"
"""The opponent of tasks for one player."""

FIXED = "fixed"
"""The name of the deals that are always the same."""

MOST_DEALS = 10_000
"""The most deals of a task."""

SLOWEST_MOVE = 0.3
"""CPU seconds that a move of a search at the whole budget may take: above, it does not enter a game."""

MOST_ROLLOUTS = 10_000_000
"""The most rollouts of a search's move; upstream's largest budget has 600,000."""

_SEARCH = re.compile(r"((?:is)?mcts)(?:/([1-9]\d{0,8})|:([1-9]\d{0,8}(?:x[1-9]\d{0,8})?))?")


@dataclass(frozen=True)
class DealSet:
    """The deals of the benchmark under one name.

    Attributes:
        name: ``FIXED``, or DATE:HASH: nobody could train on those before the hash was public.
    """

    name: str = FIXED

    def draw(self, *place: object) -> bytes:
        """Returns 32 bytes that follow from the benchmark, this name and a place."""
        return sha256("/".join((NAME, self.name, *map(str, place))).encode()).digest()

    def draw_seed(self, *place: object) -> int:
        """Returns a seed of environments that follows from a place."""
        return int.from_bytes(self.draw(*place)[:8], "big") % DRAWN_LIMIT

    def list_matches(self, task: str, deal: int) -> list[Match]:
        """Returns the matches of a deal: every seat against every anchor."""
        drawn = self.draw("deal", task, deal)
        number, seed = int.from_bytes(drawn[8:16], "big"), self.draw_seed("deal", task, deal)
        if task.startswith(TRACE):
            # Drawn like the rest: on a known order, as of levels in turn, bets against a true mean would win.
            level = LEVELS[int.from_bytes(drawn[16:24], "big") % len(LEVELS)]
            (cell,) = cells(level, task.removeprefix(TRACE))
            task_id = number % (TASKS // CELLS) * CELLS + cell
            return [Match(task, deal, task_id, seed, 0, NOBODY, 0, (seed, {"task_id": task_id}))]
        task_id = encode(task, number % CONFIGS)
        game = load_task(task_id)
        variant = game.variant
        pairs = [(name, seat) for name in list_anchors(variant) for seat in range(variant.players)]
        matches = []
        for place, (name, seat) in enumerate(pairs):
            opponent = resolve_opponent(name, variant)
            options: dict[str, Any] = {"task_id": task_id, "seat": seat}
            options |= {} if opponent == NOBODY else {"opponent": opponent}
            matches.append(Match(task, deal, task_id, seed, seat, opponent, place, (seed, options), game))
        return matches

    def list_meetings(self, task: str, deal: int, rival: str) -> list[Match]:
        """Returns the matches in which two agents meet: the deal as before, from each seat.

        Args:
            task: One of ``MEETING_GAMES``.
            deal: The number of the deal.
            rival: The name of the agent in the other seat.
        """
        first, *others = self.list_matches(task, deal)
        following = first.place + len(others) + 1
        return [
            first._replace(seat=seat, opponent=rival, place=following + seat, reset=(first.seed, None))
            for seat in range(2)
        ]


load_task = lru_cache(maxsize=4096)(decode)
"""The game of a task id."""


def parse_deals(text: str) -> DealSet:
    """Returns the deals that a text names.

    Raises:
        InvalidValueError: it is neither ``fixed`` nor DATE:HASH.
    """
    if text == FIXED:
        return DealSet()
    date, colon, digits = text.partition(":")
    try:
        good = datetime.date.fromisoformat(date).isoformat() == date
    except ValueError:
        good = False
    if not (colon and good and re.fullmatch(r"[0-9a-f]{40,128}", digits)):
        raise InvalidValueError(
            f"--deals {quote(text)}: allowed: {FIXED}, or DATE:HASH with a date as 2026-12-24 and a public "
            "hash of that date, 40 to 128 digits 0-9a-f in lower case"
        )
    return DealSet(text)


def list_anchors(variant: Variant) -> tuple[str, ...]:
    """Returns the anchors of a game; ``NOBODY`` if it has one seat."""
    if variant.players == 1:
        return (NOBODY,)
    simultaneous = variant.game.get_type().dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL
    return SIMULTANEOUS_ANCHORS if simultaneous else ANCHORS


def is_search(name: str) -> bool:
    """Returns whether a name is that of a search: mcts or ismcts, whole, /N or :SIMS[xROLLOUTS].

    A budget of more than ``MOST_ROLLOUTS`` is none: nobody could verify what it played.
    """
    match = _SEARCH.fullmatch(name)
    return match is not None and math.prod(map(int, (match[3] or "1").split("x"))) <= MOST_ROLLOUTS


def resolve_opponent(name: str, variant: Variant) -> str:
    """Returns an agent or anchor as environments name it in a game: a search with its budget there.

    "mcts/100" has a hundredth of the rollouts of the game's own budget: as many simulations as
    before, if there are so many, and fewer rollouts for each.

    Raises:
        OpponentError: the game has no budget of its own, and the name needs it.
    """
    match = _SEARCH.fullmatch(name)
    if match is None or match[2] is None:
        return name
    if (budget := variant.spec.budget) is None:
        raise OpponentError(
            f"{variant.spec.name} declares no budget of search, of which a part could be taken"
        )
    rollouts = max(2, budget.simulations * budget.rollouts // int(match[2]))
    simulations = min(budget.simulations, rollouts)
    return f"{match[1]}:{simulations}x{max(1, rollouts // simulations)}"


@lru_cache(maxsize=1 << 15)
def explain_refusal(name: str, task: str) -> str:
    """Returns why a baseline does not enter a task; "" if it does."""
    if not is_search(name):
        return ""
    if task.startswith(TRACE):
        return "a search plays games"
    if name.startswith("ismcts") and task == "bridge":
        return "a world of bridge takes a good part of a second to draw, because every deal is solved"
    for config in range(DECLARED[task].variants):
        variant = load_task(encode(task, 0) + config).variant
        try:
            playing = resolve_opponent(name, variant)
            make_opponent(playing, variant.game, variant.spec, 0)
        except OpponentError as error:
            return " ".join(str(error).split())
        if name == "mcts" and estimate_move(playing, variant) > SLOWEST_MOVE:
            return f"a move takes more than {SLOWEST_MOVE} s in some of its variants"
    return ""
