"""The arguments of the backend "affinetes"."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from task_gym.arguments import is_number
from task_gym.errors import ArgumentError, BackendError, check_choice, explain_unknown

MODES = ("url", "docker")
"""The ways to reach an environment: a server that runs, or a container that is started."""

TIMEOUT = 60.0
"""The default of ``timeout``, in seconds."""

TOKEN = "GAMESPIEL_TOKEN"
"""The environment variable of the bearer token, for server and client."""

PASSWORD = (
    "an address with a user's name or password was given, allowed: one without; the token is in the "
    f"environment variable {TOKEN}"
)
"""The error of an address for which ``has_password`` is true."""

PASSED_ON = ("CHUTES_API_KEY", TOKEN)
"""Environment variables that a container gets from this process, if they are set."""

IMAGES: Mapping[str, str] = MappingProxyType(
    {"game": "affinefoundation/game:openspiel", "trace": "affinefoundation/trace:latest"}
)
"""Upstream's images by kind of task: the defaults of ``image``."""

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "mode": None, "base_url": None, "timeout": TIMEOUT, "image": None, "env_vars": None,
        "mem_limit": None, "cpu_limit": None, "pull": False, "host": None,
    }
)  # fmt: skip
"""The arguments of the backend "affinetes" with their defaults."""

