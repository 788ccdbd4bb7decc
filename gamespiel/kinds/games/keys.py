"""The keys of games in the ``env`` section."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import WHOLE, Count, Index, Many, key
from gamespiel.kinds.keys import PART, EnvKeys, Name, Opponents
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
