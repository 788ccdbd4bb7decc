"""The part that all actors share. An actor has the methods that affinetes calls in a container."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from gamespiel import __version__
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import Sessions
from task_gym.checks import check_whole, read_reply
from task_gym.errors import ArgumentError, SeedError, unknown
from task_gym.seeding import SEED_LIMIT

Response = dict[str, Any]


class Episode(Protocol):
    """One episode of a server."""

    def response(self) -> Response:
        """Returns the present turn: observation, reward, done, truncated and info, without the episode's id.

        It is the response to reset and to state, and to the step that led to the turn.
        """

    def step(self, reply: str) -> Response:
        """Takes a reply; returns the next turn, or what was wrong with the reply."""


E = TypeVar("E", bound=Episode)


class Actor(Generic[E]):
    """Answers reset, step, state and stop.

    Args:
        options: The server's options.
    """

    allowed: tuple[str, ...] = ("task_id", "seed")
    """The arguments of reset."""

    def __init__(self, options: ServeOptions) -> None:
        self.sessions: Sessions[E] = Sessions(options.max_sessions, options.idle_s)
        self.methods: Mapping[str, Callable[..., Any]] = {
            "reset": self.reset, "step": self.step, "state": self.state, "stop": self.stop,
        }  # fmt: skip

    def begin(self, task_id: int | None, seed: int, arguments: Mapping[str, Any]) -> E:
        """Returns a new episode; ``arguments`` are the further ones of ``allowed``."""
        raise NotImplementedError

    def reset(self, task_id: Any = None, seed: Any = None, **arguments: Any) -> Response:
        """Begins an episode. Without a task id or a seed, one is drawn."""
        for name in arguments:
            if name not in self.allowed:
                raise ArgumentError(unknown("argument of reset", name, self.allowed))
        seed = secrets.randbelow(SEED_LIMIT) if seed is None else seed
        seed = check_whole("seed", seed, SEED_LIMIT, SeedError)
        name, episode = self.sessions.add(lambda: self.begin(task_id, seed, arguments))
        return _named(episode.response(), name)

    def step(self, action: Any = None, episode_id: Any = None) -> Response:
        """Takes a step in an episode."""
        kept = self.sessions.find(episode_id)
        with kept.lock:
            return _named(kept.episode.step(read_reply(action)), episode_id)

    def state(self, episode_id: Any = None) -> Response:
        """Returns an episode's present turn once more."""
        kept = self.sessions.find(episode_id)
        with kept.lock:
            return _named(kept.episode.response(), episode_id)

    def stop(self, episode_id: Any = None) -> Response:
        """Ends an episode; one that is unknown is ended already."""
        return {"stopped": self.sessions.drop(episode_id), "episode_id": episode_id}


def turn(observation: str, reward: float, done: bool, truncated: bool, info: Response) -> Response:
    """Returns a response without the episode's id; ``info`` is completed by the server's name."""
    return {
        "observation": observation,
        "reward": reward,
        "done": done,
        "truncated": truncated,
        "info": {"server": f"gamespiel {__version__}", **info},
    }


def _named(response: Response, name: str) -> Response:
    return {**response, "episode_id": name}
