"""The keys of games in the ``env`` section, their checks, and those of an agent's opponents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import WHOLE, Count, Index, Many, key
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.kinds.keys import PART, EnvKeys, Name, Opponents, format_opponent, names_of
from task_gym.opponents import OPEN, SELF

GameParam = str | int | float | bool


@dataclass(frozen=True, config=PART)
class GameKeys(EnvKeys):
    """The keys of games."""

    game: str | None = key(None, "an OpenSpiel game by name")
    params: dict[Name, GameParam] = key({}, "the game's parameters")
    allow_files: bool = key(
        False, "whether a parameter may name a file, which OpenSpiel opens: for files that you chose"
    )
    allowed_game_indices: Many[Index] = key((), "games by index (modulo 22)")
    opponent: Opponents = key(
        "random",
        "random, first, self, policy:RUN, openai:MODEL@URL, or mcts, mcts-fast, ismcts, mcts-python, "
        "also with :SIMS[xROLLOUTS]; or several with weights, as {random: 0.5, mcts:100: 0.3, self: 0.2}, "
        "one drawn per episode",
    )
    seeding: Literal["openenv", "evaluate"] = key("openenv", "the protocol that expands a seed")
    seeds: Literal["drawn", "affine"] = key(
        "drawn", "where seeds come from: drawn, or affine, a task's own as in affinetes' competition"
    )
    rules: bool = key(True, "put the rules into each prompt")
    list_actions: bool = key(
        True, "list the legal actions in each prompt; if not, a line says how an action is written"
    )
    conversation: bool = key(
        False,
        "make an episode one conversation, in the layout of the protocol that env.seeding names, and not a "
        "prompt per turn",
    )
    context_tokens: Count | None = key(
        None, "the most tokens of a conversation, whose oldest turns are left out then (null: the model's)"
    )
    reward: str = key(
        "score", "what an episode pays: score, upstream, or one that an imported module registers"
    )
    max_turns: Annotated[int, Field(ge=2), WHOLE] | None = key(None, "cut an episode after this many turns")


def seat_name(opponent: str) -> str:
    """Returns an opponent's name as environments know it: seats of the policy itself are open there."""
    return OPEN if opponent == SELF else opponent


def find_form(env: GameKeys) -> dict[str, Any]:
    """Returns how prompts are written, as keywords of ``game_gym.tree.build_tree``."""
    return {
        "rules": env.rules,
        "conversation": env.seeding if env.conversation else None,
        "list_actions": env.list_actions,
        "named": env.answer == "name",
    }


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
