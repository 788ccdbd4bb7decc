"""The test of the images and of ``mode="docker"`` with a real Docker engine: ``make test-docker``.

It installs Debian's ``docker.io`` and ``debootstrap`` if they are missing, and starts an engine of its own if
none answers. It builds a base image without a registry and both images on it, plays in them, and removes
everything that it made. It needs root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = {"dockerd": "docker.io", "docker": "docker.io", "debootstrap": "debootstrap"}
BASE, IMAGES = "gamespiel-test-base", {"game": "gamespiel-test/game", "trace": "gamespiel-test/trace"}
TRACES, TURNS, SOON = 50, 40, 30.0


def main(argv: Sequence[str] | None = None) -> None:
    """Runs everything, or with ``--play`` only the part that plays in images that exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--play", action="store_true", help="only play, in images that exist")
    parser.add_argument("--base", default="", help="an image of Debian or Python, in place of a new one")
    arguments = parser.parse_args(argv)
    if arguments.play:
        play_all()
        return
    install()
    with engine():
        make_images(arguments.base)
        try:
            # A process of its own: its end has to remove its containers.
            run(sys.executable, "-m", "scripts.test_docker", "--play")
            nothing_left("the players have ended")
            check_ends()
            check_afs()
            check_folders()
        finally:
            run("docker", "rmi", "--force", *IMAGES.values(), *([] if arguments.base else [BASE]), quiet=True)
    print("nothing is left behind: no container, no image, no engine of this test")


def run(*command: str, quiet: bool = False) -> str:
    """Runs a command at the root of the repository; returns what it printed if it is quiet."""
    pipe = subprocess.PIPE if quiet else None
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)
    if done.returncode:
        said = f":\n{done.stdout[-1500:]}{done.stderr[-1500:]}" if quiet else ""
        sys.exit(f"{' '.join(command)} ended with {done.returncode}{said}")
    return done.stdout if quiet else ""


def install() -> None:
    """Installs the packages that are missing."""
    missing = sorted({package for name, package in PACKAGES.items() if shutil.which(name) is None})
    if missing:
        print(f"installing {', '.join(missing)}")
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, quiet=True)


@contextmanager
def engine() -> Iterator[None]:
    """Lets an engine answer inside the block: the machine's own, or one that is stopped afterwards."""
    if subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        print("using the Docker engine of this machine")
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="gamespiel-docker-"))
    places = {"--data-root": "data", "--exec-root": "exec", "--pidfile": "pid"}
    socket, log = f"unix://{folder}/socket", folder / "log"
    bridged = Path("/sys/class/net/docker0").exists()
    options = [text for option, name in places.items() for text in (option, str(folder / name))]
    with log.open("w") as out:
        started = subprocess.Popen(["dockerd", *options, "-H", socket], stdout=out, stderr=out)
    os.environ["DOCKER_HOST"] = socket
    try:
        for _ in range(120):
            if subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
                break
            if started.poll() is not None:
                sys.exit(f"dockerd did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.5)
        print("started a Docker engine")
        yield
    finally:
        started.terminate()
        started.wait(60)
        # The engine leaves its network behind: mounted, and as a bridge.
        for mounted in folder.glob("exec/netns/*"):
            subprocess.run(["umount", str(mounted)], capture_output=True)
        if not bridged:
            subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True)
        shutil.rmtree(folder)


def make_images(base: str) -> None:
    """Builds both images, on a base that is made here unless one is named."""
    began = time.monotonic()
    if not base:
        with tempfile.TemporaryDirectory(prefix="gamespiel-base-") as folder:
            root = Path(folder)
            packages = "--include=ca-certificates,python3,python3-venv"
            run("debootstrap", "--variant=minbase", packages, "bookworm", folder, quiet=True)
            _copy_network_settings(root)
            packed = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
            subprocess.run(
                ["docker", "import", "-", BASE], stdin=packed.stdout, check=True, capture_output=True
            )
            packed.wait()
        print(f"made a base image in {time.monotonic() - began:.0f} s")
    for kind, image in IMAGES.items():
        began = time.monotonic()
        arguments = ["--network", "host", "--build-arg", f"BASE={base or BASE}", "--target", kind]
        run("docker", "build", *arguments, "-t", image, "-f", "hub/affinetes/Dockerfile", ".", quiet=True)
        size = run("docker", "image", "inspect", "--format", "{{.Size}}", image, quiet=True)
        print(f"built {image} in {time.monotonic() - began:.0f} s, {int(size) / 1e6:.0f} MB")


