"""The tracks of play: what an agent may do, and what its prompt shows. Results of two never mix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gamespiel.errors import InvalidValueError
from task_gym.errors import explain_unknown, quote

MASKED = "masked"
"""The agent chooses among the legal actions, and can do nothing else."""

UNMASKED = "unmasked"
"""The agent writes a reply, and its prompt lists the legal actions."""

UNLISTED = "unlisted"
"""The agent writes a reply, and its prompt only says how an action is written."""

TRACKS = (MASKED, UNMASKED, UNLISTED)

ASKING: Mapping[str, Mapping[str, Any]] = {
    MASKED: {},
    UNMASKED: {"list_actions": True},
    UNLISTED: {"list_actions": False, "answer": "name"},
}
"""By track, the keys of a game's section that it sets."""


class TrackError(InvalidValueError):
    """Results or agents of different tracks, which are never put together."""


def find_track(*, writes: bool, list_actions: bool) -> str:
    """Returns the track of an agent that writes or chooses, with or without the list in its prompt."""
    if not writes:
        return MASKED
    return UNMASKED if list_actions else UNLISTED


def require_one_track(tracks: Mapping[str, str | None], hint: str = "") -> str | None:
    """Returns the track that all share; None if none has one.

    Args:
        tracks: What was played, by name, to its track; None for a baseline, whose actions are always legal.
        hint: What the message ends with.

    Raises:
        TrackError: there are several tracks, or there is none of that name.
    """
    players: dict[str, str] = {}
    for name, track in tracks.items():
        if track is None:
            continue
        if track not in TRACKS:
            raise TrackError(explain_unknown(f"track of {quote(name)}", track, TRACKS))
        players.setdefault(track, name)
    if len(players) > 1:
        listed = " and ".join(f"{quote(name)} ({track})" for track, name in players.items())
        raise TrackError(f"{listed} are on different tracks, and what one may do the other may not{hint}")
    return next(iter(players), None)


def list_changes(track: str) -> list[tuple[str, str]]:
    """Returns the configuration keys that a track sets, with their values as options write them.

    Raises:
        TrackError: there is no such track.
    """
    if track not in TRACKS:
        raise TrackError(explain_unknown("--track", track, TRACKS))
    return [(f"env.{key}", str(value).lower()) for key, value in ASKING[track].items()]
