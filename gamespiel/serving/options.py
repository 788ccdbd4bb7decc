"""The options of ``gamespiel serve``."""

from __future__ import annotations

from dataclasses import dataclass

from gamespiel.serving.hosts import is_loopback
from task_gym.errors import ArgumentError, check_choice

KINDS = ("openspiel", "trace")
"""The kinds of task that can be served."""

LOOPBACK = "127.0.0.1"

SAFE = "safe"
"""The default of ``injector``; ``trace_gym.inject.STYLES`` are all."""

_AT_LEAST = {"port": 0, "max_sessions": 1, "max_body": 1024}

_SECONDS = ("idle_s", "search_s")

_OF_ONE_KIND = (
    ("injector", SAFE, "trace"), ("upstream_search", False, "openspiel"), ("source", "builtin", "trace"),
)  # fmt: skip
"""Options of one kind of task, each with its default."""


@dataclass(frozen=True)
class ServeOptions:
    """The options of a server.

    Attributes:
        env: The kind of task: "openspiel" or "trace".
        host: The address to listen on. The default can be reached from this machine only.
        port: The port; 0 for a free one.
        source: The source of the programs, with ``env="trace"``.
        injector: Who puts debug prints into them, with ``env="trace"``: "safe", or "affine", which is
            upstream's own rule.
        max_sessions: The most episodes at once.
        idle_s: Seconds without a call after which an episode is dropped.
        max_body: The most bytes of a request.
        hosts: Patterns of names under which the server may be asked without a token, beside addresses and
            names without a dot.
        evaluate_hosts: Patterns of hosts that ``evaluate`` may ask. Without them it asks any host if a token
            protects the server, or if it can be reached from this machine only, and else none.
        max_sessions_per_caller: The most episodes of one caller (an address) at once; None for half of
            ``max_sessions``.
        search_s: Seconds of processor time that the opponents' searches of one call may take, and in
            ``evaluate`` each of them. An episode with a longer search is a fault.
        upstream_search: Whether the opponent "mcts" is upstream's search in Python, with ``env="openspiel"``.
            Otherwise it is OpenSpiel's in C++, which makes other moves.
        key_hosts: Patterns of hosts that the server's own key, ``CHUTES_API_KEY``, is for, beside those of
            chutes.ai.
        opponents: Opponents beside the built-in ones that a request may name.

    Raises:
        ArgumentError: a value is outside what is allowed.
    """

    env: str = KINDS[0]
    host: str = LOOPBACK
    port: int = 8000
    source: str = "builtin"
    injector: str = SAFE
    max_sessions: int = 1000
    idle_s: float = 3600.0
    max_body: int = 8 << 20
    hosts: tuple[str, ...] = ()
    evaluate_hosts: tuple[str, ...] | None = None
    opponents: tuple[str, ...] = ()
    max_sessions_per_caller: int | None = None
    search_s: float = 300.0
    upstream_search: bool = False
    key_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("env", self.env, KINDS)
        for name, least in _AT_LEAST.items():
            if getattr(self, name) < least:
                raise ArgumentError(f"{name}: {getattr(self, name)} was given, allowed: at least {least}")
        if self.port > 65535:
            raise ArgumentError(f"port: {self.port} was given, allowed: 0 … 65535")
        each = self.max_sessions_per_caller
        if each is not None and not 1 <= each <= self.max_sessions:
            raise ArgumentError(
                f"max_sessions_per_caller: {each} was given, allowed: 1 … {self.max_sessions}, which is "
                "max_sessions"
            )
        for name in _SECONDS:
            if not 0 < (seconds := getattr(self, name)) < float("inf"):
                raise ArgumentError(f"{name}: {seconds} was given, allowed: a number of seconds above 0")
        for name, usual, env in _OF_ONE_KIND:
            if (value := getattr(self, name)) != usual and self.env != env:
                raise ArgumentError(f"{name}: {value!r} was given, allowed: with --env {env} only")

    def sessions_per_caller(self) -> int:
        """Returns the most episodes of one caller."""
        return self.max_sessions_per_caller or max(self.max_sessions // 2, 1)

    def evaluation_hosts(self, token: str) -> tuple[str, ...]:
        """Returns the patterns of the hosts that ``evaluate`` may ask.

        Args:
            token: The server's token; "" for none.
        """
        if self.evaluate_hosts is not None:
            return self.evaluate_hosts
        return ("*",) if token or is_loopback(self.host) else ()
