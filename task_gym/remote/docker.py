"""A container that the environments of a process group share, and that does not outlive them.

Every process that uses a container holds a shared lock on a file. The kernel frees the lock when the process
ends, in whatever way. A small watching process removes the container when nobody holds the lock any more. If
the watcher dies too, the next start on this machine removes what is left.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from task_gym.errors import BackendError
from task_gym.remote.settings import Container

LABEL = "gamespiel"
"""The label of all containers. Its value is the machine that started it."""

LOCK, GROUP = f"{LABEL}.lock", f"{LABEL}.group"
"""The labels of a container's lock file, and of its process group and settings."""


class Use:
    """This process's use of one container.

    Args:
        container: The container.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._mutex = threading.Lock()
        self._held: tuple[int, str, str] | None = None  # the lock file, its path, and the container's name
        self._url = ""

    def url(self, lost: str = "") -> str:
        """Returns the container's address; starts it if no process of this group has.

        Args:
            lost: An address at which nothing answers: then the container there is looked at, and replaced
                if it does not run.

        Raises:
            BackendError: it cannot be started.
        """
        with self._mutex:
            if self._url and lost != self._url:
                return self._url
            try:
                with _alone(self._group):
                    self._url = self._find() or self._started()
            except BackendError:
                raise
            except Exception as error:  # affinetes and the engine have classes of their own
                reason = " ".join(str(error).split())
                raise BackendError(
                    f"mode: 'docker' was given, and the {self._container} failed: {reason:.500}"
                ) from error
            return self._url

    @property
    def _group(self) -> str:
        """The process group with the settings: processes that share it share the container."""
        settings = f"{os.getuid()} {os.getpgrp()} {self._container.env_vars} " + " ".join(
            str(getattr(self._container, name)) for name in ("image", "mem_limit", "cpu_limit", "host")
        )
        return f"{os.getpgrp()}-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"

    def _find(self) -> str:
        """Returns the address of the group's container if it runs; removes it if it does not."""
        engine = engine_of(self._container.host)
        try:
            sweep(engine)
            filters = {"label": [f"{LABEL}={machine()}", f"{GROUP}={self._group}"]}
            for container in engine.containers.list(all=True, filters=filters, ignore_removed=True):
                if container.status == "running" and self._hold(container.labels[LOCK], container.name):
                    return _load(self._container, container.name, connect_only=True)
                remove(container)
            return ""
        finally:
            engine.close()

    def _started(self) -> str:
        handle, path = tempfile.mkstemp(prefix="gamespiel-", suffix=".lock")
        os.close(handle)
        name = f"gamespiel-{Path(path).stem.removeprefix('gamespiel-')}".lower()
        self._hold(path, name)
        _watch(path, name, self._container.host)
        labels = {LABEL: machine(), LOCK: path, GROUP: self._group}
        return _load(
            self._container,
            name,
            image=self._container.image,
            env_vars=dict(self._container.env_vars),
            pull=self._container.pull,
            mem_limit=self._container.mem_limit,
            cpu_limit=None if self._container.cpu_limit is None else str(self._container.cpu_limit),
            labels=labels,
            restart_policy={"Name": "no"},
        )

    def _hold(self, path: str, name: str) -> bool:
        """Holds a lock file in place of the one before; returns False if its container is being removed."""
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink == 0:  # who removes a container removes the file under the lock
            os.close(descriptor)
            return False
        before, self._held = self._held, (descriptor, path, name)
        if before is not None:
            os.close(before[0])
        return True

    def inherit(self) -> None:
        """Makes a forked child a user of its own: the lock that it inherits is one with its parent's."""
        self._mutex = threading.Lock()
        if self._held is not None:
            descriptor, path, name = self._held
            self._held = None
            os.close(descriptor)  # which leaves the parent's lock as it is
            if not self._hold(path, name):
                self._url = ""

    def release(self) -> None:
        """Ends the use. The last user removes the container, without waiting for the watcher."""
        held, self._held, self._url = self._held, None, ""
        if held is None:
            return
        descriptor, path, name = held
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # others use it
        try:
            remove_named(engine_of(self._container.host), name)
        except Exception as error:  # the watcher, or the next start, tries again
            logging.getLogger("task_gym.remote").warning("container %s stays for now: %s", name, error)
        finally:
            Path(path).unlink(missing_ok=True)
            os.close(descriptor)


