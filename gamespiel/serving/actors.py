"""The part that all actors share. An actor has the methods that affinetes calls in a container."""

from __future__ import annotations

import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Protocol

import httpx

from gamespiel import __version__
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import Chat, ClosedError, Sampling
from gamespiel.endpoints.endpoint import Endpoint, chutes_key
from gamespiel.endpoints.patience import UPSTREAM
from gamespiel.serving.hosts import fits
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import Session, Sessions, UnknownEpisodeError
from task_gym.arguments import check_whole, is_number, read_reply
from task_gym.caller import CALLER
from task_gym.errors import ArgumentError, SeedError, TaskGymError
from task_gym.remote.settings import TOKEN
from task_gym.seeding import DRAWN_LIMIT, SEED_LIMIT

Response = dict[str, Any]

MODEL, ENDPOINT = "deepseek-ai/DeepSeek-V3", "https://llm.chutes.ai/v1"
"""The defaults of ``evaluate``, which are upstream's: affinetes' own commands name no model."""


class ServedEpisode(Protocol):
    """One episode of a server."""

    def response(self) -> Response:
        """Returns the first turn: observation, reward, done, truncated and info, without the episode's id."""

    def step(self, reply: str) -> Response:
        """Takes a reply; returns the next turn, or what was wrong with the reply."""

    def state(self) -> Response:
        """Returns the present turn as upstream shows it once more: with reward 0, and without rules."""


class HostError(TaskGymError):
    """A host that the server's operator does not let ``evaluate`` ask."""


