"""The part that all actors share. An actor has the methods that affinetes calls in a container."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

import httpx

from gamespiel import __version__
from gamespiel.endpoints.chat import Chat, ClosedError, Endpoint, Sampling, chutes_key
from gamespiel.serving.hosts import fits
from gamespiel.serving.options import ServeOptions
from gamespiel.serving.sessions import Sessions
from task_gym.checks import check_whole, is_number, read_reply
from task_gym.errors import ArgumentError, SeedError, unknown
from task_gym.remote.settings import TOKEN
from task_gym.seeding import SEED_LIMIT

Response = dict[str, Any]

MODEL, ENDPOINT = "deepseek-ai/DeepSeek-V3", "https://llm.chutes.ai/v1"
"""The defaults of ``evaluate``, which are upstream's: affinetes' own commands name no model."""


class Caller:
    """Whoever waits for an evaluation. If the caller leaves, the evaluation is given up."""

    def __init__(self) -> None:
        self._lock, self._left = threading.Lock(), False
        self._chat: Chat | None = None

    def wait_for(self, chat: Chat) -> None:
        """Says by which client the evaluation asks its model."""
        with self._lock:
            self._chat = chat
            if self._left:
                chat.close()

    def leave(self) -> None:
        """Gives the evaluation up: it raises ClosedError at the next reply."""
        with self._lock:
            self._left = True
            if self._chat is not None:
                self._chat.close()


CALLER: ContextVar[Caller | None] = ContextVar("CALLER", default=None)
"""The caller of the evaluation that this thread plays, if somebody watches for its leaving."""


class ServedEpisode(Protocol):
    """One episode of a server."""

    def response(self) -> Response:
        """Returns the present turn: observation, reward, done, truncated and info, without the episode's id.

        It is the response to reset and to state, and to the step that led to the turn.
        """

    def step(self, reply: str) -> Response:
        """Takes a reply; returns the next turn, or what was wrong with the reply."""


E = TypeVar("E", bound=ServedEpisode)


class Actor(ABC, Generic[E]):
    """Answers reset, step, state, stop and evaluate.

    Args:
        options: The server's options.
    """

    allowed: tuple[str, ...] = ("task_id", "seed")
    """The arguments of reset."""

    read_hosts: tuple[str, ...] = ("*",)
    """Patterns of the hosts that evaluate may ask."""

    def __init__(self, options: ServeOptions) -> None:
        self.sessions: Sessions[E] = Sessions(options.max_sessions, options.idle_s)
        self._chats: set[Chat] = set()
        self._lock, self._ended = threading.Lock(), False
        self.methods: Mapping[str, Callable[..., Any]] = {
            "reset": self.reset, "step": self.step, "state": self.state, "stop": self.stop,
            "evaluate": self.evaluate,
        }  # fmt: skip

    @abstractmethod
    def begin(self, task_id: int | None, seed: int, arguments: Mapping[str, Any]) -> E:
        """Returns a new episode; ``arguments`` are the further ones of ``allowed``."""

    @abstractmethod
    def play(
        self, chat: Chat, task_id: int | None, seed: int, timeout: float | None, arguments: Mapping[str, Any]
    ) -> Response:
        """Plays a whole episode with a model; ``arguments`` are those of ``allowed`` beyond task and seed."""

    def reset(self, /, task_id: Any = None, seed: Any = None, **arguments: Any) -> Response:
        """Begins an episode. Without a task id or a seed, one is drawn."""
        for name in arguments:
            if name not in self.allowed:
                raise ArgumentError(unknown("argument of reset", name, self.allowed))
        seed = check_whole("seed", _check_seed(seed), SEED_LIMIT, SeedError)
        name, episode = self.sessions.add(lambda: self.begin(task_id, seed, arguments))
        response = episode.response()
        if response["done"]:  # before the first turn
            self.sessions.find(name).over = True
        return _add_name(response, name)

    def step(self, action: Any = None, episode_id: Any = None) -> Response:
        """Takes a step in an episode."""
        kept = self.sessions.find(episode_id)
        with kept.lock:
            response = kept.episode.step(read_reply(action))
            kept.over = bool(response["done"])
            return _add_name(response, episode_id)

    def state(self, episode_id: Any = None) -> Response:
        """Returns an episode's present turn once more."""
        kept = self.sessions.find(episode_id)
        with kept.lock:
            return _add_name(kept.episode.response(), episode_id)

    def evaluate(
        self,
        /,
        task_id: Any = None,
        seed: Any = None,
        model: Any = MODEL,
        base_url: Any = ENDPOINT,
        timeout: Any = None,
        temperature: Any = None,
        api_key: Any = None,
        max_tokens: Any = None,
        collect_logprobs: Any = False,
        **arguments: Any,
    ) -> Response:
        """Plays a whole episode with a model behind an OpenAI-compatible endpoint.

        Args:
            task_id: The task; None for a drawn one.
            seed: The seed; None for a drawn one.
            model: The model's name at the endpoint.
            base_url: The endpoint's address, up to and with "/v1".
            timeout: Seconds that the episode may take.
            temperature: The temperature; None for the endpoint's own.
            api_key: The endpoint's key; None for ``CHUTES_API_KEY``, which goes only to chutes.ai.
            max_tokens: The most tokens of a reply; None for the endpoint's own limit.
            collect_logprobs: False; log-probabilities are not collected.
            **arguments: Those of ``allowed``.
        """
        for name in arguments:
            if name not in self.allowed:
                raise ArgumentError(unknown("argument of evaluate", name, self.allowed))
        if collect_logprobs:
            raise ArgumentError(f"collect_logprobs: {collect_logprobs!r} was given, allowed: False")
        seed = check_whole("seed", _check_seed(seed), SEED_LIMIT, SeedError)
        for name, value in (("timeout", timeout), ("temperature", temperature)):
            _check_number(name, value)
        if max_tokens is not None:
            check_whole("max_tokens", max_tokens, 1 << 31, ArgumentError)
        if not isinstance(api_key, str | None):
            raise ArgumentError("api_key: no text was given, allowed: None or a text")
        key = chutes_key(str(base_url)) if api_key is None else api_key
        sampling = Sampling(temperature=temperature, max_tokens=max_tokens)
        chat = Chat(self._make_endpoint(model, base_url, key), sampling)
        with self._lock:
            self._chats.add(chat)
        if (caller := CALLER.get()) is not None:
            caller.wait_for(chat)
        try:
            if self._ended:
                raise ClosedError("the server is ending")
            return self.play(chat, task_id, seed, timeout, arguments)
        finally:
            with self._lock:
                self._chats.discard(chat)
            chat.close()

    def end(self) -> None:
        """Gives up the episodes that ``evaluate`` plays: it raises ClosedError at the next reply."""
        with self._lock:
            self._ended = True
            for chat in self._chats:
                chat.close()

    def _make_endpoint(self, model: Any, base_url: Any, key: str) -> Endpoint:
        """Returns an endpoint that evaluate may ask."""
        endpoint = Endpoint(model, base_url, key)
        if not fits(httpx.URL(endpoint.base_url).host, self.read_hosts):
            allowed = f"hosts {', '.join(self.read_hosts)}" if self.read_hosts else "none"
            raise ArgumentError(
                f"base_url: {endpoint.base_url!r:.200} was given, allowed: {allowed}; the server's operator "
                f"allows hosts by --evaluate_hosts, and all of them by a token in {TOKEN}"
            )
        return endpoint

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


def _check_seed(seed: Any) -> Any:
    return secrets.randbelow(SEED_LIMIT) if seed is None else seed


def _check_number(name: str, value: Any) -> None:
    """Raises ArgumentError unless the value is None or a finite number from 0."""
    if value is not None and not (is_number(value) and value >= 0):
        raise ArgumentError(f"{name}: {value!r:.80} was given, allowed: None or a number from 0")


def _add_name(response: Response, name: str) -> Response:
    return {**response, "episode_id": name}
