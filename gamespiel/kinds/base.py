"""The protocol of kinds of task: everything that the other rooms need of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
)

import gymnasium as gym
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PositiveFloat
from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import LISTED, STRICT, Decode, Index, Many, key
from gamespiel.agents.models.names import NEWEST
from gamespiel.errors import InvalidValueError
from task_gym.wrappers import NamedText
from task_gym.wrappers.base import Info, TurnWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    import gymnasium as gym
    from rich.console import RenderableType

    from game_gym.exact import ExactResult
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.rollout import Episode, OnStep
    from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.endpoints.chat import Chat
    from gamespiel.exact import ExactComparison

MakeEnvs: TypeAlias = "Callable[[int], TextEnvs]"
"""Number of environments to that many copies of the configured environment."""

ShowProgress: TypeAlias = "Callable[[int], AbstractContextManager[OnStep]]"
"""Number of episodes to a context whose value is called after each step; see ``report.progress``."""


def _in_order(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError("must be [first, last] with first <= last")
    return bounds


TaskRange = Annotated[tuple[Index, Index], LISTED, AfterValidator(_in_order)]
TASK_IDS = ("task_id", "task_ids")

Name = Annotated[str, BeforeValidator(str)]
Weight = Annotated[float, Field(gt=0)]
Opponents = str | Annotated[dict[Name, Weight], Field(min_length=1)]
"""An opponent by name, or a mixture: names with the weights by which one is drawn for each episode."""


def names_of(opponent: Opponents | None) -> tuple[str, ...]:
    """Returns the names of the opponents that may play."""
    if opponent is None:
        return ()
    return (opponent,) if isinstance(opponent, str) else tuple(opponent)


def shown_opponent(opponent: Opponents) -> str:
    """Returns an opponent or a mixture as text: "random", or "random 0.5, mcts:100 0.3"."""
    if isinstance(opponent, str):
        return opponent
    return ", ".join(f"{name} {weight:g}" for name, weight in opponent.items())


PART = ConfigDict(**STRICT, defer_build=True)
"""For a kind's keys: pydantic makes no validator for them, only for the whole section."""


@dataclass(frozen=True, config=PART)
class EnvKeys:
    """The keys of the ``env`` section that all kinds of task have. A kind derives its own from it."""

    env_type: str = key("openspiel", "the kind of task")
    env_mode: Literal["local", "docker", "url"] = key("local", "where the environment runs")
    base_url: str | None = key(None, "env_mode url: the server's address")
    image: str | None = key(None, "env_mode docker: the image (null: upstream's)")
    pull: bool = key(False, "env_mode docker: pull the image first")
    mem_limit: str | None = key(None, "env_mode docker: the most memory, as 2g")
    cpu_limit: PositiveFloat | None = key(None, "env_mode docker: the most CPUs")
    docker_host: str | None = key(None, "env_mode docker: another engine, as ssh://user@host")
    server_timeout: PositiveFloat = key(60.0, "env_mode docker and url: seconds that one call may take")
    task_id: Index | None = key(None, "one task")
    task_ids: Many[Index | TaskRange] = key((), "tasks and [first, last] ranges")
    answer: Literal["id", "name"] = key("id", "how an action is written: its number or its name")
    decode: Decode = key("choice", "choose among the legal answers, or write text that nothing masks")
    think: bool = key(False, "with decode text: the model reasons before it answers")
    illegal: Literal["penalize", "forfeit", "raise"] = key("penalize", "what an illegal action does")
    use_vllm: bool = key(False, "sample from a vLLM server")
    vllm_base_url: str | None = key(None, "URL of that server")


SERVED = {
    "mode": "env_mode", "base_url": "base_url", "image": "image", "pull": "pull", "mem_limit": "mem_limit",
    "cpu_limit": "cpu_limit", "host": "docker_host", "timeout": "server_timeout",
}  # fmt: skip
"""Arguments of an environment on a server, each with the key that it is from."""

_OF_MODES = {"url": ("base_url",), "docker": ("image", "pull", "mem_limit", "cpu_limit", "host")}


def server_arguments(env: EnvKeys) -> dict[str, Any]:
    """Returns the arguments of an environment that say where it runs; none if it is local."""
    if env.env_mode == "local":
        return {}
    left_out = {name for mode, names in _OF_MODES.items() if mode != env.env_mode for name in names}
    values = {name: getattr(env, own) for name, own in SERVED.items() if name not in left_out}
    return {"backend": "affinetes", **values}


