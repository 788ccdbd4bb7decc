"""How long an endpoint is waited for, and which of its failures may pass."""

from __future__ import annotations

from dataclasses import dataclass

from task_gym.remote.protocol import Retries


@dataclass(frozen=True, slots=True)
class Patience:
    """The limits and repeats of requests to an endpoint.

    Attributes:
        begins: Seconds until a response begins; of one that was not asked to stream, until it is whole.
        pauses: The most seconds between two pieces of a stream. However long it takes, a reply that goes on
            is waited for.
        retries: How often a request is tried.
        passing: Statuses below 500 after which a request is tried again. From 500 on, all are.
        upstream: Whether responses count as upstream counts them: one without a choice is an empty reply, one
            that is no completion is not asked for again, and a wish to wait is not read. Otherwise the first
            two are failures that may pass.
    """

    begins: float
    pauses: float
    retries: Retries
    passing: tuple[int, ...] = ()
    upstream: bool = False


def patience_of_agents(seconds: float = 120.0) -> Patience:
    """Returns the patience with agents and opponents that the user names.

    Args:
        seconds: Those until a response begins, and between two pieces of it.
    """
    return Patience(seconds, seconds, Retries(tries=6, first=0.5, longest=30.0), (408, 409, 425, 429))


UPSTREAM = {
    "game": Patience(600.0, 30.0, Retries(tries=11, first=1.0, longest=32.0), upstream=True),
    "trace": Patience(600.0, 30.0, Retries(tries=1, first=1.0), upstream=True),
}
"""The patience of ``evaluate`` on a server, by kind of task, as upstream's environments have it."""
