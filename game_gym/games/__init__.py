"""The games: an ordered table that task ids point into, and the declarations."""

from __future__ import annotations

from game_gym.games import kuhn_poker, leduc_poker, tic_tac_toe
from game_gym.spec import GameSpec
from task_gym.errors import GameError, unknown

#: Position is the task-id index. Frozen: task ids that people hold point into it, so the order never changes
#: and nothing is added (a longer table would renumber every id above it).
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

#: Every declaration by OpenSpiel name. Games outside the table are reached with ``game=``.
DECLARED: dict[str, GameSpec] = {
    module.SPEC.name: module.SPEC for module in (leduc_poker, kuhn_poker, tic_tac_toe)
}


def find_game(name: str) -> GameSpec:
    """The declaration of a game.

    Raises:
        GameError: OpenSpiel has no such game, or it has no declaration yet; the message says which do.
    """
    spec = DECLARED.get(name) if isinstance(name, str) else None
    if spec is not None:
        return spec
    # Imported here: listing OpenSpiel's games takes longer than everything else in this file.
    import pyspiel

    if name in TABLE or name in pyspiel.registered_names():
        raise GameError(f"game: {name!r} was given, which has no declaration yet; declared: {_declared()}")
    raise GameError(unknown("game", name, DECLARED))


def _declared() -> str:
    return ", ".join(repr(name) for name in DECLARED)
