"""The games: the table that task ids point into, and the declarations."""

from __future__ import annotations

from importlib import import_module

from game_gym.games.generic import generic_spec
from game_gym.spec import GameSpec
from task_gym.errors import GameError, nearest, quote

TABLE: tuple[str, ...] = (
    "goofspiel",
    "liars_dice",
    "leduc_poker",
    "gin_rummy",
    "othello",
    "backgammon",
    "hex",
    "clobber",
    "hearts",
    "euchre",
    "dots_and_boxes",
    "go",
    "chess",
    "checkers",
    "quoridor",
    "blackjack",
    "phantom_ttt",
    "2048",
    "solitaire",
    "bridge",
    "amazons",
    "oware",
)
"""The games by task-id index.

The table is frozen, because task ids that people use point into it: the order never changes, and nothing is
added (a longer table would renumber every id above it).
"""

_MODULES = (
    "leduc_poker",
    "kuhn_poker",
    "tic_tac_toe",
    "blackjack",
    "phantom_ttt",
    "game_2048",
    "solitaire",
    "bridge",
    "amazons",
    "oware",
    "goofspiel",
    "liars_dice",
    "gin_rummy",
    "othello",
    "backgammon",
    "hex",
    "clobber",
    "hearts",
    "euchre",
    "dots_and_boxes",
    "go",
    "chess",
    "checkers",
    "quoridor",
)

DECLARED: dict[str, GameSpec] = {
    spec.name: spec for spec in (import_module(f"{__name__}.{name}").SPEC for name in _MODULES)
}
"""Every declaration by OpenSpiel name.

``game=`` names games outside the table; ``register_game`` adds more.
"""


def register_game(spec: GameSpec) -> None:
    """Adds the declaration of an OpenSpiel game, which ``gym.make("GameSpiel-v0", game=NAME)`` then plays.

    It replaces the general description that an undeclared game has. Registering the same declaration again
    changes nothing. A registration is valid in one process: freshly started workers of a vector environment
    must import the module that registers.

    Args:
        spec: The declaration; OpenSpiel must know a game of its name (``pyspiel.register_game`` adds one).

    Raises:
        GameError: the game is declared already, or OpenSpiel has none of that name.
    """
    known = DECLARED.get(spec.name)
    if known is spec:
        return
    if known is not None:
        raise GameError(
            f"game: {spec.name!r} was given, which is declared already; allowed: games that are not"
        )
    find_game(spec.name)  # an error unless OpenSpiel has it
    DECLARED[spec.name] = spec


def find_game(name: str) -> GameSpec:
    """Returns the declaration of a game, or one made from OpenSpiel's description of it.

    Raises:
        GameError: OpenSpiel has no such game.
    """
    spec = DECLARED.get(name) if isinstance(name, str) else None
    if spec is not None:
        return spec
    # Imported here: listing OpenSpiel's games takes longer than everything else in this file.
    import pyspiel

    names = pyspiel.registered_names()
    if isinstance(name, str) and name in names:
        return generic_spec(name)
    # OpenSpiel's own way of writing parameters.
    if isinstance(name, str) and (plain := name.partition("(")[0]) != name and plain in names:
        raise GameError(f"game: {name!r} was given, allowed: {plain!r}, with parameters as params={{…}}")
    listed = ", ".join(repr(known) for known in DECLARED)
    raise GameError(
        f"game: {quote(name)} was given, allowed: OpenSpiel's {len(names)} games, of which these are "
        f"declared: {listed}{nearest(name, names)}"
    )
