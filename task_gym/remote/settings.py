"""The arguments of the backend "affinetes"."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from task_gym.errors import ArgumentError, BackendError, NotBuiltError, check_choice

MODES = ("url", "docker")
"""The ways to reach an environment that have a name."""

TIMEOUT = 60.0
"""The default of ``timeout``, in seconds."""

TOKEN = "GAMESPIEL_TOKEN"
"""The environment variable of the bearer token, for server and client."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A server and how long it may take.

    Attributes:
        base_url: Its address, without a slash at the end.
        timeout: Seconds that one call may take.
    """

    base_url: str
    timeout: float = TIMEOUT


def read_settings(mode: Any, base_url: Any, timeout: Any) -> Settings:
    """Returns the checked settings of the backend "affinetes".

    Raises:
        ArgumentError: an argument is missing or outside what is allowed.
        NotBuiltError: the mode is planned, and not built yet.
        BackendError: the package ``affinetes`` is not installed.
    """
    check_choice("mode", mode, MODES)
    if mode != "url":
        raise NotBuiltError(f"mode: {mode!r} was given, which is not built yet; allowed now: 'url'")
    if not isinstance(base_url, str) or not _is_address(base_url):
        raise ArgumentError(
            f"base_url: {base_url!r} was given, allowed: the address of a server, as 'http://127.0.0.1:8000'"
        )
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not (number and isfinite(timeout) and timeout > 0):
        raise ArgumentError(f"timeout: {timeout!r} was given, allowed: a number of seconds above 0")
    if find_spec("affinetes") is None:
        raise BackendError(
            "backend: 'affinetes' was given, whose package is not installed; allowed: 'local', or "
            "pip install 'gamespiel[affinetes]'"
        )
    return Settings(base_url.rstrip("/"), float(timeout))


def refuse_settings(mode: Any, base_url: Any, timeout: Any) -> None:
    """Raises ArgumentError if a local backend is given an argument of the backend "affinetes"."""
    given = {"mode": (mode, None), "base_url": (base_url, None), "timeout": (timeout, TIMEOUT)}
    for name, (value, default) in given.items():
        if value != default:
            raise ArgumentError(
                f"{name}: {value!r} was given with backend 'local', allowed: with backend 'affinetes' only"
            )


def _is_address(base_url: str) -> bool:
    try:
        parts = urlsplit(base_url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False
