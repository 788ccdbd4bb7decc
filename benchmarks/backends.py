"""Measures the ways to play a game: `python -m benchmarks.backends`.

Steps per second, and percentiles of a step's latency, with 1, 8 and 64 episodes at once, of

- `local`: games in this process,
- `url`: `gamespiel serve` on loopback,
- `template`: affinetes' own server template with the same actor, if FastAPI is installed,
- `docker`: a container of `--image`, if one is named.

All play the same game against the same opponent, with uniform actions. On a server, the steps of a round are
under way together, each in a thread, as in training. Episodes that end are reset; resets are not timed.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.table import Table

import gamespiel  # noqa: F401  (registers the environments)
from benchmarks.ending import end, parse
from benchmarks.machine import machine
from game_gym.task import encode

ROOT = Path(__file__).parents[1]
PERCENTILES = (50, 95, 99)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures, prints a table, and returns the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", default="leduc_poker", metavar="NAME")
    parser.add_argument("--episodes", type=int, nargs="+", default=[1, 8, 64], metavar="N")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement [5]")
    parser.add_argument("--image", help="also in a container of this image")
    parser.add_argument("--only", nargs="+", choices=("local", "url", "template", "docker"))
    given = parse(parser, argv)
    results: dict[str, Any] = {}
    for way in given.only or ("local", "url", "template", *(["docker"] * bool(given.image))):
        if way == "template" and find_spec("fastapi") is None:
            print("template: left out, because FastAPI is not installed")
            continue
        with served(way, given.image) as server:
            results[way] = {
                str(count): measure(given.game, server, count, given.seconds) for count in given.episodes
            }
    Console().print(table(results))
    settings = {"game": given.game, "seconds": given.seconds}
    return end({"benchmark": "backends", "machine": machine(), **settings, "ways": results}, given.out)


@contextmanager
def served(way: str, image: str | None) -> Iterator[dict[str, Any]]:
    """Yields the arguments of an environment that is played in one of the ways."""
    if way == "local":
        yield {}
    elif way == "docker":
        yield {"backend": "affinetes", "mode": "docker", "image": image}
    else:
        with _ours() if way == "url" else _template() as url:
            yield {"backend": "affinetes", "mode": "url", "base_url": url}


@contextmanager
def _ours() -> Iterator[str]:
    command = [sys.executable, "-m", "gamespiel", "serve", "--port", "0"]
    with _running(command) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]


@contextmanager
def _template() -> Iterator[str]:
    """Yields the address of affinetes' template, which imports the actor as the module ``env``."""
    import affinetes

    port = 18000 + os.getpid() % 2000
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder)
        templates = Path(affinetes.__file__).parent / "templates"
        (app / "server.py").write_text((templates / "http_server.py").read_text().replace("/app/", f"{app}/"))
        for name in ("request_logger.py",):
            (app / name).write_text((templates / name).read_text())
        (app / "env.py").write_text((ROOT / "docker/game/env.py").read_text())
        command = [sys.executable, "-m", "uvicorn", "--app-dir", folder, "server:app", "--port", str(port)]
        with _running([*command, "--log-level", "error"], folder) as process:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process)
            yield url


@contextmanager
def _running(command: list[str], *folders: str) -> Iterator[subprocess.Popen[str]]:
    paths = os.pathsep.join([*folders, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def _wait(url: str, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("affinetes' server template did not start")


def measure(game: str, server: Mapping[str, Any], count: int, seconds: float) -> dict[str, float]:
    """Returns steps per second, percentiles of a step's milliseconds, and the number of steps and faults."""
    arguments = {"task_id": encode(game, 0), "disable_env_checker": True, **server}
    envs: list[Any] = [gym.make("GameSpiel-v0", **arguments).unwrapped for _ in range(count)]
    rng, taken, spent, faults = random.Random(0), list[float](), 0.0, 0

    def step(env: Any, action: int) -> tuple[float, dict[str, Any]]:
        began = time.perf_counter()
        info = env.step(action)[4]
        return time.perf_counter() - began, info

    with ThreadPoolExecutor(count) as threads:
        run = threads.map if server else map
        infos = [info for _, info in run(lambda pair: pair[1].reset(seed=pair[0]), enumerate(envs))]
        while not taken or spent < seconds:
            actions = [rng.choice(info["legal_actions"]) for info in infos]
            began = time.perf_counter()
            stepped = list(run(step, envs, actions))
            spent += time.perf_counter() - began
            taken += [took for took, _ in stepped]
            infos = [info for _, info in stepped]
            over = [i for i, info in enumerate(infos) if "result" in info]
            faults += sum(infos[i]["result"] == "fault" for i in over)
            for i, (_, info) in zip(over, run(lambda i: envs[i].reset(), over), strict=True):
                infos[i] = info
    for env in envs:
        env.close()
    return {"steps_per_s": len(taken) / spent, **percentiles(taken), "steps": len(taken), "faults": faults}


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Returns the least number of milliseconds that so many percent of the steps did not exceed.

    >>> percentiles([0.004, 0.001, 0.002, 0.003])
    {'p50_ms': 2.0, 'p95_ms': 4.0, 'p99_ms': 4.0}
    """
    ordered = sorted(seconds)
    ranks = {share: -(-len(ordered) * share // 100) - 1 for share in PERCENTILES}
    return {f"p{share}_ms": 1000 * ordered[rank] for share, rank in ranks.items()}


def table(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    """Returns the results as a table."""
    shown = Table(title="steps on each backend")
    for name in ("way", "episodes", "steps/s", *(f"p{share}, ms" for share in PERCENTILES)):
        shown.add_column(name, justify="right")
    for way, counts in results.items():
        for count, found in counts.items():
            latencies = [f"{found[f'p{share}_ms']:.2f}" for share in PERCENTILES]
            shown.add_row(way, count, f"{found['steps_per_s']:,.0f}", *latencies)
    return shown


if __name__ == "__main__":
    main()
