"""Meetings: two agents of a board that play each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gamespiel.measure.board.agents import list_tasks
from gamespiel.measure.board.benchmark import MEETING_GAMES, TASK_NAMES
from gamespiel.tracks import MASKED

MOST_MEETING = 50
"""The most agents that meet others: ratings from meetings are found for all of them together."""


def describe_meeting(first: str, second: str, track: str) -> dict[str, Any]:
    """Returns what a board says of two agents that meet each other."""
    name = f"{first} vs {second}"
    return {"name": name, "agent": first, "rival": second, "kind": "meeting", "track": track}


def explain_no_meeting(entry: Mapping[str, Any], track: str) -> str:
    """Returns why an agent meets no other agent of a board; "" if it does.

    Args:
        entry: The board's entry of the agent.
        track: The board's track.
    """
    if entry["kind"] == "model":
        return "an untrained model meets no other agent"
    if entry["kind"] != "checkpoint":
        return ""
    if track != MASKED:
        return "a trained policy meets other agents only behind its mask"
    if entry.get("env_type") != "openspiel" or entry.get("asking", {}).get("conversation"):
        return "it was not trained on games with a prompt per turn"
    return ""


def list_meeting_tasks(first: Mapping[str, Any], second: Mapping[str, Any], track: str) -> list[str]:
    """Returns the games in which two agents meet, in the order of a round: both enter them."""
    enters = set(list_tasks(first, track)) & set(list_tasks(second, track))
    return [task for task in TASK_NAMES if task in MEETING_GAMES and task in enters]


def find_wrong_meeting(entries: Sequence[Mapping[str, Any]], track: str) -> str:
    """Returns what is wrong with the meetings of a board, or "": two known agents meet once."""
    known: dict[str, Mapping[str, Any]] = {}
    pairs = set[frozenset[str]]()
    for entry in entries:
        if entry["kind"] != "meeting":
            known[entry["name"]] = entry
            continue
        first, second = names = entry["agent"], entry.get("rival", "")
        about = {key: value for key, value in entry.items() if not key.startswith("episodes")}
        if first not in known or second not in known or first == second:
            return f"{entry['name']!r:.80} is no meeting of two agents before it"
        if about != describe_meeting(first, second, track) or frozenset(names) in pairs:
            return f"the meeting {entry['name']!r:.80} has other entries than its own, or is there twice"
        if reason := next(filter(None, (explain_no_meeting(known[name], track) for name in names)), ""):
            return f"the meeting {entry['name']!r:.80}: {reason}"
        pairs.add(frozenset(names))
    if (count := len(frozenset[str]().union(*pairs))) > MOST_MEETING:
        return f"{count} agents meet others, allowed: {MOST_MEETING}"
    return ""
