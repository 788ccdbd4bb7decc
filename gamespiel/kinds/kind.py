"""A kind of task: its keys and what they mean, the play of its episodes, and its words in reports."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.keys import EnvKeys, Keys, Ranges, list_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from game_gym.tree import GameTree
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Episode, OnStep
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from gamespiel.exact_comparison import ExactGame


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


class Kind(ABC, Generic[Keys]):
    """A kind of task. It has no state: the configuration's ``env`` section chooses tasks and how to play.

    The attributes declare it: configuration, options and the schema follow from them. A method that a kind
    does not replace does nothing, or says that there is no such thing in this kind.
    """

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
    seats: ClassVar[int] = 1
    """Seats of nearly all tasks: environments that an evaluation makes for each episode per seat."""
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
        """Raises ``ConfigError`` if keys of this kind contradict each other."""

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

    def task_ranges(self, env: Keys) -> Ranges:
        """Returns the task ids that the section may draw, as (first, last) pairs; none of a game by name."""
        arguments = self.arguments(env)
        one = arguments.get("task_id")
        return list_ranges((arguments.get("task_ids") or ()) if one is None else (one,))

    def choose_tasks(self, env: Keys, ranges: Ranges) -> Keys:
        """Returns the section with these tasks in the place of its own.

        Args:
            env: The section.
            ranges: The task ids, as (first, last) pairs.
        """
        default = type(env)()
        other = {name: getattr(default, name) for name in (*self.choosing, *self.belonging)}
        return dataclasses.replace(env, task_id=None, task_ids=tuple(ranges), **other)

    def pin_tasks(self, env: Keys) -> Keys:
        """Returns the section with names that mean the same tasks on any machine and at any time."""
        return env

    def evaluation_keys(self, env: Keys) -> Keys:
        """Returns the section as evaluations play it."""
        return env

    def check_playable(self, env: Keys, who: str) -> None:
        """Raises unless one agent can play an episode of the section.

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
        """Raises unless each opponent can play all tasks."""

    def read_task(self, name: str) -> str | int:
        """Returns the game, or the task id, that a success score is for.

        Raises:
            TaskGymError: there is no such game.
        """
        return int(name) if name.isdecimal() else name

    # -- environments --------------------------------------------------------------------------------------

    def make_env(self, env: Keys) -> gym.Env[Any, Any]:
        """Returns the environment that a policy plays, in the wrappers that the section asks for."""
        # Gymnasium's checker would slow every step of every copy; the tests run it.
        return gym.make(self.environment, disable_env_checker=True, **self.arguments(env))

    def wrap_conversation(self, env: Keys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """Returns an environment in all other wrappers, as a conversation if the section asks for it."""
        return gym_env

    def make_reply_env(self, env: Keys) -> gym.Env[Any, Any]:
        """Returns the environment that takes replies as text.

        Raises:
            InvalidValueError: there is none, or the section's replies cannot be evaluated.
        """
        raise InvalidValueError(f"no environment takes replies as text for {self.unit}")

    def text_variables(self) -> tuple[str, ...]:
        """Returns the environment variables that name files of upstream's texts: they change prompts."""
        return ()

    @abstractmethod
    def task_names(self, env: gym.Env[Any, Any]) -> list[str]:
        """Returns the names of the tasks that an environment may draw, in alphabetical order."""

    def check_self_play(self, local: gym.Env[Any, Any], learn: str) -> None:
        """Raises ``InvalidValueError`` if an environment's games cannot be learned by self-play."""

    # -- episodes of policies and baselines ----------------------------------------------------------------

    @abstractmethod
    def seeds(self, envs: TextEnvs, count: int, seed: int, taken: Taken | None = None) -> list[int]:
        """Returns the seeds of an evaluation: ``count`` episodes per seat, and none of those ``taken``."""

    @abstractmethod
    def play_agent(
        self, name: str, env: Keys, count: int, seed: int, make_envs: MakeEnvs, show_progress: ShowProgress
    ) -> list[Episode]:
        """Plays the episodes of an evaluation with a baseline, by name, and returns them."""

    # -- comparisons, of kinds that have them --------------------------------------------------------------

    def draw_deals(self, env: Keys, count: int, seed: int) -> list[Deal]:
        """Returns the deals of a comparison: ``count`` of each game, in rounds of one deal of every game.

        The deals of a smaller ``count`` are the first of a greater one.

        Raises:
            InvalidValueError: there are no comparisons of this kind, or too few tasks.
        """
        raise InvalidValueError(f"--compare is for games against opponents, not for {self.unit}")

    def make_baseline(self, name: str, envs: TextEnvs, seeds: Sequence[int]) -> Decide:
        """Returns a baseline as an agent that plays one episode per seed of its noise."""
        raise NotImplementedError

    def choose_deal(self, env: Keys, deal: Deal) -> Keys:
        """Returns the section with the task of a deal alone."""
        raise NotImplementedError

    def game_tree(self, env: Keys) -> GameTree:
        """Returns the configured game as arrays, if it is enumerated within seconds.

        Raises:
            TaskGymError: it is not, or its episodes are not the game's.
        """
        raise NotImplementedError

    # -- agents behind endpoints, of kinds that have them --------------------------------------------------

    def addresses(self, env: Keys, count: int, seed: int) -> list[EpisodeAddress]:
        """Returns the episodes of an evaluation by upstream's ``evaluate``: ``count`` per seat.

        Raises:
            InvalidValueError: there is no ``evaluate`` of this kind, or the section does not fit it.
        """
        raise InvalidValueError(f"agents behind endpoints do not play {self.unit}")

    def play_endpoint(
        self, chat: Chat, env: Keys, address: EpisodeAddress, timeout: float | None
    ) -> dict[str, Any]:
        """Plays an episode with a model; returns what upstream's ``evaluate`` returns."""
        raise NotImplementedError

    # -- exact values, of kinds that have them -------------------------------------------------------------

    def explain_unsolved(self, env: Keys, *, asked: bool = False) -> str:
        """Returns why exact values of the configured task take longer than seconds, or cannot be had.

        It is "" if they take seconds: then runs find them unasked.

        Args:
            env: The ``env`` section.
            asked: Whether somebody asked for them, so that they may take longer.
        """
        return f"{self.unit} have no exact values"

    def exact_game(self, env: Keys) -> ExactGame:
        """Returns the configured task as a game whose exact values can be computed, if it is small enough.

        Raises:
            TaskGymError: tasks of this kind, or the configured ones, have no exact values.
        """
        raise InvalidValueError(f"--exact is for games small enough to enumerate, not for {self.unit}")

    # -- reports -------------------------------------------------------------------------------------------

    @abstractmethod
    def describe_tasks(
        self, env: Keys, tasks: Sequence[str], agent: str | None = None, *, replies: bool = False
    ) -> str:
        """Returns the tasks and the opponent of an agent, for titles.

        Args:
            env: The section.
            tasks: The names of the tasks.
            agent: The name of a baseline; None for a model.
            replies: Whether a model writes replies.
        """

    def file_label(self, env: Keys, tasks: Sequence[str]) -> str:
        """Returns the tasks and the opponent, for names of result files."""
        return self.env_type

    def run_name(self, env: Keys) -> str | None:
        """Returns the first part of a new run's name; None for the model's name."""
        return None

    @abstractmethod
    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns the episodes by the groups of reports, one of which is "all"."""

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        """Returns the groups of reports that an episode belongs to, from what ``evaluate`` returned."""
        return []
