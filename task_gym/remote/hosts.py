"""The Docker engines of ``affinetes_hosts.json``, a file that users of affinetes may have."""

from __future__ import annotations

import json
import os
from pathlib import Path

from task_gym.errors import ArgumentError

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
