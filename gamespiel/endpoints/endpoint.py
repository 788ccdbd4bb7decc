"""A model behind an address, and the key that it is asked with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import httpx

from gamespiel.endpoints import PREFIX, USAGE
from task_gym.errors import ArgumentError


@dataclass(frozen=True)
class Endpoint:
    """A model behind an address.

    Attributes:
        model: The model's name there.
        base_url: The address, up to and with "/v1".
        api_key: The bearer token; "" for none. It is not shown.
    """

    model: str
    base_url: str
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            good = good and "?" not in self.base_url and "#" not in self.base_url  # a path will follow
            good = good and bool(httpx.URL(self.base_url).host)
        except (ValueError, AttributeError, TypeError, httpx.InvalidURL):  # a wrong port or name, or no text
            good = False
        if not good or not isinstance(self.model, str) or not self.model:
            raise ArgumentError(
                f"endpoint: model {self.model!r:.80} at {self.base_url!r:.200} was given, allowed: a model's "
                "name and an address, as 'http://127.0.0.1:8000/v1'"
            )
        if not all("!" <= sign <= "~" for sign in self.api_key):  # the client would show it in its error
            raise ArgumentError(
                f"endpoint: the key for {self.base_url:.200} has a space, a line end or another character "
                "that is not allowed in a header"
            )
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    def __str__(self) -> str:
        return f"{PREFIX}{self.model}@{self.base_url}"


def parse_endpoint(text: str) -> Endpoint:
    """Returns the endpoint that "openai:MODEL@URL" or "MODEL@URL" names, with its key from the environment.

    Raises:
        ArgumentError: the text is written in another way, or the key cannot be sent.
    """
    endpoint = parse_address(text)
    return replace(endpoint, api_key=key_for(endpoint.base_url))


def parse_address(text: str) -> Endpoint:
    """Returns the endpoint that "openai:MODEL@URL" or "MODEL@URL" names, without a key.

    Raises:
        ArgumentError: the text is written in another way.
    """
    model, at, url = text.removeprefix(PREFIX).rpartition("@")
    if "://" in model:  # the @ was in the address
        raise ArgumentError(
            "endpoint: an address with a user's name or password was given, allowed: one without; the key is "
            "in the environment variable OPENAI_API_KEY or CHUTES_API_KEY"
        )
    if not at:
        raise ArgumentError(f"endpoint: {text!r} was given, allowed: {USAGE}")
    return Endpoint(model, url)


def key_for(base_url: str) -> str:
    """Returns the key in the environment: ``CHUTES_API_KEY`` for hosts of chutes.ai, else ``OPENAI_API_KEY``.

    So ``OPENAI_API_KEY`` goes to whatever other host the user names.
    """
    return chutes_key(base_url) or ("" if _is_chutes(base_url) else os.environ.get("OPENAI_API_KEY", ""))


def chutes_key(base_url: str) -> str:
    """Returns ``CHUTES_API_KEY`` of the environment for hosts of chutes.ai; "" for other hosts.

    It goes to the hosts that it was made for, also if somebody else chooses the address.
    """
    return os.environ.get("CHUTES_API_KEY", "") if _is_chutes(base_url) else ""


def _is_chutes(base_url: str) -> bool:
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # no address
        return False
    return host == "chutes.ai" or host.endswith(".chutes.ai")