def server_keys_without_effect(env: EnvKeys) -> list[str]:
    """Returns the keys that are set and belong to another ``env_mode``."""
    default = EnvKeys()
    return [
        SERVED[name]
        for mode, names in _OF_MODES.items()
        if mode != env.env_mode
        for name in names
        if getattr(env, SERVED[name]) != getattr(default, SERVED[name])
    ]


THINK = "Reason first, between <think> and </think>. What follows is your answer."
"""The line with which ``env.think`` asks for reasoning."""

Keys = TypeVar("Keys", bound=EnvKeys)


class Address(NamedTuple):
    """One episode of an evaluation.

    Attributes:
        task_id: The task; None for a game by name.
        seed: The seed.
        task: The kind's own name of the task, to play it here.
    """

    task_id: int | None
    seed: int
    task: Any = None


class Exact(Protocol):
    """Functions that compute exact values of the configured task, such as those of ``gamespiel.exact``."""

    def check(self, env: Any) -> None: ...
    def of_policy(
        self, policy: LLMPolicy, env: Any, *, trained: bool = True, adapters: str = NEWEST
    ) -> ExactComparison: ...
    def of_agent(self, name: str, env: Any) -> ExactComparison: ...
    def solved(self, policy: LLMPolicy, env: Any, *, adapters: str = NEWEST) -> ExactResult: ...


