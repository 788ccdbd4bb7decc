"""Workers on a Ray cluster: actors and nodes that go in mid-round, and the same episodes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from task_gym.workers import RemoteGroup, Slots, WorkerPool, WorkersError
from tests.task_gym.test_processes import check_all_end
from tests.task_gym.workers.test_pool import SEEDS, SLOTS, expected, play
from tests.task_gym.workers.toys import Walk

ray: Any = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")

from ray.cluster_utils import Cluster  # noqa: E402

from task_gym.workers.ray_actors import RayLauncher  # noqa: E402
from task_gym.workers.requests import NoRoomError  # noqa: E402

__all__ = ["expected"]

LIMIT = 60.0
"""Seconds in which an actor must have been started."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without CPUs, and a node of one CPU; a test adds another, and removes it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray_cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80 * 2**20},
    )
    ray_cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    yield ray_cluster
    ray.shutdown()
    ray_cluster.shutdown()


@pytest.fixture
def node(cluster: Any) -> Iterator[Any]:
    added = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    cluster.wait_for_nodes()
    yield added
    if added in cluster.worker_nodes:
        cluster.remove_node(added)


class Spy(RayLauncher):
    """Notes the workers that it starts."""

    started: list[Any]

    def start(self) -> Any:
        worker = super().start()
        self.started.append(worker)
        return worker


def make_group(
    cluster: Any, workers: int, trap: Path | None = None, start: float = LIMIT, **settings: Any
) -> tuple[RemoteGroup, Spy]:
    launcher = Spy(cluster.address, seconds=start)
    launcher.started = []
    return RemoteGroup(WorkerPool(launcher, workers, **settings), [partial(Walk, trap)] * SLOTS), launcher


@pytest.mark.launch
def test_actors_that_are_killed_and_that_hang(
    cluster: Any, node: Any, expected: list[Any], tmp_path: Path
) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    trap = tmp_path / "trap"
    group, launcher = make_group(cluster, 2, trap, seconds=5.0)
    assert signal.getsignal(signal.SIGTERM) is handler  # or a trainer would not stop as it should
    assert play(group.advance, SEEDS) == expected and group.pool.take_counts()[:2] == (0, 0)
    assert len(launcher.started) == 2 and os.getpid() not in {worker.pid for worker in launcher.started}

    def kill(done: int) -> None:
        if done == 1:
            os.kill(launcher.started[0].pid, signal.SIGKILL)

    assert play(group.advance, SEEDS, kill) == expected
    counts = group.pool.take_counts()
    assert counts[:3] == (1, 3, 3)  # three episodes of the actor, of one step so far
    trap.write_text("hang")
    assert play(group.advance, SEEDS) == expected
    assert not trap.exists() and group.pool.take_counts().workers_lost == 1
    trap.write_text("exit")
    with pytest.raises(WorkersError, match=r"3 workers were lost with one turn, allowed: 2; it is the t"):
        play(group.advance, SEEDS)
    trap.unlink()
    group.pool.close()


@pytest.mark.launch
def test_a_node_that_is_removed_and_none_that_is_left(cluster: Any, node: Any, expected: list[Any]) -> None:
    group, launcher = make_group(cluster, 2, start=20.0)

    def remove(done: int) -> None:
        if done == 1:
            cluster.remove_node(node)

    assert play(group.advance, SEEDS, remove) == expected  # the other node plays on
    counts = group.pool.take_counts()
    assert counts.workers_lost == 1 and counts.games_replayed == 3
    group.pool.close()
    launcher = RayLauncher(cluster.address, seconds=3.0)
    launcher._player = launcher._player.options(num_cpus=3)  # no node of the cluster has as many
    none = WorkerPool(launcher, 1)
    with pytest.raises(WorkersError, match=r"0 of 1 workers are there, .*no node had a CPU for it in 3"):
        list(Slots(RemoteGroup(none, [Walk]).advance, 1).reset([0], [1], [None]))
    none.close()


@pytest.mark.launch
def test_a_start_ends_with_its_pool_and_connects_to_nothing(cluster: Any) -> None:
    def begin() -> tuple[RayLauncher, WorkerPool]:
        launcher = RayLauncher(cluster.address, seconds=60.0)
        launcher._player = launcher._player.options(num_cpus=3)
        pool = WorkerPool(launcher, 1)
        Slots(RemoteGroup(pool, [Walk]).advance, 1).reset([0], [1], [None])
        return launcher, pool

    launcher, pool = begin()
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < 10.0  # a start waits for 60 seconds
    launcher, pool = begin()
    ray.shutdown()  # the caller's, before the pool is closed
    pool.close()
    with pytest.raises(NoRoomError, match="the connection to Ray was closed"):
        launcher.start()
    assert not ray.is_initialized()
    group, _ = make_group(cluster, 1)
    slots = Slots(group.advance, 1)
    list(slots.reset([0], [1], [None]))
    ray.shutdown()
    with pytest.raises(WorkersError, match=r"0 of 1 workers are there, needed: 1; .*was closed"):
        list(slots.step([0], [1]))
    assert not ray.is_initialized()
    group.pool.close()


@pytest.mark.launch
def test_actors_end_with_a_driver_that_is_killed(cluster: Any) -> None:
    code = (
        "import time\n"
        "from tests.task_gym.workers.test_ray import RayLauncher, RemoteGroup, Slots, Walk, WorkerPool\n"
        f"group = RemoteGroup(WorkerPool(RayLauncher({cluster.address!r}), 1), [Walk])\n"
        "(frame,) = Slots(group.advance, 1).reset([0], [1], [None])\n"
        "print('pids', frame.info['pid'], flush=True)\n"
        "time.sleep(3000)\n"
    )
    check_all_end(code, 1)


def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(WorkersError, match=r"the address '127.0.0.1:1' was given, and there is no such c"):
        RayLauncher("127.0.0.1:1")