_OF_DOCKER = ("image", "env_vars", "mem_limit", "cpu_limit", "pull", "host")
_MEMORY = re.compile(r"[1-9][0-9]{0,17}([bkmg]|[kmg]b|[kmg]ib?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Container:
    """A container to start.

    Attributes:
        image: Its image.
        env_vars: Names and values of its environment variables, in alphabetical order.
        mem_limit: The most memory, as "2g"; None for no limit.
        cpu_limit: The most CPUs, as 1.5; None for no limit.
        pull: Whether the image is pulled first.
        host: The Docker engine: None for this machine's, or as "ssh://user@host".
    """

    image: str
    env_vars: tuple[tuple[str, str], ...] = ()
    mem_limit: str | None = None
    cpu_limit: float | None = None
    pull: bool = False
    host: str | None = None

    def __repr__(self) -> str:
        return f"container of {self.image} on {self.host or 'this machine'}"  # values may be secret


@dataclass(frozen=True, slots=True)
class Settings:
    """A server and how long it may take.

    Attributes:
        base_url: Its address, without a slash at the end; "" for a container.
        timeout: Seconds that one call may take.
        container: The container that is the server; None for a server that runs.
    """

    base_url: str
    timeout: float = TIMEOUT
    container: Container | None = None


def read_settings(arguments: Mapping[str, Any], kind: str) -> Settings:
    """Returns the checked settings of the backend "affinetes".

    Args:
        arguments: By name; those that are missing have their defaults.
        kind: The kind of task, a key of ``IMAGES``.

    Raises:
        ArgumentError: an argument is unknown, missing or outside what is allowed, or this system has no
            locks on files for mode "docker".
        BackendError: mode "docker" was given, and the package ``affinetes`` is not installed.
    """
    values = _add_defaults(arguments)
    mode = "url" if values["mode"] is None else values["mode"]
    check_choice("mode", mode, MODES)
    timeout = values["timeout"]
    if not is_number(timeout) or timeout <= 0:
        raise ArgumentError(f"timeout: {timeout!r} was given, allowed: a number of seconds above 0")
    for name in ("base_url",) if mode == "docker" else _OF_DOCKER:
        if values[name] != DEFAULTS[name]:
            other = "url" if mode == "docker" else "docker"
            raise ArgumentError(f"{name}: it was given with mode {mode!r}, allowed: with mode {other!r} only")
    container, base_url = None, values["base_url"]
    if mode == "docker":
        if find_spec("fcntl") is None:
            raise ArgumentError(
                f"mode: 'docker' was given on the system {sys.platform!r}, which lacks the locks on files "
                "(fcntl) that tell when a container is free; allowed: Linux and macOS, or mode 'url' with a "
                "container that you start: docker run -p 8000:8000 IMAGE"
            )
        if find_spec("affinetes") is None:
            raise BackendError(
                "mode: 'docker' was given, and affinetes, which starts containers, is not installed; "
                "pip install 'gamespiel[affinetes]' (Python 3.11 to 3.13), or mode 'url' with a container "
                "that you start"
            )
        container, base_url = _container(values, kind), ""
    elif isinstance(base_url, str) and has_password(base_url):
        raise ArgumentError(f"base_url: {PASSWORD}")
    elif not isinstance(base_url, str) or not _is_address(base_url):
        raise ArgumentError(
            f"base_url: {base_url!r} was given, allowed: the address of a server, as 'http://127.0.0.1:8000'"
        )
    return Settings(base_url.rstrip("/"), float(timeout), container)


def has_password(base_url: str) -> bool:
    """Returns whether an address has a user's name or password, which errors and saved files would show.

    By its text, because the address may be wrong besides.
    """
    rest = base_url.partition("://")[2] or base_url
    return "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]


def refuse_settings(arguments: Mapping[str, Any]) -> None:
    """Raises ArgumentError if a local backend is given an argument of the backend "affinetes"."""
    for name, value in _add_defaults(arguments).items():
        if value != DEFAULTS[name]:
            shown = "a value" if name == "env_vars" else repr(value)  # which may be secret
            raise ArgumentError(
                f"{name}: {shown} was given with backend 'local', allowed: with backend 'affinetes' only"
            )


def _add_defaults(arguments: Mapping[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name not in DEFAULTS:
            raise ArgumentError(explain_unknown("argument", name, DEFAULTS))
    return {**DEFAULTS, **arguments}


def _container(values: Mapping[str, Any], kind: str) -> Container:
    image = IMAGES[kind] if values["image"] is None else values["image"]
    memory, cpus, pull, host = (values[name] for name in ("mem_limit", "cpu_limit", "pull", "host"))
    if not isinstance(image, str) or not image:
        raise ArgumentError(f"image: {image!r} was given, allowed: an image's name, as {IMAGES[kind]!r}")
    if memory is not None and not (isinstance(memory, str) and _MEMORY.fullmatch(memory)):
        raise ArgumentError(f"mem_limit: {memory!r} was given, allowed: None or an amount, as '2g' or '512m'")
    if cpus is not None and not (is_number(cpus) and cpus > 0):
        raise ArgumentError(f"cpu_limit: {cpus!r} was given, allowed: None or a number of CPUs above 0")
    check_choice("pull", pull, (True, False))
    host = host_of(kind) if host is None else host
    if host is not None and not (
        isinstance(host, str) and (host == "localhost" or host.startswith("ssh://"))
    ):
        raise ArgumentError(f"host: {host!r} was given, allowed: None, 'localhost' or 'ssh://user@host'")
    here = None if host == "localhost" else host
    limit = None if cpus is None else float(cpus)
    return Container(image, _variables(values["env_vars"]), memory, limit, pull, here)


def _variables(texts: Any) -> tuple[tuple[str, str], ...]:
    if texts is not None and not (
        isinstance(texts, Mapping) and all(isinstance(text, str) for pair in texts.items() for text in pair)
    ):
        raise ArgumentError("env_vars: allowed are None or a mapping of names to texts")
    passed_on = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    return tuple(sorted({**passed_on, **(texts or {})}.items()))


PLAIN_NAME = re.compile(r"(?!.*xn--)(?=.*[a-z])[a-z0-9_.-]+")
"""Names of hosts in ASCII letters. A number that is no address, and another alphabet, may be invalid."""


def _is_address(base_url: str) -> bool:
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        if not good or PLAIN_NAME.fullmatch(host := str(parts.hostname)):
            return good
        with suppress(ValueError):
            return bool(ip_address(host))
        import httpx

        with suppress(httpx.InvalidURL):
            return bool(httpx.URL(base_url).host)
        return False
    except ValueError:  # a port that is no number, or a name that none can have
        return False


NAME = "affinetes_hosts.json"
"""The file, in the working directory; ``AFFINETES_HOSTS_CONFIG`` names another one."""


def host_of(kind: str) -> str | None:
    """Returns the first engine that the file lists for a kind of task, or by default; None without a file.

    An entry is a list of engines, or has one under "hosts": ``{"game": ["ssh://user@host"]}``.

    Raises:
        ArgumentError: the file cannot be read, or asks for something else.
    """
    named = os.environ.get("AFFINETES_HOSTS_CONFIG")
    path = Path(named or NAME)
    if not named and not path.is_file():
        return None
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{path}: it was found, and cannot be read: {error}") from error
    entry = listed.get(kind, listed.get("default")) if isinstance(listed, dict) else listed
    if isinstance(entry, dict):
        mode = entry.get("mode", "docker")
        if mode != "docker":
            raise ArgumentError(f"{path}: mode {mode!r} was given for {kind!r}, allowed: 'docker'")
        entry = entry.get("hosts")
    if entry is None:
        return None
    if not (isinstance(entry, list) and entry and all(isinstance(host, str) for host in entry)):
        raise ArgumentError(f"{path}: {entry!r:.80} was given for {kind!r}, allowed: a list of engines")
    return str(entry[0])
