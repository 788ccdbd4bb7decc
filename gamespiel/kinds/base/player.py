"""The player of a kind of task: what training and evaluation ask to play its episodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.base.declaration import Declaration
from gamespiel.kinds.base.keys import Keys
from task_gym.wrappers import NamedText
from task_gym.wrappers.base import Info, TurnWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
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


@dataclass(frozen=True)
class Player(ABC, Generic[Keys]):
    """A kind's environments, and the play of their episodes.

    Attributes:
        declaration: The kind's declaration.
    """

    declaration: Declaration[Keys]

    def text_variables(self) -> tuple[str, ...]:
        """Returns the environment variables that name files of upstream's texts: they change prompts."""
        return ()

    # -- environments --------------------------------------------------------------------------------------

    def make_env(self, env: Keys) -> gym.Env[Any, Any]:
        """Returns the environment that a policy plays, in the wrappers that the section asks for."""
        # Gymnasium's checker would slow every step of every copy; the tests run it.
        arguments = self.declaration.arguments(env)
        gym_env = gym.make(self.declaration.environment, disable_env_checker=True, **arguments)
        return self.wrap_env(env, gym_env)

    def wrap_env(self, env: Keys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """Returns an environment in the wrappers that the section asks for; here in none."""
        return gym_env

    def wrap_conversation(self, env: Keys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        """Returns an environment, which has all other wrappers, as a conversation if the section asks for it.

        The base class returns it as it is.
        """
        return gym_env

    def make_reply_env(self, env: Keys) -> gym.Env[Any, Any]:
        """Returns the environment that takes replies as text.

        Raises:
            InvalidValueError: there is none, or the section's replies cannot be evaluated.
        """
        raise InvalidValueError(f"no environment takes replies as text for {self.declaration.unit}")

    @abstractmethod
    def task_names(self, env: gym.Env[Any, Any]) -> list[str]:
        """Returns the names of the tasks that an environment may draw, in alphabetical order."""

    def check_self_play(self, local: gym.Env[Any, Any], learn: str) -> None:
        """Raises ``InvalidValueError`` if an environment's games cannot be learned by self-play.

        The base class does nothing.
        """

    # -- episodes of policies and baselines ----------------------------------------------------------------

    def env_count(self, count: int) -> int:
        """Returns the number of environments that play ``count`` episodes per seat at once: one seat's."""
        return count

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
        raise InvalidValueError(f"--compare is for games against opponents, not for {self.declaration.unit}")

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
        raise InvalidValueError(f"agents behind endpoints do not play {self.declaration.unit}")

    def play_endpoint(
        self, chat: Chat, env: Keys, address: EpisodeAddress, timeout: float | None
    ) -> dict[str, Any]:
        """Plays an episode with a model; returns what upstream's ``evaluate`` returns."""
        raise NotImplementedError

    # -- exact values, of kinds that have them -------------------------------------------------------------

    def explain_unsolved(self, env: Keys) -> str:
        """Returns why exact values of the configured task take longer than seconds, or cannot be had.

        It is "" if they take seconds: then runs find them unasked.
        """
        return f"{self.declaration.unit} have no exact values"

    def exact_game(self, env: Keys) -> ExactGame:
        """Returns the configured task as a game whose exact values can be computed, if it is small enough.

        Raises:
            TaskGymError: tasks of this kind, or the configured ones, have no exact values.
        """
        raise InvalidValueError(
            f"--exact is for games small enough to enumerate, not for {self.declaration.unit}"
        )


THINK = "Reason first, between <think> and </think>. What follows is your answer."
"""The line with which ``env.think`` asks for reasoning."""


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
