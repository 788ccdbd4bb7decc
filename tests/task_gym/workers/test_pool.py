"""Workers: the same episodes on any number of them, and after any of them was lost."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from task_gym.errors import ArgumentError
from task_gym.processes import OFFERED, Forked, Nursery
from task_gym.workers import Counts, EnvGroup, RemoteGroup, Slots, WorkerPool, WorkersError
from task_gym.workers.processes import ProcessLauncher, ProcessWorker
from task_gym.workers.requests import Advance, LostError, NoRoomError
from tests.task_gym.test_processes import check_all_end
from tests.task_gym.workers.toys import Walk

pytestmark = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")

SLOTS = 6


class SharedLauncher(ProcessLauncher):
    """Starts the workers of all tests from one process, which takes a second to come."""

    def __init__(self) -> None:
        super().__init__((Walk.__module__,))
        self.started: list[ProcessWorker] = []
        self.most: float = float("inf")

    def start(self) -> ProcessWorker:
        if len(self.started) >= self.most:
            raise NoRoomError("the machine is full")
        self.started.append(super().start())
        return self.started[-1]

    def close(self) -> None:
        """The next test goes on with the process from which workers come."""


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedLauncher]:
    launcher = SharedLauncher()
    yield launcher
    ProcessLauncher.close(launcher)


@pytest.fixture
def launcher(shared: SharedLauncher) -> SharedLauncher:
    shared.started, shared.most = [], float("inf")
    return shared


@pytest.fixture
def make(launcher: SharedLauncher) -> Iterator[Callable[..., RemoteGroup]]:
    """Returns a function that makes a group of walks in workers."""
    pools = []

    def make_group(workers: int, trap: Path | None = None, **settings: Any) -> RemoteGroup:
        pools.append(WorkerPool(launcher, workers, **settings))
        return RemoteGroup(pools[-1], [partial(Walk, trap)] * SLOTS)

    yield make_group
    for pool in pools:
        pool.close()


def play(advance: Any, seeds: list[int], on_round: Callable[[int], None] = lambda done: None) -> list[Any]:
    """Plays an episode per seed, one per slot; returns all that it showed."""
    slots = Slots(advance, len(seeds))
    seen: list[list[Any]] = [[] for _ in seeds]
    going = list(range(len(seeds)))
    frames = list(slots.reset(going, seeds, [{"n": i} for i in going]))
    done = 0
    while True:
        for index, frame in zip(going, frames, strict=True):
            info = {name: value for name, value in frame.info.items() if name != "pid"}
            seen[index].append((*frame[:4], info, frame.attributes, frame.generator, frame.mask.tolist()))
        going = [index for index, frame in zip(going, frames, strict=True) if not frame.terminated]
        if not going:
            return seen
        on_round(done)
        done += 1
        frames = list(slots.step(going, [(index + done) % 3 for index in going]))


SEEDS = [3, 4, 5, 6, 7, 8]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    group = EnvGroup([Walk] * SLOTS)
    return play(lambda calls: iter(group.advance(calls)), SEEDS)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_episodes_do_not_depend_on_workers(
    workers: int, make: Callable[..., RemoteGroup], expected: list[Any]
) -> None:
    group = make(workers)
    pids = set[int]()

    def advance(calls: Any) -> Iterator[Any]:
        for frame in group.advance(calls):
            pids.add(frame.info["pid"])
            yield frame

    assert play(advance, SEEDS) == expected
    assert len(pids) == workers and os.getpid() not in pids
    assert group.pool.take_counts() == Counts()


@pytest.mark.parametrize(
    "how", ["kill", pytest.param("hang", marks=[pytest.mark.launch, pytest.mark.sample])]
)
def test_what_a_lost_worker_played_is_played_again(
    how: str, make: Callable[..., RemoteGroup], expected: list[Any], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    trap = tmp_path / "trap"
    trap.write_text(how)
    group = make(2, trap, seconds=60.0 if how == "kill" else 3.0)
    with caplog.at_level(logging.WARNING, "task_gym.workers"):
        assert play(group.advance, SEEDS) == expected
    assert not trap.exists()
    counts = group.pool.take_counts()
    # Three slots per worker; all of the lost one that go on are played again, two steps each. Of the seeds
    # 3 to 8 none is over after two steps.
    assert counts[:3] == (1, 3, 6) and counts.replay_seconds > 0
    assert group.pool.take_counts() == Counts()
    end = "had no answer for" if how == "hang" else "ended with status -9: its episodes are played again"
    assert end in caplog.text


def test_a_turn_that_ends_every_worker_is_a_named_error(
    launcher: SharedLauncher, make: Callable[..., RemoteGroup], expected: list[Any], tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    trap.write_text("exit")
    group = make(2, trap)
    lost = r"3 workers were lost with one turn, allowed: 2; it is the turn after 3 actions of the episode "
    last = r"with seed 5 and options \{'n': 2\}; the last one: worker process \d+ ended with status -9"
    with pytest.raises(WorkersError, match=lost + last):
        play(group.advance, SEEDS)
    assert group.pool.take_counts().workers_lost == 3
    trap.unlink()
    assert play(group.advance, SEEDS) == expected  # the pool goes on


def test_episodes_go_to_the_others_if_no_worker_can_be_started_again(
    launcher: SharedLauncher, make: Callable[..., RemoteGroup], expected: list[Any]
) -> None:
    group = make(2)

    def kill(done: int) -> None:  # between two rounds
        if done == 1:
            os.kill(launcher.started[1].pid, signal.SIGKILL)

    assert play(group.advance, SEEDS, kill) == expected
    assert group.pool.take_counts()[:3] == (1, 3, 3)  # one step each; the second was new
    end = time.monotonic() + 60
    while len(launcher.started) < 3 and time.monotonic() < end:  # the new one can come after the last turn
        time.sleep(0.01)
    launcher.started, launcher.most = [launcher.started[0], launcher.started[2]], 2
    assert play(group.advance, SEEDS, kill) == expected
    assert group.pool.take_counts()[:2] == (1, 3) and len(launcher.started) == 2
    os.kill(launcher.started[0].pid, signal.SIGKILL)
    message = r"0 of 2 workers are there, needed: 1; the machine is full; .* ended with status -9"
    with pytest.raises(WorkersError, match=message):
        play(group.advance, SEEDS)
    launcher.most = float("inf")  # there is room again
    assert play(group.advance, SEEDS) == expected


def test_an_error_of_an_environment_is_the_callers(make: Callable[..., RemoteGroup]) -> None:
    slots = Slots(make(2).advance, SLOTS)
    list(slots.reset([0, 1], [1, 2], [None, None]))
    with pytest.raises(ValueError, match=r"^action 3 after \[\]$"):
        list(slots.step([0, 1], [1, 3]))
    assert [frame.info["seat"] for frame in slots.reset([0, 1], [1, 2], [None, None])] == [
        Walk().reset(seed=seed)[1]["seat"] for seed in (1, 2)
    ]


def test_an_error_that_cannot_be_carried_says_so(launcher: SharedLauncher) -> None:
    class Odd(Walk):
        def reset(self, **_: Any) -> Any:
            return "", {"door": open(os.devnull)}

    pool = WorkerPool(launcher, 1)
    with pytest.raises(WorkersError, match="a turn's info cannot be pickled"):
        list(Slots(RemoteGroup(pool, [Odd]).advance, 1).reset([0], [1], [None]))
    with pytest.raises(ZeroDivisionError):
        list(Slots(RemoteGroup(pool, [lambda: 1 / 0]).advance, 1).reset([0], [1], [None]))  # type: ignore[list-item, return-value]
    pool.close()


def test_calls_that_nobody_wants_any_more(make: Callable[..., RemoteGroup], expected: list[Any]) -> None:
    group = make(1)
    slots = Slots(group.advance, SLOTS)
    slots.reset(range(SLOTS), SEEDS, [None] * SLOTS)
    group.give_up(join=True)
    assert play(group.advance, SEEDS) == expected
    group.close()
    assert play(group.advance, SEEDS) == expected  # a group that was closed begins anew


def test_closed_workers_and_none_at_all(launcher: SharedLauncher, make: Callable[..., RemoteGroup]) -> None:
    group = make(1)
    list(Slots(group.advance, 1).reset([0], [1], [None]))
    (worker,) = launcher.started
    with pytest.raises(WorkersError, match="a request failed: TypeError"):
        worker.ask(Advance(10**9, calls=7), 60.0)  # type: ignore[arg-type]
    group.pool.close()
    with pytest.raises(LostError, match=f"worker process {worker.pid} ended with status -9"):
        worker.ask(Advance(0), 60.0)
    with pytest.raises(WorkersError, match="a call was made after they were closed"):
        group.advance([])
    with pytest.raises(ArgumentError, match="workers: 0 was given"):
        WorkerPool(launcher, 0)


def test_nothing_is_started_once_they_are_closed() -> None:
    starting, closed, starts = threading.Event(), threading.Event(), list[None]()

    def start() -> ProcessWorker:  # none until it is closed, as of a cluster that has no CPU left
        starts.append(starting.set())  # type: ignore[func-returns-value]
        closed.wait(60.0)
        time.sleep(0.2)  # a pool that does not wait for this would be closed before
        raise NoRoomError("it was closed")

    before = set(threading.enumerate())
    pool = WorkerPool(SimpleNamespace(name="slow workers", start=start, close=closed.set), 1)
    frames = Slots(RemoteGroup(pool, [Walk]).advance, 1).reset([0], [1], [None])
    assert starting.wait(60.0)
    pool.close()
    assert set(threading.enumerate()) <= before and len(starts) == 1
    with pytest.raises(WorkersError, match="they were closed"):
        next(frames)


def test_a_pool_that_one_of_its_own_threads_closes() -> None:
    """As a thread does that collects the garbage that the pool is part of."""
    closed = list[None]()

    def start() -> ProcessWorker:
        closed.append(pool.close())  # type: ignore[func-returns-value]
        raise NoRoomError("it was closed")

    before = set(threading.enumerate())
    pool = WorkerPool(SimpleNamespace(name="closing workers", start=start, close=lambda: None), 1)
    with pytest.raises(WorkersError, match="they were closed"):
        list(Slots(RemoteGroup(pool, [Walk]).advance, 1).reset([0], [1], [None]))
    for thread in set(threading.enumerate()) - before:
        thread.join(60.0)
    assert closed and set(threading.enumerate()) <= before


@pytest.mark.launch
def test_workers_end_with_a_driver_that_is_killed() -> None:
    code = (
        "import time\n"
        "from task_gym.workers import RemoteGroup, Slots, WorkerPool\n"
        "from task_gym.workers.processes import ProcessLauncher\n"
        "from tests.task_gym.workers.toys import Walk\n"
        "pool = WorkerPool(ProcessLauncher((Walk.__module__,)), 2)\n"
        "group = RemoteGroup(pool, [Walk] * 2)\n"
        "frames = list(Slots(group.advance, 2).reset([0, 1], [1, 2], [None, None]))\n"
        "print('pids', *(frame.info['pid'] for frame in frames), flush=True)\n"
        "time.sleep(3000)\n"
    )
    check_all_end(code, 2)


def test_a_worker_that_is_started_while_they_are_closed_starts_no_nursery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launcher, fork, ends = ProcessLauncher((Walk.__module__,)), Nursery.fork, []

    def fork_late(nursery: Nursery) -> Forked:
        ends.append(launcher.close())  # type: ignore[func-returns-value]  # just before the fork
        return fork(nursery)

    monkeypatch.setattr(Nursery, "fork", fork_late)
    for _ in range(2):  # the second one is asked for afterwards
        with pytest.raises(NoRoomError, match="no process could be started: they were closed"):
            launcher.start()
    assert launcher._nursery._process is None and len(ends) == 1
