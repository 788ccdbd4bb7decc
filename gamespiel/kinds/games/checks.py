"""Checks of games' keys against each other, and of the opponents that an agent can have."""

from __future__ import annotations

from collections.abc import Sequence

from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.games.keys import GameKeys
from gamespiel.kinds.keys import format_opponent, names_of
from task_gym.opponents import OPEN, SELF


def check_game_keys(env: GameKeys) -> None:
    """Raises ``ConfigError`` if keys contradict each other."""
    if env.params and env.game is None:
        raise ConfigError("env.params needs env.game: a task id carries its own parameters")
    if env.seeds == "affine" and env.game is not None:
        raise ConfigError("env.seeds: affine needs task ids, from which the seeds follow, not env.game")
    if env.decode == "text":
        check_illegal(env)
    if SELF in names_of(env.opponent):
        _check_self(env)
    if not env.list_actions and env.answer != "name":
        raise ConfigError(
            "env.list_actions: false shows no ids, so that prompts ask for names: env.answer must be "
            f"'name', not {env.answer!r}"
        )
    if env.conversation and env.seeding == "evaluate":
        _check_evaluate(env)
    if env.context_tokens is not None and not env.conversation:
        raise ConfigError("env.context_tokens cuts conversations: it needs env.conversation: true")


def check_illegal(env: GameKeys) -> None:
    """Raises ``InvalidValueError`` if an illegal reply, which nothing masks, would be an error."""
    if env.illegal == "raise":
        raise InvalidValueError(
            "env.illegal must be penalize or forfeit if nothing masks the model, not 'raise': the first "
            "illegal reply would be an error"
        )


def _check_self(env: GameKeys) -> None:
    if env.env_mode != "local":
        raise InvalidValueError(
            "with env.opponent: self the policy plays every seat, and a server leaves one to it: "
            f"env.env_mode must be 'local', not {env.env_mode!r}"
        )
    if env.max_turns is not None:
        raise InvalidValueError(
            f"with env.opponent: self every game is played to its end: env.max_turns must be null, not "
            f"{env.max_turns}"
        )
    if env.reward != "score":
        raise InvalidValueError(
            f"with env.opponent: self each seat is paid its score: env.reward must be 'score', not "
            f"{env.reward!r}"
        )


def _check_evaluate(env: GameKeys) -> None:
    """Raises ``InvalidValueError`` unless games can be shown as upstream's ``evaluate`` shows them."""
    means = "with env.conversation and env.seeding: evaluate prompts are those of upstream's evaluate"
    if env.env_mode != "local":
        raise InvalidValueError(
            f"{means}, which a server does not send turn by turn: env.env_mode must be 'local', not "
            f"{env.env_mode!r}"
        )
    if env.answer != "id" and env.list_actions:
        raise InvalidValueError(f"{means}, which ask for an id: env.answer must be 'id', not {env.answer!r}")


def check_not_open(names: Sequence[str], who: str) -> None:
    """Raises ``InvalidValueError`` if an opponent leaves its seats to the caller."""
    if OPEN in names:
        raise InvalidValueError(
            f"{who} needs an opponent to play against; {OPEN!r} leaves every seat to the caller"
        )


def require_one_opponent(env: GameKeys) -> str:
    """Returns the name of the opponent that an agent behind an endpoint plays.

    Raises:
        InvalidValueError: it is a mixture, or the policy itself.
    """
    if not isinstance(env.opponent, str) or env.opponent == SELF:
        raise InvalidValueError(
            f"an agent behind an endpoint plays one opponent, not {format_opponent(env.opponent)!r}: name "
            "one with --opponent"
        )
    return env.opponent
