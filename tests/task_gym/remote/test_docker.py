"""Containers without an engine: who uses one, which are removed, and what happens when one dies."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from task_gym.errors import BackendError
from task_gym.remote import Failure
from task_gym.remote.connection import Docked
from task_gym.remote.settings import Container, Settings
from tests.task_gym.remote.stub import Stub, run_stub, slow

docker = pytest.importorskip("task_gym.remote.docker")

HOLD = """
import fcntl, os, sys, time
fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_SH)
print("held", flush=True)
time.sleep(60)
"""


class Engine:
    """An engine with the containers that the test names, each with its lock file."""

    def __init__(self, **locks: str) -> None:
        self.names = list(locks)
        self.containers = self
        self._locks = locks

    def list(self, all: bool, filters: dict[str, Any], ignore_removed: bool) -> list[Any]:
        assert all and ignore_removed and filters == {"label": f"gamespiel={docker.machine()}"}
        return [self._container(name) for name in self.names]

    def _container(self, name: str) -> Any:
        def remove(force: bool, v: bool) -> None:
            self.names.remove(name)

        return SimpleNamespace(name=name, labels={docker.LOCK: self._locks[name]}, remove=remove)


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A lock file, and a process that holds it."""
    path = tmp_path / "held.lock"
    path.touch()
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    yield str(path), process
    process.kill()
    process.wait()
    process.stdout.close()


def test_only_containers_without_users_are_removed(
    holder: tuple[str, subprocess.Popen[str]], tmp_path: Path
) -> None:
    path, process = holder
    (tmp_path / "free.lock").touch()
    engine = Engine(used=path, left=str(tmp_path / "free.lock"), older=str(tmp_path / "none.lock"))
    assert docker.sweep(engine) == ["left", "older"]
    assert engine.names == ["used"]
    process.kill()  # which frees its lock
    process.wait()
    assert docker.sweep(engine) == ["used"] and not Path(path).exists()


def test_processes_of_a_group_with_the_same_settings_share() -> None:
    same = [docker.Use(Container("a/b", mem_limit="2g"))._group for _ in range(2)]
    assert same[0] == same[1]
    assert docker.Use(Container("a/b", mem_limit="3g"))._group != same[0]
    assert docker.Use(Container("a/b", (("KEY", "1"),), "2g"))._group != same[0]


def test_one_process_at_a_time_starts_a_container() -> None:
    inside: list[int] = []

    def enter(number: int) -> None:
        for _ in range(20):
            with docker._alone("test-of-alone"):
                inside.append(number)
                time.sleep(0.001)
                assert inside == [number]
                inside.clear()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(enter, range(6)))


def test_a_container_that_is_being_removed_is_not_used(tmp_path: Path) -> None:
    use, path = docker.Use(Container("a/b")), tmp_path / "x.lock"
    assert not use._hold(str(path), "x")  # its watcher has removed the file
    path.touch()
    remover = os.open(path, os.O_RDWR)
    fcntl.flock(remover, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        held = pool.submit(use._hold, str(path), "x")
        time.sleep(0.1)
        path.unlink()
        os.close(remover)
    assert held.result() is False and use._held is None


FORK = """
import os, sys
from task_gym.remote import docker
from task_gym.remote.settings import Container

removed = []
docker.engine_of = lambda host: removed.append(host)
use = docker.use_of(Container("a/b"))
assert use._hold(sys.argv[1], "x")
child = os.fork()
if child == 0:
    use.release()
    os._exit(len(removed))
assert os.waitpid(child, 0)[1] == 0, "the child removed its parent's container"
assert not docker.is_free(sys.argv[1])
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.write(ready[1], b"1")
    os.read(go[0], 1)
    use.release()
    os._exit(len(removed))
os.read(ready[0], 1)
use.release()
assert not removed, "the parent removed its child's container"
os.write(go[1], b"1")
assert os.waitpid(child, 0)[1] >> 8 == 1, "the last user did not remove it"
"""


@pytest.mark.launch
@pytest.mark.sample
def test_a_forked_child_is_a_user_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    path.touch()
    subprocess.run([sys.executable, "-c", FORK, str(path)], check=True, timeout=60)
    assert not path.exists()


class Uses:
    """Stands for a container that is replaced by the next address when it is lost."""

    def __init__(self, *urls: str) -> None:
        self.urls = list(urls)

    def url(self, lost: str = "") -> str:
        if lost and lost == self.urls[0]:
            if len(self.urls) == 1:
                raise BackendError("no engine answers")
            self.urls.pop(0)
        return self.urls[0]


def test_a_dead_container_is_replaced_at_the_next_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("task_gym.remote.protocol.Retries.pause", lambda *arguments: 0.001)
    first, second = Stub(), Stub()
    docked = Docked(Settings("", 2.0, Container("a/b")))
    uses = docked._use = Uses(first.url, second.url)  # type: ignore[assignment]
    episode = docked.reset(task_id=0).episode
    first.close()
    for connection in docked._inner.values():  # a killed container breaks its connections
        connection.forget()
    with pytest.raises(Failure):
        docked.step(episode, "1")
    assert uses.urls == [first.url, second.url]  # a step replaces nothing
    assert docked.reset(task_id=0).episode == "e1"
    assert (uses.urls, second.calls) == ([second.url], ["reset"])
    second.close()
    docked._inner[second.url].forget()
    with pytest.raises(Failure, match=r"no engine answers"):  # which ends one episode
        docked.reset(task_id=0)


def test_a_whole_episode_that_is_too_slow_is_not_played_twice() -> None:
    with run_stub() as server:
        docked = Docked(Settings("", 2.0, Container("a/b")))
        docked._use = SimpleNamespace(url=lambda lost="": server.url)  # type: ignore[assignment]
        docked.reset(task_id=0)
        server.faults = [slow]
        with pytest.raises(Failure, match=r"did not answer evaluate in 0.3 s"):
            docked.evaluate(0.3, task_id=0)
        assert server.calls == ["reset", "evaluate"]
