"""The opponent ``openai:MODEL@URL``: a model behind an OpenAI-compatible endpoint.

Importing this registers it. Making an opponent imports what it needs.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from gamespiel.endpoints import LIMIT, USAGE
from task_gym.errors import ArgumentError, BackendError, OpponentError
from task_gym.opponents import Seating, register_opponent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gamespiel.endpoints.chat import Chat, Message, Sampling
    from gamespiel.endpoints.games import ChatAgent

_USAGE = f"{USAGE}[#{LIMIT}=N]"

NOBODY = -1
"""The action of an opponent that named no legal action in three tries: it gives the game up."""

MOVE = 900.0
"""Seconds that one reply may take, with all repeats."""


class ModelOpponent:
    """Plays one seat by upstream's rules: the conversation is kept, and a move has three tries.

    Args:
        seating: The game and the seat. The argument is "MODEL@URL" or "MODEL@URL#max_tokens=N", in which N
            is the most tokens of a reply. Without N the endpoint decides.

    Raises:
        OpponentError: the argument is written in another way.
    """

    def __init__(self, seating: Seating) -> None:
        try:
            self._chat = chat_with(seating.argument, os.getpid())
        except ArgumentError as error:
            raise OpponentError(f"opponent: {error}") from error
        self._seed = 0
        self._agent: ChatAgent | None = None

    def restart(self, seed: int) -> None:
        """Begins a new conversation. The seed goes to the endpoint, which may heed it."""
        self._seed, self._agent = seed, None

    def act(self, view: Any) -> int:
        """Returns the action that the model chooses, or ``NOBODY``.

        Raises:
            BackendError: the endpoint is away, or refuses the request.
        """
        from gamespiel.endpoints.games import ChatAgent

        if self._agent is None:
            self._agent = ChatAgent(view.variant, self._request_reply)
        action = self._agent.move(view.state, view.seat, view.legal_actions())
        return NOBODY if action is None else action

    def _request_reply(self, messages: Sequence[Message]) -> str:
        try:
            return self._chat.request_reply(messages, self._seed, time.monotonic() + MOVE)[0]
        except TimeoutError as error:
            raise BackendError(f"opponent {self._chat.endpoint}: it did not answer in {MOVE:g} s") from error


_chats: dict[tuple[str, int], Chat] = {}


def chat_with(argument: str, process: int) -> Chat:
    """Returns the client that all opponents of one endpoint share; a forked child makes its own."""
    chat = _chats.get((argument, process))
    if chat is None:
        # Two threads that come at once both get the first one's client, so that close_opponents closes it.
        chat = _chats.setdefault((argument, process), open_chat(argument))
    return chat


def open_chat(argument: str) -> Chat:
    """Returns a client of one's own for the endpoint that an opponent's argument names.

    Raises:
        ArgumentError: the argument is written in another way.
    """
    from gamespiel.endpoints.chat import Chat
    from gamespiel.endpoints.endpoint import parse_endpoint

    named, sampling = _parse_argument(argument)
    return Chat(parse_endpoint(named), sampling)


def _parse_argument(argument: str) -> tuple[str, Sampling]:
    """Returns "MODEL@URL", and the settings of sampling that follow it.

    Raises:
        ArgumentError: something else follows it.
    """
    from gamespiel.endpoints.chat import Sampling

    model, at, rest = argument.rpartition("@")
    url, hash_, settings = rest.partition("#")
    if not hash_:
        return argument, Sampling()
    name, _, number = settings.partition("=")
    if name != LIMIT or not (number.isascii() and number.isdigit() and len(number) < 10 and int(number)):
        raise ArgumentError(
            f"{settings!r:.80} was given after #, allowed: {_USAGE} with a whole number of at least 1"
        )
    return f"{model}{at}{url}", Sampling(max_tokens=int(number))


def close_opponents() -> None:
    """Ends the requests of all opponents in this process. Those that are made later have new clients."""
    while _chats:
        _chats.popitem()[1].close()


register_opponent(
    "openai",
    ModelOpponent,
    usage=_USAGE,
    takes_argument=True,
    why_not_replayable="a model may answer otherwise when it is asked again",
    illegal="forfeit",
    waits=True,
)
