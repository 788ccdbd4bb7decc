"""The configured game as exact values need it, and why it may have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from game_gym import exact
from game_gym.spec import Variant
from gamespiel.errors import InvalidValueError
from gamespiel.exact_comparison import ExactGame
from gamespiel.kinds.games.keys import GameKeys
from task_gym.errors import SizeError, check_choice

if TYPE_CHECKING:
    from game_gym.tree import GameTree

QUICK = 50_000
"""The most histories of a game that runs solve unasked. Leduc poker has 9,457; liar's dice has 294,883, and
the embedded model alone takes half a minute there."""


def exact_game(env: GameKeys) -> ExactGame:
    """Returns the configured game and opponent. The game may be too large.

    Raises:
        ArgumentError: the opponent's policy is not known exactly.
        InvalidValueError: there are several opponents, env.max_turns cuts games, or actions of conversations
            are answered by name.
        SizeError: there are several games.
    """
    opponent = _require_one_opponent(env)
    check_choice("opponent", opponent, tuple(exact.OPPONENTS))
    return ExactGame(_require_variant(env), opponent, **find_form(env))


def explain_unsolved(env: GameKeys, *, asked: bool = False) -> str:
    """Returns why the configured game is not solved against its opponent; "" if it is.

    Args:
        env: The ``env`` section.
        asked: Whether the game may be as large as an evaluation takes, and not only solved in seconds.
    """
    if env.decode == "text":
        return "exact values are those of a policy behind its mask, and env.decode: text has none"
    try:
        variant, opponent = _require_variant(env), _require_one_opponent(env)
        if opponent not in exact.OPPONENTS:
            known = " and ".join(map(repr, exact.OPPONENTS))
            return f"the policy of opponent {opponent!r} is not known exactly, as that of {known} is"
        exact.check_size(variant, None if asked else QUICK, find_form(env)["conversation"])
    except (InvalidValueError, SizeError) as error:
        return str(error)
    return ""


def game_tree(env: GameKeys) -> GameTree:
    """Returns the configured game as arrays, if it is enumerated within seconds.

    Raises:
        InvalidValueError: env.max_turns cuts games, or actions of conversations are answered by name.
        SizeError: the game is too large, or of another kind.
    """
    from game_gym.tree import build_tree

    return build_tree(_require_variant(env), most=QUICK, **find_form(env))


def find_form(env: GameKeys) -> dict[str, Any]:
    """Returns how prompts are written, as keywords of ``game_gym.tree.build_tree``."""
    return {
        "rules": env.rules,
        "conversation": env.seeding if env.conversation else None,
        "list_actions": env.list_actions,
        "named": env.answer == "name",
    }


def _require_one_opponent(env: GameKeys) -> str:
    if not isinstance(env.opponent, str):
        raise InvalidValueError(
            f"exact evaluation takes one opponent, not {' and '.join(env.opponent)}: name one with --opponent"
        )
    return env.opponent


def _require_variant(env: GameKeys) -> Variant:
    if env.task_id is None and env.game is None:
        raise SizeError("exact evaluation takes one game: give env.task_id or env.game, not a set of them")
    if env.answer != "id" and env.conversation:
        raise InvalidValueError(
            "exact evaluation of conversations asks for numbers of actions: env.answer must be 'id', not "
            f"{env.answer!r}"
        )
    if env.max_turns is not None:
        raise InvalidValueError(
            f"exact evaluation plays every game to its end: env.max_turns must be null, not {env.max_turns}"
        )
    return exact.find_variant(env.task_id, env.game, env.params or None, env.allow_files)
