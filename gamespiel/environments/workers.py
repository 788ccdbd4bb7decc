"""The workers that play the environments of runs: started once per process, for training and evaluations."""

from __future__ import annotations

from threading import Lock

from gamespiel.config.sections import RunConfig
from task_gym.workers import WorkerPool
from task_gym.workers.processes import make_launcher

MODULES = ("gamespiel", "gamespiel.environments.making")
"""The modules that workers import, which register every environment and opponent."""

_Key = tuple[int, str | None, float]

_pools: dict[_Key, WorkerPool] = {}
_lock = Lock()


def find_pool(run: RunConfig) -> WorkerPool | None:
    """Returns the workers that a run asks for; None if this process plays its environments.

    Raises:
        TaskGymError: they cannot be had here.
    """
    if not run.env_workers:
        return None
    key = run.env_workers, run.ray_address, run.env_seconds
    with _lock:
        if key not in _pools:
            _pools[key] = WorkerPool(
                make_launcher(run.ray_address, MODULES), run.env_workers, seconds=run.env_seconds
            )
        return _pools[key]


def close_pools() -> None:
    """Ends all workers. The next run that asks for some starts new ones."""
    with _lock:
        pools = list(_pools.values())
        _pools.clear()
    for pool in pools:
        pool.close()