_uses: dict[Container, Use] = {}


def use_of(container: Container) -> Use:
    """Returns this process's use of a container; nothing is started yet."""
    return _uses.setdefault(container, Use(container))


@atexit.register
def _at_exit() -> None:
    for use in list(_uses.values()):
        use.release()


def _inherit() -> None:
    for use in _uses.values():
        use.inherit()


os.register_at_fork(after_in_child=_inherit)


def engine_of(host: str | None) -> Any:
    """Returns a client of a Docker engine.

    Raises:
        BackendError: no engine answers.
    """
    docker = import_module("docker")
    try:
        engine = docker.DockerClient(base_url=host, timeout=180) if host else docker.from_env(timeout=180)
        engine.ping()
    except Exception as error:  # of docker, requests and paramiko
        reason = " ".join(str(error).split())
        raise BackendError(
            f"mode: 'docker' was given, and no Docker engine answers on {host or 'this machine'}: "
            f"{reason:.300}"
        ) from error
    return engine


def sweep(engine: Any) -> list[str]:
    """Removes this machine's containers that no living process uses; returns their names."""
    removed = []
    filters = {"label": f"{LABEL}={machine()}"}
    for container in engine.containers.list(all=True, filters=filters, ignore_removed=True):
        if is_free(container.labels.get(LOCK, "")):
            remove(container)
            removed.append(str(container.name))
    return removed


def is_free(path: str) -> bool:
    """Returns whether no process holds a lock file; one that does not exist is free."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:  # of another user, who may use it
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Path(path).unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def machine() -> str:
    """Returns a name of this machine since it was started: locks mean something only there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    folder = tempfile.gettempdir()
    place = os.stat(folder)  # which differs between the /tmp of a container or service and this one
    text = f"{socket.gethostname()} {boot} {folder} {place.st_dev} {place.st_ino}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def remove(container: Any) -> None:
    """Removes a container, which others may be removing too."""
    docker = import_module("docker")
    try:
        container.remove(force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):
            raise


def remove_named(engine: Any, name: str) -> None:
    """Removes the container of a name, if there is one, and closes the engine's client."""
    for container in engine.containers.list(all=True, filters={"name": f"^{name}$"}, ignore_removed=True):
        remove(container)
    engine.close()


@contextmanager
def _alone(group: str) -> Iterator[None]:
    """Lets one process of a group at a time look for the container and start it."""
    path = Path(tempfile.gettempdir()) / f"gamespiel-{os.getuid()}-{group}.starting"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                break
        except FileNotFoundError:
            pass  # the one before has removed the file, which others may make anew
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _watch(path: str, name: str, host: str | None) -> None:
    """Starts the process that removes the container when nobody holds its lock."""
    command = [sys.executable, "-m", "task_gym.remote.docker", path, name, *([host] if host else [])]
    subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C ends the group, and not the watcher
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def _load(container: Container, name: str, **arguments: Any) -> str:
    """Lets affinetes start or find the container, without its log; returns its address.

    It is imported here, because it patches asyncio in all the process.
    """
    log = logging.getLogger("affinetes")
    import affinetes

    hosts = [container.host] if container.host else None
    load = affinetes.load_env  # which imports the rest, and sets the logger's level
    log.setLevel(logging.CRITICAL)
    try:
        env = load(mode="docker", container_name=name, hosts=hosts, cleanup=False, **arguments)
    finally:
        log.setLevel(logging.ERROR)
    _loaded.append(env)  # it may hold a tunnel to another machine
    return str(env._backend._http_executor.base_url)


_loaded: list[Any] = []


LOOK_SECONDS = 1.0
"""Seconds between two looks at the lock."""


def watch(lock: str, name: str, host: str | None = None) -> None:
    """Waits until no process holds the lock, then removes the container."""
    while not is_free(lock):
        time.sleep(LOOK_SECONDS)
    Path(lock).unlink(missing_ok=True)
    with suppress(BackendError):  # without an engine there is no container
        remove_named(engine_of(host), name)


if __name__ == "__main__":  # python -m task_gym.remote.docker LOCK CONTAINER [HOST]
    watch(*sys.argv[1:])