def _copy_network_settings(root: Path) -> None:
    """Lets the base image reach the package index as this machine does."""
    for place in ("etc/ssl/certs/ca-certificates.crt", "etc/resolv.conf"):
        if (Path("/") / place).exists():
            shutil.copyfile(Path("/") / place, root / place)
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    ).stdout.strip()
    named = [f"index-url = {index}"] if index else []
    lines = ["[global]", "cert = /etc/ssl/certs/ca-certificates.crt", *named]
    (root / "etc/pip.conf").write_text("\n".join(lines) + "\n")


# -- play --------------------------------------------------------------------------------------------------


def play_all() -> None:
    """Plays every game and ``TRACES`` traces in containers, and kills one in mid-episode."""
    from game_gym.games import TABLE

    began = time.monotonic()
    turns = [play_game(index) for index in range(len(TABLE))]
    print(f"{len(turns)} games played as here, {sum(turns)} turns, in {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    right = sum(play_trace(task_id) for task_id in range(TRACES))
    print(f"{TRACES} traces answered, {right} right as expected, in {time.monotonic() - began:.0f} s")
    kill_one()


def make_env(kind: str, **arguments: Any) -> Any:
    """Returns an environment in a container."""
    import gymnasium as gym

    import gamespiel  # noqa: F401  (registers the environments)

    name = {"game": "GameSpiel-v0", "trace": "CodeTrace-v0"}[kind]
    server: dict[str, Any] = {
        "backend": "affinetes",
        "mode": "docker",
        "image": IMAGES[kind],
        "mem_limit": "1g",
        "cpu_limit": 2,
    }
    return gym.make(name, disable_env_checker=True, **server, **arguments).unwrapped


def play_game(index: int) -> int:
    """Plays a game in a container and here, compares every turn, and returns the number of turns."""
    import gymnasium as gym

    arguments = {"task_id": index * 100_000_000 + 1, "max_turns": TURNS}
    there = make_env("game", **arguments)
    here: Any = gym.make("GameSpiel-v0", disable_env_checker=True, **arguments).unwrapped
    (text, info), (own_text, own_info) = there.reset(seed=index), here.reset(seed=index)
    turn = 0
    while True:
        assert (text, info["legal_actions"]) == (own_text, own_info["legal_actions"]), info["game"]
        if "result" in info:
            break
        action = info["legal_actions"][(7 * turn + index) % len(info["legal_actions"])]
        (text, reward, *_, info), (own_text, own_reward, *_, own_info) = there.step(action), here.step(action)
        assert (reward, info.get("score")) == (own_reward, own_info.get("score")), info["game"]
        turn += 1
    there.close()
    return turn


def play_trace(task_id: int) -> bool:
    """Answers a trace in a container, rightly if the id is even; returns whether it counted as right."""
    import gymnasium as gym

    there = make_env("trace", task_id=task_id)
    here: Any = gym.make("CodeTrace-v0", disable_env_checker=True, task_id=task_id).unwrapped
    (text, _), (own_text, _) = there.reset(seed=0), here.reset(seed=0)
    assert text == own_text
    reply = here.trace.truth if task_id % 2 == 0 else "?"
    _, reward, terminated, _, info = there.step(reply)
    assert terminated and reward == info["score"] == float(task_id % 2 == 0), info
    return bool(info["success"])


def kill_one() -> None:
    """Kills the games' container in mid-episode: that episode is a fault, and the next one is clean."""
    env = make_env("game", task_id=600_000_000, timeout=10.0)
    env.reset(seed=0)
    (name,) = containers(IMAGES["game"])
    run("docker", "kill", name, quiet=True)
    _, _, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["result"], info["score"]) == (False, True, "fault", None), info
    began = time.monotonic()
    env.reset(seed=0)
    _, _, _, truncated, info = env.step(0)
    assert not truncated and "result" not in info
    assert containers(IMAGES["game"]) != [name]
    took = time.monotonic() - began
    print(f"a container was killed in mid-episode: a fault; a new one answered after {took:.0f} s")


