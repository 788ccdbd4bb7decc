"""The episodes of an evaluation, and who plays them: addresses, deals and the answers of baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import OnStep
    from gamespiel.agents.sampling.decisions import Answer

MakeEnvs: TypeAlias = "Callable[[int], TextEnvs]"
"""Number of environments to that many copies of the configured environment."""

ShowProgress: TypeAlias = "Callable[[int], AbstractContextManager[OnStep]]"
"""Number of episodes to a context whose value is called after each step; see ``report.progress``."""


class EpisodeAddress(NamedTuple):
    """One episode of an evaluation.

    Attributes:
        task_id: The task; None for a game by name.
        seed: The seed.
        task: The kind's own name of the task, to play it here.
        seat: The agent's seat; None for the one that the seed gives.
    """

    task_id: int | None
    seed: int
    task: Any = None
    seat: int | None = None


class Deal(NamedTuple):
    """The conditions that compared agents share: one seed of one task, played from every seat.

    Attributes:
        game: The name of the group of tasks that it is of.
        number: Its number among the deals of the game.
        drawn: The seed of the environment's reset.
        address: The episode, without a seat.
        seats: The seats from which it is played; (None,) if there are none.
    """

    game: str
    number: int
    drawn: int
    address: EpisodeAddress
    seats: tuple[int | None, ...]


def answers_of(actions: Iterable[Any]) -> list[Answer]:
    """Returns a baseline's actions as its answers."""
    from gamespiel.agents.sampling.decisions import Answer

    return [Answer(int(action)) for action in actions]
