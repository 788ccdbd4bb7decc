"""``python -m task_gym.remote.watcher LOCK CONTAINER [HOST]``: removes a container without users."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from task_gym.errors import BackendError
from task_gym.remote.docker import engine_of, is_free, remove

PAUSE = 1.0
"""Seconds between two looks at the lock."""


def main(lock: str, name: str, host: str | None = None) -> None:
    """Waits until no process holds the lock, then removes the container."""
    while not is_free(lock):
        time.sleep(PAUSE)
    Path(lock).unlink(missing_ok=True)
    try:
        engine = engine_of(host)
    except BackendError:  # without an engine there is no container
        return
    for found in engine.containers.list(all=True, filters={"name": f"^{name}$"}, ignore_removed=True):
        remove(found)
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
