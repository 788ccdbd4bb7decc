"""Facts about a declared game, from OpenSpiel, from the opponents and from short random play."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyspiel

from game_gym.env import GameSpielEnv
from game_gym.games import DECLARED, TABLE, find_game
from game_gym.prompts import render
from game_gym.spec import GameSpec, Variant, load_variant
from task_gym.errors import GameError, OpponentError
from task_gym.opponents import make_opponent
from task_gym.seeding import Stream

#: Seeds of the random games of each variant.
SEEDS = range(12)

#: Other seeds for some games: a bridge deal is solved when it is dealt, which can take seconds.
QUICK_SEEDS = {"bridge": range(2, 6)}

#: Search opponents. The registry knows which games each of them can play.
SEARCHERS = ("mcts", "mcts-fast", "ismcts")

#: OpenSpiel's games in Python, which are registered only after an import.
_PYTHON_GAMES = ("python_", "chat_game")


@dataclass(frozen=True)
class Sample:
    """The results of random play of one variant.

    Attributes:
        decisions: The number of the agent's decisions, per game.
        prompts: Characters of each observation that needs a decision, without rules.
    """

    decisions: tuple[int, ...]
    prompts: tuple[int, ...]


def names() -> list[str]:
    """Returns the names of all declared games: the table's in its order, then the others."""
    return [*TABLE, *(name for name in DECLARED if name not in TABLE)]


def variants(spec: GameSpec) -> list[Variant]:
    """Returns the loaded variants of a game, one per config id up to the period."""
    return [load_variant(spec, spec.params(config)) for config in range(spec.variants)]


def param_names(spec: GameSpec) -> list[str]:
    """Returns the names of the parameters that any config id sets."""
    return list(dict.fromkeys(key for config in range(spec.variants) for key in spec.params(config)))


@lru_cache(maxsize=256)
def sample(name: str, config: int) -> Sample:
    """Plays one config against "random" with a uniform agent, the same way every time.

    The agent's seat alternates because the seeds are consecutive. It draws from ``RandomState(seed)``.
    """
    env = GameSpielEnv(game=name, params=DECLARED[name].params(config), rules=False)
    agent = Stream()
    decisions, prompts = [], []
    for seed in QUICK_SEEDS.get(name, SEEDS):
        text, info = env.reset(seed=seed)
        agent.seed(seed)
        while "result" not in info:
            prompts.append(len(text))
            text, _, _, _, info = env.step(agent.choice(info["legal_actions"]))
        decisions.append(info["turn"])
    return Sample(tuple(decisions), tuple(prompts))


@lru_cache(maxsize=256)
def opening(name: str, config: int) -> tuple[str, str]:
    """Returns the first observation of seed 0, without rules and with rules."""
    env = GameSpielEnv(game=name, params=DECLARED[name].params(config), rules=False)
    text, info = env.reset(seed=0)
    return text, render(env.variant, env.state, info["seat"])


def kind(game: Any) -> list[str]:
    """Returns the words for a game's information, chance and simultaneous moves."""
    stated = game.get_type()
    is_open = stated.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    words = ["perfect" if is_open else "hidden"]
    if stated.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC:
        words.append("chance")
    if stated.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        words.append("simultaneous")
    return words


def score_rule(variant: Variant) -> str:
    """Returns the name of the rule of ``game_gym.score`` that turns returns into a score."""
    if variant.zero_sum or variant.players == 1:
        return "scaled"
    return "rank" if variant.players > 2 else "comparison"


def searchers(variant: Variant) -> list[str]:
    """Returns the search opponents that can play this game; none for a game of one seat."""
    return [name for name in SEARCHERS if variant.players > 1 and plays(name, variant)]


def plays(opponent: str, variant: Variant) -> bool:
    """Returns whether this opponent can play this game, at the game's declared budget."""
    try:
        make_opponent(opponent, variant.game, variant.spec, seat=0)
    except OpponentError:
        return False
    return True


def other_games() -> dict[str, list[str]]:
    """Returns OpenSpiel's games without a declaration, as headings to names. Refused games are last."""
    groups: dict[str, list[str]] = {heading: [] for heading in (*_PLAYED, *_REFUSED.values())}
    for name in pyspiel.registered_names():
        if name not in DECLARED and not name.startswith(_PYTHON_GAMES):
            groups[_heading(name)].append(name)
    return groups


_PLAYED = (
    "One seat",
    "Two seats, perfect information",
    "Two seats, hidden information",
    "Three seats and more",
    "Simultaneous moves",
)

#: A part of the error message to the page's heading.
_REFUSED = {
    "which OpenSpiel refuses": "Refused without `params`: a game to wrap, a file, a length",
    "a mean-field game": "Refused, a mean-field game, where a player faces a distribution",
    "draws its own chance": "Refused, draws its own chance, and cannot be played again from its address",
    "does not number its actions": "Refused, does not number its actions",
}


def _heading(name: str) -> str:
    try:
        variant = load_variant(find_game(name), {})
    except GameError as error:
        return next(heading for reason, heading in _REFUSED.items() if reason in str(error))
    kinds = kind(variant.game)
    if "simultaneous" in kinds:
        return _PLAYED[4]
    if variant.players == 2:
        return _PLAYED[1 if "perfect" in kinds else 2]
    return _PLAYED[0 if variant.players == 1 else 3]
