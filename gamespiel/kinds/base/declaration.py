"""The declaration of a kind of task: what configuration, options and the schema ask."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, NamedTuple

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.base.keys import EnvKeys, Keys


class Baselines(NamedTuple):
    """The baselines of a kind of task, which ``--agent`` names.

    Attributes:
        names: Their names, as messages write them.
        pattern: A regular expression that matches each name.
    """

    names: str
    pattern: str


class Replies(NamedTuple):
    """How a kind of task is played by replies as text.

    Attributes:
        environment: Id of the environment that takes them.
        same_tasks: Whether a seed is the same episode there as in the environment with a mask.
        max_new_tokens: Tokens of a reply, unless ``--max_new_tokens`` says otherwise.
    """

    environment: str
    same_tasks: bool = False
    max_new_tokens: int = 32


class Declaration(ABC, Generic[Keys]):
    """A kind's name, its keys in the ``env`` section, and what they mean."""

    env_type: ClassVar[str]
    """The kind's name in configurations: the value of ``env.env_type``."""
    unit: ClassVar[str]
    """Plural noun for episodes, in messages."""
    environment: ClassVar[str]
    """Id of the environment that a policy plays."""
    replies: ClassVar[Replies | None] = None
    """How it is played by replies as text; None if no environment takes them."""
    baselines: ClassVar[Baselines]
    """The baselines that it is played by."""
    preset: ClassVar[str | None] = None
    """The preset that is trained if neither a preset nor a file is named; None for the defaults."""
    has_opponents: ClassVar[bool] = False
    """Whether the ``env`` section's opponent plays."""
    served_as: ClassVar[str | None] = None
    """Upstream's environment of these tasks, a key of ``endpoints.EPISODE_S``; None if there is none."""

    # -- keys: those of other kinds have no effect on this one ---------------------------------------------

    keys: ClassVar[type[EnvKeys]]
    """The keys of the ``env`` section that this kind reads."""
    choosing: ClassVar[tuple[str, ...]] = ()
    """Those that each choose the tasks, in the place of ``TASK_IDS``; None or () if not given."""
    belonging: ClassVar[tuple[str, ...]] = ()
    """Those that belong to a choice: a later choice of tasks drops them."""
    narrowing: ClassVar[tuple[str, ...]] = ()
    """Those that narrow any choice: a later choice of tasks keeps them."""

    asking: ClassVar[tuple[str, ...]] = ("answer", "decode", "think")
    """Those that say how a policy is asked, and not what is played: a policy keeps those of its training."""

    @property
    def choice(self) -> tuple[str, ...]:
        """The keys that choose tasks of this kind alone: for another kind, they are an error."""
        return (*self.choosing, *self.belonging, *self.narrowing)

    def check_keys(self, env: Keys) -> None:
        """Raises ``ConfigError`` if keys of this kind contradict each other. The base class does nothing."""

    def complete_keys(self, env: Keys) -> Keys:
        """Returns the section with values that follow from others, if a file leaves them out."""
        return env

    # -- what the section means ----------------------------------------------------------------------------

    @abstractmethod
    def arguments(self, env: Keys) -> dict[str, Any]:
        """Returns the section as arguments of ``gym.make``.

        Raises:
            InvalidValueError: the section chooses no task.
        """

    def task_ranges(self, env: Keys) -> list[tuple[int, int]] | None:
        """Returns the task ids that the section may draw, as (first, last) pairs; None if there are none."""
        arguments = self.arguments(env)
        if arguments.get("task_id") is not None:
            return [(arguments["task_id"], arguments["task_id"])]
        listed = arguments.get("task_ids")
        if not listed:
            return None
        return [(one, one) if isinstance(one, int) else (one[0], one[1]) for one in listed]

    def choose_tasks(self, env: Keys, ranges: Sequence[tuple[int, int]]) -> Keys:
        """Returns the section with these tasks in the place of its own.

        Args:
            env: The section.
            ranges: The task ids, as (first, last) pairs.
        """
        default = type(env)()
        other = {name: getattr(default, name) for name in (*self.choosing, *self.belonging)}
        return dataclasses.replace(env, task_id=None, task_ids=tuple(ranges), **other)

    def choose_opponent(self, env: Keys, name: str) -> Keys:
        """Returns the section with an opponent in the place of its own."""
        changes: Any = {"opponent": name}
        return dataclasses.replace(env, **changes)

    def pin_tasks(self, env: Keys) -> Keys:
        """Returns the section with names that mean the same tasks on any machine and at any time."""
        return env

    def evaluation_keys(self, env: Keys) -> Keys:
        """Returns the section as evaluations play it."""
        return env

    def check_playable(self, env: Keys, who: str) -> None:
        """Raises unless one agent can play an episode of the section. The base class does nothing.

        Args:
            env: The section.
            who: "training" or "evaluation", for the message.

        Raises:
            InvalidValueError: one agent cannot.
        """

    def plays_itself(self, env: Keys) -> bool:
        """Returns whether the policy in training plays every seat."""
        return False

    def track(self, env: Keys, *, writes: bool) -> str | None:
        """Returns the track on which a model plays (``gamespiel.tracks``); None if there are no tracks.

        Args:
            env: The section.
            writes: Whether the model writes replies, and nothing masks it.
        """
        return None

    def prompt_tokens(self, env: Keys) -> int:
        """Returns the tokens of a long prompt, for estimates of memory."""
        return 512

    def uses_conversations(self, env: Keys) -> bool:
        """Returns whether an episode is one conversation, and not a prompt of its own per turn."""
        return False

    def context_tokens(self, env: Keys) -> int | None:
        """Returns the most tokens of a conversation; None for the model's limit, or without conversations."""
        return None

    # -- curriculum ----------------------------------------------------------------------------------------

    def stage_tasks(self, env: Keys, ids: list[Any] | None, level: int | None, family: str | None) -> Any:
        """Returns the task ids of a curriculum's stage, None for all that the section may draw.

        Args:
            env: The section.
            ids: The stage's ids and ranges; None if it names none.
            level: The stage's level of difficulty.
            family: The stage's family of tasks.

        Raises:
            InvalidValueError: tasks of this kind have no levels or families.
        """
        for name, value in (("level", level), ("family", family)):
            if value is not None:
                raise InvalidValueError(
                    f"curriculum.stages: {name} = {value!r} was given, and {self.unit} have none"
                )
        return ids

    def check_opponents(self, env: Keys, names: Sequence[str]) -> None:
        """Raises unless each opponent can play all tasks. The base class does nothing."""

    def read_task(self, name: str) -> str | int:
        """Returns the game, or the task id, that a success score is for.

        Raises:
            TaskGymError: there is no such game.
        """
        return int(name) if name.isdecimal() else name