class Actor(ABC):
    """Answers reset, step, state, stop and evaluate, with arguments in upstream's order.

    Args:
        options: The server's options.
    """

    kind: str
    """The kind of task, one of ``gamespiel.endpoints.EPISODE_S``."""

    unknown_info: Response
    """The ``info`` of a response about an episode that there is not."""

    evaluation_hosts: tuple[str, ...] = ("*",)
    """Patterns of the hosts that evaluate may ask."""

    def __init__(self, options: ServeOptions) -> None:
        each = options.sessions_per_caller()
        self.sessions = Sessions[ServedEpisode](options.max_sessions, each, options.idle_s)
        self._key_hosts = options.key_hosts
        self._chats: set[Chat] = set()
        self._lock, self._ended = threading.Lock(), False
        self.methods: Mapping[str, Callable[..., Any]] = {
            "reset": self.reset, "step": self.step, "state": self.state, "stop": self.stop,
            "evaluate": self.evaluate,
        }  # fmt: skip

    @abstractmethod
    def reset(self, *arguments: Any, **named: Any) -> Response:
        """Begins an episode. Without a task id or a seed, one is drawn."""

    @abstractmethod
    def evaluate(self, *arguments: Any, **named: Any) -> Response:
        """Plays a whole episode with a model behind an OpenAI-compatible endpoint."""

    def step(self, action: Any = None, episode_id: Any = None) -> Response:
        """Takes a step in an episode."""

        def take_step(session: Session[ServedEpisode]) -> Response:
            reply = read_reply(action)
            try:
                response = session.episode.step(reply)
            except BaseException:  # in the middle of a move, from which the episode cannot go on
                self.sessions.drop(episode_id)
                raise
            session.over = bool(response["done"])
            return response

        return self._answer(episode_id, take_step)

    def state(self, episode_id: Any = None) -> Response:
        """Returns an episode's present turn once more."""
        return self._answer(episode_id, lambda session: session.episode.state())

    def stop(self, episode_id: Any = None) -> Response:
        """Ends an episode; one that is unknown is ended already."""
        if self.sessions.drop(episode_id):
            return {"status": "ok", "stopped": True, "episode_id": episode_id}
        message = f"there is no episode {episode_id!r:.80}" if episode_id else "no episode_id was given"
        return {"status": "ok", "stopped": False, "episode_id": episode_id, "message": message}

    def start(self) -> None:  # noqa: B027 (not every kind needs it)
        """Begins to start what calls need, so that the first one does not wait for it."""

    def end(self) -> None:
        """Gives up the episodes that ``evaluate`` plays: it raises ClosedError at the next reply."""
        with self._lock:
            self._ended = True
            for chat in self._chats:
                chat.close()

    def begin(self, seed: Any, make: Callable[[int], ServedEpisode]) -> Response:
        """Returns the first turn of a new episode.

        Args:
            seed: The seed; None for a drawn one.
            make: Returns the episode with a seed.
        """
        checked = _read_seed(seed)
        caller = CALLER.get()
        name, episode = self.sessions.add(lambda: make(checked), "" if caller is None else caller.name)
        response = episode.response()
        if response["done"]:  # before the first turn
            self.sessions.find(name).over = True
        return {**response, "episode_id": name}

    def ask(
        self,
        play: Callable[[Chat, int, float], Response],
        seed: Any,
        endpoint: tuple[Any, Any, Any],
        timeout: Any,
        temperature: Any,
        max_tokens: Any,
    ) -> Response:
        """Returns the result of an episode that a model plays. Its arguments are as a caller gave them.

        Args:
            play: Plays it, given the client, the seed and the seconds that the caller allows.
            seed: The seed; None for a drawn one.
            endpoint: The model's name, the endpoint's address, and its key; without a key it is the server's
                own, if that is for this host.
            timeout: Seconds; None for the kind's own.
            temperature: The temperature; None for the endpoint's own.
            max_tokens: The most tokens of a reply; None for the endpoint's own limit.
        """
        seed = _read_seed(seed)
        for name, value in (("timeout", timeout), ("temperature", temperature)):
            if value is not None and not (is_number(value) and value >= 0):
                raise ArgumentError(f"{name}: {value!r:.80} was given, allowed: None or a number from 0")
        if max_tokens is not None:
            check_whole("max_tokens", max_tokens, 1 << 31, ArgumentError)
        seconds = EPISODE_S[self.kind] if timeout is None else float(timeout)
        patience = UPSTREAM[self.kind]
        if self.kind == "trace":
            patience = replace(patience, begins=seconds)
        chat = Chat(self._make_endpoint(*endpoint), Sampling(temperature, max_tokens), patience)
        with self._lock:
            self._chats.add(chat)
        caller = CALLER.get()
        try:
            if self._ended:
                raise ClosedError("the server is ending")
            with nullcontext() if caller is None else caller.ending(chat.close):
                return play(chat, seed, seconds)
        finally:
            with self._lock:
                self._chats.discard(chat)
            chat.close()

    def _answer(self, episode_id: Any, work: Callable[[Session[ServedEpisode]], Response]) -> Response:
        """Returns what ``work`` returns. An unknown episode is no error of HTTP, as in upstream's server."""
        try:
            session = self.sessions.find(episode_id)
        except UnknownEpisodeError as error:
            kind, message = "episode_not_found", str(error)
            if not episode_id:
                kind, message = "no_episode_id", "episode_id: none was given, needed: one that reset returned"
            info = {**self.unknown_info, "error": explain_error(kind, message)}
            return {**turn(message, 0.0, True, True, info), "episode_id": episode_id or None}
        with self.sessions.turn(session):
            return {**work(session), "episode_id": episode_id}

    def _make_endpoint(self, model: Any, base_url: Any, api_key: Any) -> Endpoint:
        """Returns an endpoint that evaluate may ask, with its key."""
        if not isinstance(api_key, str | None):
            raise ArgumentError("api_key: no text was given, allowed: None or a text")
        endpoint = Endpoint(model, base_url, api_key or "")
        host = httpx.URL(endpoint.base_url).host
        if not fits(host, self.evaluation_hosts):
            allowed = f"hosts {', '.join(self.evaluation_hosts)}" if self.evaluation_hosts else "none"
            raise HostError(
                f"base_url: {endpoint.base_url!r:.200} was given, allowed: {allowed}; the server's operator "
                f"allows hosts by --evaluate_hosts, and all of them by a token in {TOKEN}"
            )
        if endpoint.api_key:
            return endpoint
        named = fits(host, self._key_hosts)
        key = os.environ.get("CHUTES_API_KEY", "") if named else chutes_key(endpoint.base_url)
        return replace(endpoint, api_key=key)


def explain_error(kind: str, message: str) -> Response:
    """Returns ``info["error"]``, as upstream has it, of a call that can be made again in another way."""
    return {"type": kind, "message": message, "retryable": True}


def turn(observation: str, reward: float, done: bool, truncated: bool, info: Response) -> Response:
    """Returns a response without the episode's id; ``info`` is completed by the server's name."""
    return {
        "observation": observation,
        "reward": reward,
        "done": done,
        "truncated": truncated,
        "info": {"server": f"gamespiel {__version__}", **info},
    }


def _read_seed(seed: Any) -> int:
    """Returns the seed, or a drawn one."""
    drawn = secrets.randbelow(DRAWN_LIMIT) if seed is None else seed
    return check_whole("seed", drawn, SEED_LIMIT, SeedError)