class Kind(ABC, Generic[Keys]):
    """A kind of task. It has no state: the configuration's ``env`` section chooses tasks and how to play."""

    env_type: ClassVar[str]
    """The kind's name in configurations: the value of ``env.env_type``."""
    unit: ClassVar[str]
    """Plural noun for episodes, in messages."""
    environment: ClassVar[str]
    """Id of the environment that a policy plays."""
    agents: ClassVar[str]
    """The names of baselines, as messages write them."""
    agent_pattern: ClassVar[str]
    """A regular expression that matches these names."""
    preset: ClassVar[str | None] = None
    """The preset that is trained if neither a preset nor a file is named; None for the defaults."""
    has_opponents: ClassVar[bool] = False
    """Whether the ``env`` section's opponent plays."""
    reply_environment: ClassVar[str | None] = None
    """Id of the environment that takes replies as text; None if there is none."""
    same_tasks: ClassVar[bool] = False
    """Whether a seed is the same episode in ``reply_environment`` as in ``environment``."""
    served_as: ClassVar[str | None] = None
    """Upstream's environment of these tasks, a key of ``endpoints.EPISODE_S``; None if there is none."""
    max_new_tokens: ClassVar[int] = 32
    """Tokens of a reply, unless ``--max_new_tokens`` says otherwise."""

    # -- keys: those of other kinds have no effect on this one ---------------------------------------------

    keys: ClassVar[type[EnvKeys]]
    """The keys of the ``env`` section that this kind reads."""
    choosing: ClassVar[tuple[str, ...]] = ()
    """Those that each choose the tasks, in the place of ``TASK_IDS``; None or () if not given."""
    belonging: ClassVar[tuple[str, ...]] = ()
    """Those that belong to a choice: a later choice of tasks drops them."""
    narrowing: ClassVar[tuple[str, ...]] = ()
    """Those that narrow any choice: a later choice of tasks keeps them."""

    @property
    def choice(self) -> tuple[str, ...]:
        """The keys that choose tasks of this kind alone: for another kind, they are an error."""
        return (*self.choosing, *self.belonging, *self.narrowing)

    def check(self, env: Keys) -> None:
        """Raises ``ConfigError`` if keys of this kind contradict each other. The base class does nothing."""

    # -- tasks ---------------------------------------------------------------------------------------------

    @abstractmethod
    def arguments(self, env: Keys) -> dict[str, Any]:
        """Returns the section as arguments of ``gym.make``.

        Raises:
            InvalidValueError: the section chooses no task.
        """

    def dressed(self, env: Keys, made: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """Returns the environment that ``arguments`` made, in the wrappers that the section asks for."""
        return made

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

    def scored(self, name: str) -> str | int:
        """Returns the game, or the task id, that a success score is for.

        Raises:
            TaskGymError: there is no such game.
        """
        return int(name) if name.isdecimal() else name

    def completed(self, env: Keys) -> Keys:
        """Returns the section with values that follow from others, if a file leaves them out."""
        return env

    def settled(self, env: Keys) -> Keys:
        """Returns the section with names that mean the same tasks on any machine and at any time."""
        return env

    def prompt_tokens(self, env: Keys) -> int:
        """Returns the tokens of a long prompt, for estimates of memory."""
        return 512

    def check_played(self, env: Keys, who: str) -> None:
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

    def check_self_play(self, local: gym.Env[Any, Any], learn: str) -> None:
        """Raises ``InvalidValueError`` if an environment's games cannot be learned by self-play.

        The base class does nothing.
        """

    def measured(self, env: Keys) -> Keys:
        """Returns the section as evaluations play it."""
        return env

    @abstractmethod
    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        """Returns the names of the tasks that may be drawn, in alphabetical order."""

    @abstractmethod
    def where(self, env: Keys, tasks: Sequence[str], agent: str | None) -> str:
        """Returns the tasks and the opponent of an agent (None for a policy), for titles."""

    @abstractmethod
    def file_label(self, env: Keys, tasks: Sequence[str]) -> str:
        """Returns the tasks and the opponent, for names of result files."""

    def run_name(self, env: Keys) -> str | None:
        """Returns the first part of a new run's name; None for the model's name."""
        return None

    # -- play ----------------------------------------------------------------------------------------------

    def at_once(self, count: int) -> int:
        """Returns the number of environments that play ``count`` episodes per seat at once: one seat's."""
        return count

    @abstractmethod
    def seeds(self, envs: TextEnvs, count: int, seed: int) -> list[int]:
        """Returns the seeds of an evaluation: ``count`` episodes per seat."""

    @abstractmethod
    def play_agent(
        self, name: str, env: Keys, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        """Plays the episodes of an evaluation with a baseline, by name, and returns them."""

    @abstractmethod
    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns the episodes by the groups of reports, one of which is "all"."""

    @abstractmethod
    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        """Returns the measures by group as a table, with a note if it needs one."""

    # -- replies, of kinds with a ``reply_environment`` ----------------------------------------------------

    def make_reply_env(self, env: Keys) -> gym.Env[Any, Any]:
        """Returns the environment that takes replies as text.

        Raises:
            InvalidValueError: the section's replies cannot be evaluated.
        """
        raise InvalidValueError(f"no environment takes replies as text for {self.unit}")

    def reply_where(self, env: Keys, tasks: Sequence[str]) -> str:
        """Returns the tasks and the opponent of replies, for titles."""
        return self.where(env, tasks, None)

    def reply_table(
        self, title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
    ) -> RenderableType:
        """Returns a table of measures by group.

        Args:
            title: The title.
            masked: Measures of the masked policy on the same episodes; empty if it did not play.
            replies: Measures of replies, by how they were written ("sampled", "greedy").
        """
        raise NotImplementedError

    # -- agents behind endpoints, of kinds that have them --------------------------------------------------

    def addresses(self, env: Keys, count: int, seed: int) -> list[Address]:
        """Returns the episodes of an evaluation by upstream's ``evaluate``: ``count`` per seat.

        Raises:
            InvalidValueError: there is no ``evaluate`` of this kind, or the section does not fit it.
        """
        raise InvalidValueError(f"agents behind endpoints do not play {self.unit}")

    def play_endpoint(self, chat: Chat, env: Keys, address: Address, timeout: float | None) -> dict[str, Any]:
        """Plays an episode with a model; returns what upstream's ``evaluate`` returns."""
        raise NotImplementedError

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        """Returns the groups of reports that an episode belongs to, from what ``evaluate`` returned."""
        return []

    # -- exact values, of kinds that have them -------------------------------------------------------------

    def why_not_quick(self, env: Keys) -> str:
        """Returns why exact values of the configured task take longer than seconds, or cannot be had.

        It is "" if they take seconds: then runs find them unasked.
        """
        return f"{self.unit} have no exact values"

    def exact(self) -> Exact:
        """Returns the functions that compute exact values.

        Raises:
            InvalidValueError: tasks of this kind have none.
        """
        raise InvalidValueError(f"--exact is for games small enough to enumerate, not for {self.unit}")


class Thinking(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for reasoning before the answer, in a line before the question that ends an observation.

    The environment's own rule finds the answer: it has to leave out what is between the tags.
    """

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns the text with the line, and the info as it is; the text after the end stays."""
        if "result" in info:
            return observation, info
        state, line_end, question = observation.rpartition("\n")
        text = f"{state}{line_end}{THINK}\n{question}"
        return NamedText(text, observation.names) if isinstance(observation, NamedText) else text, info


def answers_of(actions: Iterable[Any]) -> list[Answer]:
    """Returns a baseline's actions as its answers."""
    from gamespiel.agents.sampling.decisions import Answer

    return [Answer(int(action)) for action in actions]