# -- ends --------------------------------------------------------------------------------------------------

_CLIENT = """
import sys, time
from scripts.test_docker import make_env
make_env("game", task_id=600_000_000).reset(seed=0)
print("ready", flush=True)
if sys.argv[1] == "raise":
    raise RuntimeError("an exception")
time.sleep(600)
"""


def check_ends() -> None:
    """Checks that a container ends with its client, in whatever way the client ends."""
    for way in ("raise", "SIGTERM", "SIGKILL"):
        client = start_client(way)
        if way != "raise":
            client.send_signal(getattr(signal, way))
        client.wait(60)
        print(f"{nothing_left(way):.1f} s after the client's end by {way}, its container was gone")
    client = start_client("SIGKILL")
    watchers = run("pgrep", "-f", "task_gym.remote.docker", quiet=True).split()
    for watcher in watchers:
        os.kill(int(watcher), signal.SIGKILL)
    client.kill()
    client.wait(60)
    (left,) = containers(IMAGES["game"])
    client = start_client("SIGTERM")
    assert containers(IMAGES["game"]) != [left] and len(containers(IMAGES["game"])) == 1
    client.terminate()
    client.wait(60)
    nothing_left("the next start")
    print("client and watcher were killed: the next start removed the container")


def check_afs() -> None:
    """Starts the games' container by affinetes' own command, begins a game in it, and stops it."""
    afs, name = str(Path(sys.executable).with_name("afs")), "gamespiel-test-afs"
    try:
        run(afs, "run", IMAGES["game"], "--name", name, quiet=True)
        asked = ["--arg", "task_id=200000000", "--arg", "seed=1", "--arg", "opponent=first"]
        said = run(afs, "call", name, "reset", *asked, quiet=True)
        assert '"game_name": "leduc_poker"' in said, said
        began = time.monotonic()
        run("docker", "stop", "--time", "60", name, quiet=True)
        took = time.monotonic() - began
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True)
    print(f"afs run and afs call began a game; its container ended {took:.1f} s after SIGTERM")


def check_folders() -> None:
    """Builds the folders as ``afs build`` does before it adds a server, and begins an episode in each."""
    code = "import env; print(env.Actor().reset(task_id=0, seed=0)['done'])"
    for kind, image in IMAGES.items():
        built = f"{image}-afs"
        try:
            from_image = ["--build-arg", f"IMAGE={image}", "-t", built]
            run("docker", "build", *from_image, f"hub/affinetes/{kind}", quiet=True)
            run("docker", "run", "--rm", built, "pip", "--version", quiet=True)  # which adds the server
            said = run("docker", "run", "--rm", built, "python", "-c", code, quiet=True)
            assert said == "False\n", said
        finally:
            subprocess.run(["docker", "rmi", "--force", built], capture_output=True)
    print("the folders of hub/affinetes/ build as afs builds them, and begin episodes")


def start_client(way: str) -> subprocess.Popen[str]:
    """Returns a process that has begun an episode in a container."""
    client = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, way],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    return client


def containers(image: str = "") -> list[str]:
    """Returns the names of all containers of this test, or of an image's."""
    filters = ["--filter", f"ancestor={image}"] if image else ["--filter", "label=gamespiel"]
    return run("docker", "ps", "--all", "--format", "{{.Names}}", *filters, quiet=True).split()


def nothing_left(when: str) -> float:
    """Returns the seconds until no container is left; exits if one stays."""
    began = time.monotonic()
    while containers():
        if time.monotonic() - began > SOON:
            sys.exit(f"{when}: containers are left: {containers()}")
        time.sleep(0.1)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
